use super::{CommonHeader, PduType};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Host to Controller Data Transfer (`H2CData`): part of what an R2T asked for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct H2cData {
    common: CommonHeader,
    command_id: U16,
    tag: U16,
    offset: U32,
    len: U32,
    reserved: [u8; 4],
}

/// Controller to Host Data Transfer (`C2HData`): part of what a command reads.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct C2hData {
    common: CommonHeader,
    command_id: U16,
    reserved: [u8; 2],
    offset: U32,
    len: U32,
    reserved_too: [u8; 4],
}

/// Ready To Transfer (R2T): asks for part of a command's data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct R2t {
    common: CommonHeader,
    command_id: U16,
    tag: U16,
    offset: U32,
    len: U32,
    reserved: [u8; 4],
}

const _: () = assert!(
    size_of::<H2cData>() == 24 && size_of::<C2hData>() == 24 && size_of::<R2t>() == 24,
    "the headers of data have 24 bytes"
);

impl H2cData {
    /// Where CCCID is in it.
    pub const COMMAND_ID_AT: u32 = 8;
    /// Where TTAG is in it.
    pub const TAG_AT: u32 = 10;
    /// Where DATAL is in it.
    pub const LEN_AT: u32 = 16;

    /// The `len` bytes at `offset` of the data of the command `command_id`, for the R2T with `tag`.
    pub fn new(command_id: u16, tag: u16, offset: u32, len: u32, is_last: bool) -> Self {
        let flags = if is_last { CommonHeader::LAST } else { 0 };
        Self {
            common: CommonHeader::new(PduType::H2C_DATA, 24, flags),
            command_id: command_id.into(),
            tag: tag.into(),
            offset: offset.into(),
            len: len.into(),
            reserved: [0; 4],
        }
    }

    /// CCCID: the command's id.
    #[inline]
    pub fn command_id(&self) -> u16 {
        self.command_id.get()
    }

    /// TTAG: the tag of the R2T.
    #[inline]
    pub fn tag(&self) -> u16 {
        self.tag.get()
    }

    /// DATAO: where in the command's data it belongs, in bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        self.offset.get()
    }

    /// DATAL: bytes of data.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a field of the specification")]
    pub fn len(&self) -> u32 {
        self.len.get()
    }

    /// `LAST_PDU`: whether it is the last for its R2T.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.common.has(CommonHeader::LAST)
    }
}

impl C2hData {
    /// Where CCCID is in it.
    pub const COMMAND_ID_AT: u32 = 8;
    /// Where DATAL is in it.
    pub const LEN_AT: u32 = 16;

    /// The `len` bytes at `offset` of the data of the command `command_id`. `flags` are none, LAST,
    /// or LAST and SUCCESS.
    #[inline]
    pub fn new(command_id: u16, offset: u32, len: u32, flags: u8) -> Self {
        Self {
            common: CommonHeader::new(PduType::C2H_DATA, 24, flags),
            command_id: command_id.into(),
            reserved: [0; 2],
            offset: offset.into(),
            len: len.into(),
            reserved_too: [0; 4],
        }
    }

    /// CCCID: the command's id.
    #[inline]
    pub fn command_id(&self) -> u16 {
        self.command_id.get()
    }

    /// DATAO: where in the command's data it belongs, in bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        self.offset.get()
    }

    /// DATAL: bytes of data.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a field of the specification")]
    pub fn len(&self) -> u32 {
        self.len.get()
    }

    /// `LAST_PDU`: whether it is the command's last.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.common.has(CommonHeader::LAST)
    }

    /// SUCCESS: whether it stands for the response capsule too.
    #[inline]
    pub fn is_success(&self) -> bool {
        self.common.has(CommonHeader::SUCCESS)
    }
}

impl R2t {
    /// Where CCCID is in it.
    pub const COMMAND_ID_AT: u32 = 8;

