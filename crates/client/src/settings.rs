use base::Nanos;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;

/// The identity of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its NVMe Qualified Name, of at most 223 bytes.
    pub name: String,
    /// Its Host Identifier: not all zeros, and different for each name.
    pub id: [u8; 16],
}

impl Host {
    /// Returns the host of this UUID, in the byte order of its text, with a name made from it (Base
    /// 2.1, NVMe Qualified Names).
    pub fn of_uuid(uuid: [u8; 16]) -> Self {
        let hex = format!("{:032x}", u128::from_be_bytes(uuid));
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        let name = format!("nqn.2014-08.org.nvmexpress:uuid:{}", parts.join("-"));
        Self { name, id: uuid }
    }

    /// Returns the host of this name, with an id made from it.
    pub fn of_name(name: &str) -> Self {
        let id = base::checksum::hash128(name.as_bytes()).max(1);
        Self { name: name.to_owned(), id: id.to_be_bytes() }
    }
}

/// How a host connects to a subsystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The host that connects.
    pub host: Host,
    /// The subsystem's NVMe Qualified Name, of at most 223 bytes.
    pub subsystem: String,
    /// Digests to ask for; the connection fails if the target does not offer them.
    pub digests: Digests,
    /// The bytes that data digests cover. `None`: as in the target's digests, and before the first
    /// of them as in the specification.
    pub data_digest: Option<DataDigest>,
    /// Whether I/O queues have submission queue flow control. Without it the target may leave out
    /// responses to reads.
    pub flow_control: bool,
    /// Entries of each I/O queue, 2 or more: one less commands are outstanding at a time. A target
    /// that has fewer gets fewer.
    pub queue_entries: u16,
    /// The target may end the association after this time without a command from the host; zero for
    /// never.
    pub keep_alive: Nanos,
    /// The most time for each reply.
    pub timeout: Nanos,
}

impl Settings {
    /// Returns settings for `subsystem` without digests and flow control, with I/O queues of 128
    /// entries.
    pub fn new(host: Host, subsystem: &str) -> Self {
        Self {
            host,
            subsystem: subsystem.to_owned(),
            digests: Digests::NONE,
            data_digest: None,
            flow_control: false,
            queue_entries: 128,
            keep_alive: Nanos::from_secs(10),
            timeout: Nanos::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_is_made_of_its_uuid() {
        // Base 2.1, NVMe Qualified Names: the second format.
        let host = Host::of_uuid(*b"\x01\x23\x45\x67\x89\xab\xcd\xef0123456\x00");
        let uuid = "01234567-89ab-cdef-3031-323334353600";
        assert_eq!(host.name, format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}"));
    }
}
