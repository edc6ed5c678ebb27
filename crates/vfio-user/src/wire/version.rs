use crate::wire::{DATA_MAX, DMA_REGIONS_MAX, PAGE};
use reactor::PassedFds;
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What `VFIO_USER_VERSION` begins with, before the version data.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

/// What the client proposes in its version data. Fields that the server does not read are skipped
/// without being stored.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Proposal {
    #[serde(default)]
    capabilities: ProposedCapabilities,
}

#[derive(Debug, Default, Deserialize)]
struct ProposedCapabilities {
    #[serde(default)]
    write_multiple: bool,
}

#[derive(Serialize)]
struct Answer {
    capabilities: Capabilities,
}

#[derive(Serialize)]
struct Capabilities {
    max_msg_fds: usize,
    max_data_xfer_size: u32,
    max_dma_maps: usize,
    pgsizes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    write_multiple: bool,
}

impl Proposal {
    /// Parses version data: nothing, or JSON with a terminating NUL. Returns `None` if it is
    /// neither.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        match data {
            [] => Some(Self::default()),
            [json @ .., 0] => serde_json::from_slice(json).ok(),
            _ => None,
        }
    }
}

/// Returns the server's version data for `proposal`, with its terminating NUL.
pub(crate) fn answer(proposal: &Proposal) -> Vec<u8> {
    let capabilities = Capabilities {
        max_msg_fds: PassedFds::MAX,
        max_data_xfer_size: DATA_MAX,
        max_dma_maps: DMA_REGIONS_MAX,
        pgsizes: PAGE,
        write_multiple: proposal.capabilities.write_multiple,
    };
    let json = serde_json::to_vec(&Answer { capabilities });
    let mut data = json.expect("numbers and names always have a JSON form");
    data.push(0);
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(data: &[u8]) -> Option<String> {
        let data = answer(&Proposal::parse(data)?);
        Some(String::from_utf8(data).unwrap())
    }

    const NUMBERS: &str =
        r#""max_msg_fds":16,"max_data_xfer_size":1048576,"max_dma_maps":65535,"pgsizes":4096"#;

    #[test]
    fn write_multiple_is_answered_to_clients_that_propose_it() {
        let with = format!("{{\"capabilities\":{{{NUMBERS},\"write_multiple\":true}}}}\0");
        let without = format!("{{\"capabilities\":{{{NUMBERS}}}}}\0");
        let qemu = br#"{"capabilities":{"pgsizes":4096,"max_msg_fds":16,"max_dma_maps":65535,
            "max_data_xfer_size":1048576,"migration":{"pgsize":4096},"write_multiple":true}}"#;
        assert_eq!(answered(&[&qemu[..], b"\0"].concat()), Some(with));
        for data in [&b""[..], b"{}\0", b"{\"capabilities\":{\"max_msg_fds\":1}}\0"] {
            assert_eq!(answered(data).as_deref(), Some(&without[..]));
        }
    }

    #[test]
    fn other_version_data_is_refused() {
        let deep = [&b"["[..].repeat(100_000), &b"\0"[..]].concat();
        let all: [&[u8]; 9] = [
            b"\0",
            b"{}",
            b"{} ",
            b"{}\0\0",
            b"{\0",
            b"[]\0\xff",
            b"{\"capabilities\":7}\0",
            b"{\"capabilities\":{\"write_multiple\":1}}\0",
            &deep,
        ];
        for data in all {
            assert_eq!(answered(data), None);
        }
    }
}
