//! Unmodified Linux kernels as hosts of the program: over NVMe/TCP, and over PCIe, where QEMU plugs
//! a vfio-user device of the program into the guest. The kernels, their QEMU and nvme-cli are
//! Debian's packages, fetched by apt into `$XDG_CACHE_HOME/kvasir/vm` (or `~/.cache/kvasir/vm`) and
//! unpacked there; a folder that is deleted is fetched anew.
//!
//! A kernel is booted once, for all tests. Each test has a target of its own, and a test that fails
//! takes its guest with it. Without packages there is no guest, and a line says `skipped`; with
//! `REQUIRE_VM=1` that is a failure.

#[cfg(test)]
mod admin;
#[cfg(test)]
mod apt;
#[cfg(test)]
mod block;
#[cfg(test)]
mod debian;
#[cfg(test)]
mod discovery;
#[cfg(test)]
mod guest;
#[cfg(test)]
mod initramfs;
#[cfg(test)]
mod kernel;
#[cfg(test)]
mod kv;
#[cfg(test)]
mod liveness;
#[cfg(test)]
mod load;
#[cfg(test)]
mod own;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod pcie;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod qmp;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod report;
#[cfg(test)]
mod target;
#[cfg(test)]
mod transport;
#[cfg(test)]
mod unpacked;
#[cfg(test)]
mod values;
#[cfg(test)]
mod zoned;

/// Makes a test for each of some guests of a function, which takes a booted one and a target.
#[cfg(test)]
macro_rules! on {
    ($check:ident: $($name:ident $guest:ident)*) => {
        mod $check {
            $(
                #[test]
                fn $name() {
                    crate::debian::$guest.lend(super::$check);
                }
            )*
        }
    };
}
#[cfg(test)]
use on;

/// Makes a test for each kernel of each function.
#[cfg(test)]
macro_rules! on_each_kernel {
    ($($check:ident)*) => {$(
        crate::on!($check: on_debian_12 DEBIAN_12 on_backports BACKPORTS);
    )*};
}
#[cfg(test)]
use on_each_kernel;

/// Makes a test for each kernel and each transport of each function.
#[cfg(test)]
macro_rules! over_each_transport {
    ($($check:ident)*) => {$(
        crate::on!($check:
            on_debian_12 DEBIAN_12
            on_backports BACKPORTS
            over_pcie_on_debian_12 DEBIAN_12_WITH_SLOT
            over_pcie_on_backports BACKPORTS_WITH_SLOT
        );
    )*};
}
#[cfg(test)]
use over_each_transport;
