//! PDUs as hosts write and read them (TCP 1.1, PDU Definitions).

use crate::hosts::crc::crc32c;

pub(crate) const IC_REQ: u8 = 0x00;
pub(crate) const IC_RESP: u8 = 0x01;
pub(crate) const CAPSULE_CMD: u8 = 0x04;
pub(crate) const CAPSULE_RESP: u8 = 0x05;
pub(crate) const H2C_DATA: u8 = 0x06;
pub(crate) const C2H_DATA: u8 = 0x07;
pub(crate) const R2T: u8 = 0x09;

/// Flags: there is a digest of the header, of the data; the last data; which stands for a response.
const HAS_HEADER_DIGEST: u8 = 1;
const HAS_DATA_DIGEST: u8 = 1 << 1;
pub(crate) const LAST: u8 = 1 << 2;
pub(crate) const SUCCESS: u8 = 1 << 3;

/// Which digests a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digests {
    pub(crate) header: bool,
    pub(crate) data: bool,
    /// Whether the host computes those of data over zeros too, up to the next multiple of 4 bytes,
    /// and takes no others.
    pub(crate) pads: bool,
}

impl Digests {
    pub(crate) const NONE: Self = Self { header: false, data: false, pads: false };
    pub(crate) const HEADER: Self = Self { header: true, ..Self::NONE };
    pub(crate) const DATA: Self = Self { data: true, ..Self::NONE };
    pub(crate) const BOTH: Self = Self { header: true, ..Self::DATA };

    /// As SPDK computes them.
    pub(crate) const fn padded(self) -> Self {
        Self { pads: true, ..self }
    }

    /// DGST in the first PDU of each side.
    pub(crate) fn bits(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }
}

/// The digest of `data`.
fn data_digest(data: &[u8], digests: Digests) -> [u8; 4] {
    let mut data = data.to_vec();
    if digests.pads {
        data.resize(data.len().next_multiple_of(4), 0);
    }
    crc32c(&data).to_le_bytes()
}

/// Encodes a PDU: the common header, then `rest` of the header, then `data`.
pub(crate) fn encode(kind: u8, flags: u8, rest: &[u8], data: &[u8], digests: Digests) -> Vec<u8> {
    let header = 8 + rest.len();
    let start = header + 4 * usize::from(digests.header);
    let has_data_digest = digests.data && !data.is_empty();
    let len = start + data.len() + 4 * usize::from(has_data_digest);
    let flags = flags
        | if digests.header { HAS_HEADER_DIGEST } else { 0 }
        | if has_data_digest { HAS_DATA_DIGEST } else { 0 };
    let offset = if data.is_empty() { 0 } else { start };
    let byte = |number: usize| u8::try_from(number).expect("a header is short");
    let mut bytes = vec![kind, flags, byte(header), byte(offset)];
    bytes.extend_from_slice(&u32::try_from(len).expect("a PDU is short").to_le_bytes());
    bytes.extend_from_slice(rest);
    if digests.header {
        bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
    }
    bytes.extend_from_slice(data);
    if has_data_digest {
        bytes.extend_from_slice(&data_digest(data, digests));
    }
    bytes
}

/// A PDU that came: its header of 24 bytes, and the data.
#[derive(Debug)]
pub(crate) struct Came<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    header: &'a [u8],
    pub(crate) data: &'a [u8],
}

impl<'a> Came<'a> {
    /// Reads a PDU as Linux does, which takes every header to have 24 bytes and the data to be
    /// right behind it, whatever PDO says.
    pub(crate) fn read(bytes: &'a [u8], digests: Digests) -> Self {
        let [kind, flags, header_len, offset, ..] = *bytes else { panic!("no header: {bytes:?}") };
        assert_eq!(header_len, 24, "HLEN of {bytes:02x?}");
        let start = 24 + 4 * usize::from(digests.header);
        let has_data = kind == C2H_DATA;
        let end = bytes.len() - 4 * usize::from(digests.data && has_data);
        let (header, data) = (&bytes[..24], &bytes[start..end]);
        assert_eq!(flags & HAS_HEADER_DIGEST != 0, digests.header, "HDGSTF");
        assert_eq!(flags & HAS_DATA_DIGEST != 0, digests.data && has_data, "DDGSTF");
        if digests.header {
            assert_eq!(bytes[24..start], crc32c(header).to_le_bytes(), "a header's digest");
        }
        if digests.data && has_data {
            assert_eq!(bytes[end..], data_digest(data, digests), "the data's digest");
        }
        if has_data {
            assert_eq!(usize::from(offset), start, "PDO");
            assert!(!data.is_empty(), "no data");
        } else {
            assert!(data.is_empty(), "PLEN of {bytes:02x?}");
        }
        Self { kind, flags, header, data }
    }

    /// The id of the command that it is for: CCCID, or that of a completion queue entry.
    pub(crate) fn id(&self) -> u16 {
        self.u16(if self.kind == CAPSULE_RESP { 20 } else { 8 })
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.header[at..at + 2].try_into().expect("there are 2"))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.header[at..at + 4].try_into().expect("there are 4"))
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.header[at..at + 8].try_into().expect("there are 8"))
    }
}