    /// Asks for the `len` bytes at `offset` of the data of the command `command_id`, to come with
    /// `tag`.
    #[inline]
    pub fn new(command_id: u16, tag: u16, offset: u32, len: u32) -> Self {
        Self {
            common: CommonHeader::new(PduType::R2T, 24, 0),
            command_id: command_id.into(),
            tag: tag.into(),
            offset: offset.into(),
            len: len.into(),
            reserved: [0; 4],
        }
    }

    /// CCCID: the command's id.
    #[inline]
    pub fn command_id(&self) -> u16 {
        self.command_id.get()
    }

    /// TTAG: what the data's PDUs have to repeat.
    #[inline]
    pub fn tag(&self) -> u16 {
        self.tag.get()
    }

    /// R2TO: where in the command's data the wanted part begins, in bytes.
    #[inline]
    pub fn offset(&self) -> u32 {
        self.offset.get()
    }

    /// R2TL: bytes that are wanted.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a field of the specification")]
    pub fn len(&self) -> u32 {
        self.len.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes 8 to 23 of the PDUs of the first test.
    const FIELDS: [u8; 16] = [2, 1, 4, 3, 8, 7, 6, 5, 12, 11, 10, 9, 0, 0, 0, 0];

    fn counting() -> [u8; 24] {
        core::array::from_fn(|i| u8::try_from(i + 1).unwrap())
    }

    #[test]
    fn headers_of_data_have_the_specifications_bytes() {
        // TCP 1.1, H2CData: common header, CCCID, TTAG, DATAO, DATAL; LAST_PDU is flag 2.
        let data = H2cData::new(0x0102, 0x0304, 0x0506_0708, 0x090a_0b0c, true);
        assert_eq!(data.as_bytes()[..8], [6, 4, 24, 0, 24, 0, 0, 0]);
        assert_eq!(data.as_bytes()[8..], FIELDS);
        assert_eq!(H2cData::new(1, 2, 3, 4, false).as_bytes()[..2], [6, 0]);
        // TCP 1.1, R2T: common header, CCCID, TTAG, R2TO, R2TL.
        let wanted = R2t::new(0x0102, 0x0304, 0x0506_0708, 0x090a_0b0c);
        assert_eq!(wanted.as_bytes()[..8], [9, 0, 24, 0, 24, 0, 0, 0]);
        assert_eq!(wanted.as_bytes()[8..], FIELDS);
        // TCP 1.1, C2HData: common header, CCCID, reserved, DATAO, DATAL; SUCCESS is flag 3.
        let flags = CommonHeader::LAST | CommonHeader::SUCCESS;
        let data = C2hData::new(0x0102, 0x0506_0708, 0x090a_0b0c, flags);
        assert_eq!(data.as_bytes()[..8], [7, 12, 24, 0, 24, 0, 0, 0]);
        let mut fields = FIELDS;
        fields[2..4].fill(0);
        assert_eq!(data.as_bytes()[8..], fields);
    }

    #[test]
    fn accessors_read_each_field_whatever_surrounds_it() {
        let data = H2cData::read_from_bytes(&counting()).unwrap();
        assert_eq!((data.command_id(), data.tag()), (0x0a09, 0x0c0b));
        assert_eq!((data.offset(), data.len()), (0x100f_0e0d, 0x1413_1211));
        assert!(!data.is_last(), "the flags are 2");
        let wanted = R2t::read_from_bytes(&counting()).unwrap();
        assert_eq!((wanted.command_id(), wanted.tag()), (0x0a09, 0x0c0b));
        assert_eq!((wanted.offset(), wanted.len()), (0x100f_0e0d, 0x1413_1211));
        let data = C2hData::read_from_bytes(&counting()).unwrap();
        assert_eq!(data.command_id(), 0x0a09);
        assert_eq!((data.offset(), data.len()), (0x100f_0e0d, 0x1413_1211));
        for (flags, is_last, is_success) in [(4, true, false), (8, false, true), (0, false, false)]
        {
            let data = C2hData::new(0, 0, 0, flags);
            assert_eq!((data.is_last(), data.is_success()), (is_last, is_success));
        }
    }
}
