/// How a guest reaches a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// NVMe/TCP, over the guest's network.
    Tcp,
    /// A PCIe function in the guest, which QEMU plugs in.
    Pcie,
}
