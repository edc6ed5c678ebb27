use spec::{AddressFamily, Text};

/// An address where hosts reach a server by NVMe/TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportAddress {
    /// The address family.
    pub family: AddressFamily,
    /// The IP address as text.
    pub address: Text<256>,
    /// The TCP port.
    pub port: u16,
}
