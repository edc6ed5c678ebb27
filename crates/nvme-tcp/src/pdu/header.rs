use core::fmt;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a digest: a CRC-32C, little endian.
pub const DIGEST_BYTES: usize = 4;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Sends commands.
    Host,
    /// Executes them.
    Controller,
}

impl Side {
    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Host => Self::Controller,
            Self::Controller => Self::Host,
        }
    }
}

/// What a PDU is: byte 0 of its header.
#[derive(
    Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Debug,
)]
#[repr(transparent)]
pub struct PduType(pub u8);

impl PduType {
    /// Initialize Connection Request.
    pub const IC_REQ: Self = Self(0x00);
    /// Initialize Connection Response.
    pub const IC_RESP: Self = Self(0x01);
    /// Host to Controller Terminate Connection Request.
    pub const H2C_TERM_REQ: Self = Self(0x02);
    /// Controller to Host Terminate Connection Request.
    pub const C2H_TERM_REQ: Self = Self(0x03);
    /// Command Capsule.
    pub const CAPSULE_CMD: Self = Self(0x04);
    /// Response Capsule.
    pub const CAPSULE_RESP: Self = Self(0x05);
    /// Host to Controller Data Transfer.
    pub const H2C_DATA: Self = Self(0x06);
    /// Controller to Host Data Transfer.
    pub const C2H_DATA: Self = Self(0x07);
    /// Ready To Transfer.
    pub const R2T: Self = Self(0x09);

    /// Bytes of the header without its digest, and who sends it. `None` if there is no such type.
    #[inline]
    pub const fn header_len_and_sender(self) -> Option<(u8, Side)> {
        Some(match self {
            Self::IC_REQ => (128, Side::Host),
            Self::IC_RESP => (128, Side::Controller),
            Self::CAPSULE_CMD => (72, Side::Host),
            Self::H2C_TERM_REQ | Self::H2C_DATA => (24, Side::Host),
            Self::C2H_TERM_REQ | Self::CAPSULE_RESP | Self::C2H_DATA | Self::R2T => {
                (24, Side::Controller)
            }
            _ => return None,
        })
    }

    /// Whether PDUs of this type have digests on a connection that agreed on them.
    #[inline]
    pub const fn has_digests(self) -> bool {
        self.0 > Self::C2H_TERM_REQ.0
    }
}

/// What each PDU begins with.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommonHeader {
    kind: PduType,
    flags: u8,
    header_len: u8,
    data_offset: u8,
    len: U32,
}

impl CommonHeader {
    /// Bytes of it.
    pub const LEN: usize = size_of::<Self>();
    /// Flag: a digest follows the header.
    pub const HEADER_DIGEST: u8 = 1;
    /// Flag: a digest follows the data.
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// Flag of data PDUs: the last of the transfer.
    pub const LAST: u8 = 1 << 2;
    /// Flag of `C2HData`: the command succeeded, and no response capsule follows.
    pub const SUCCESS: u8 = 1 << 3;

    /// Where the type is in a header, for [`crate::framing::Fault`].
    pub const TYPE_AT: u32 = 0;
    /// Where the flags are.
    pub const FLAGS_AT: u32 = 1;
    /// Where HLEN is.
    pub const HEADER_LEN_AT: u32 = 2;
    /// Where PDO is.
    pub const DATA_OFFSET_AT: u32 = 3;
    /// Where PLEN is.
    pub const LEN_AT: u32 = 4;

    /// That of a PDU which is no more than its header of `header_len` bytes.
    pub(crate) const fn new(kind: PduType, header_len: u8, flags: u8) -> Self {
        Self { kind, flags, header_len, data_offset: 0, len: U32::new(header_len as u32) }
    }

    /// The same, of a PDU of this layout.
    #[inline]
    #[must_use]
    pub(crate) fn with_layout(self, flags: u8, data_offset: u8, len: u32) -> Self {
        Self { flags: self.flags | flags, data_offset, len: len.into(), ..self }
    }

    /// PDU-Type.
    #[inline]
    pub fn kind(&self) -> PduType {
        self.kind
    }

    /// FLAGS.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether all of the bits `flag` are set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }

    /// HLEN: bytes of the header without its digest.
    #[inline]
    pub fn header_len(&self) -> u8 {
        self.header_len
    }

    /// PDO: where the data begins, counted from the PDU's first byte.
    #[inline]
    pub fn data_offset(&self) -> u8 {
        self.data_offset
    }

    /// PLEN: bytes of the whole PDU.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a field of the specification")]
    pub fn len(&self) -> u32 {
        self.len.get()
    }
}

impl fmt::Debug for CommonHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommonHeader")
            .field("kind", &self.kind)
            .field("flags", &self.flags)
            .field("header_len", &self.header_len)
            .field("data_offset", &self.data_offset)
            .field("len", &self.len.get())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_header_has_the_specifications_bytes() {
        // TCP 1.1, PDU Common Header: PDU-Type, FLAGS, HLEN, PDO, PLEN.
        let header = CommonHeader::new(PduType::C2H_DATA, 24, CommonHeader::LAST);
        let header = header.with_layout(CommonHeader::DATA_DIGEST, 0x1c, 0x0102_0304);
        assert_eq!(header.as_bytes(), [0x07, 0x06, 24, 0x1c, 0x04, 0x03, 0x02, 0x01]);
        let header = CommonHeader::read_from_bytes(&[9, 0x0b, 7, 6, 5, 4, 3, 2]).unwrap();
        assert_eq!(header.kind(), PduType::R2T);
        assert_eq!((header.header_len(), header.data_offset(), header.len()), (7, 6, 0x0203_0405));
        assert!(header.has(CommonHeader::HEADER_DIGEST | CommonHeader::SUCCESS));
        assert!(!header.has(CommonHeader::LAST));
        assert_eq!(header.flags(), 0x0b);
    }

    #[test]
    fn types_have_the_specifications_lengths_and_directions() {
        // TCP 1.1, PDU Types and the figure of each.
        let mut seen = Vec::new();
        for kind in 0..=u8::MAX {
            if let Some((len, sender)) = PduType(kind).header_len_and_sender() {
                seen.push((kind, len, sender == Side::Host, PduType(kind).has_digests()));
            }
        }
        assert_eq!(
            seen,
            [
                (0, 128, true, false),
                (1, 128, false, false),
                (2, 24, true, false),
                (3, 24, false, false),
                (4, 72, true, true),
                (5, 24, false, true),
                (6, 24, true, true),
                (7, 24, false, true),
                (9, 24, false, true),
            ]
        );
        assert_eq!(Side::Host.peer(), Side::Controller);
        assert_eq!(Side::Controller.peer(), Side::Host);
    }
}
