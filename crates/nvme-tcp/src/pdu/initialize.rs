use super::{CommonHeader, PduType};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Which parts of PDUs carry a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// HDGST: headers.
    pub header: bool,
    /// DDGST: data.
    pub data: bool,
}

impl Digests {
    /// None at all.
    pub const NONE: Self = Self { header: false, data: false };

    const fn from_bits(bits: u8) -> Self {
        Self { header: bits & 1 != 0, data: bits & 2 != 0 }
    }

    fn bits(self) -> u8 {
        u8::from(self.header) | u8::from(self.data) << 1
    }
}

/// Initialize Connection Request (`ICReq`): a host's first PDU.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IcReq {
    common: CommonHeader,
    format: U16,
    alignment: u8,
    digests: u8,
    r2t_max: U32,
    reserved: [u8; 112],
}

const _: () = assert!(size_of::<IcReq>() == 128, "an ICReq has 128 bytes");

impl IcReq {
    /// Where PFV is in it.
    pub const FORMAT_AT: u32 = 8;
    /// Where HPDA is in it.
    pub const ALIGNMENT_AT: u32 = 10;

    /// A request for `digests`, from a host that wants data at multiples of `alignment` bytes (4 to
    /// 128) and takes `r2t_max` R2Ts for a command at a time.
    pub fn new(alignment: u8, digests: Digests, r2t_max: u32) -> Self {
        assert!(r2t_max > 0, "a host that takes no R2T sends no data");
        Self {
            common: CommonHeader::new(PduType::IC_REQ, 128, 0),
            format: U16::ZERO,
            alignment: alignment_field(alignment),
            digests: digests.bits(),
            r2t_max: (r2t_max - 1).into(),
            reserved: [0; 112],
        }
    }

    /// PFV: the format of all PDUs of the connection. There is only 0.
    pub fn format(&self) -> u16 {
        self.format.get()
    }

    /// HPDA: data in PDUs to the host begins at a multiple of this many bytes. `None` if the field
    /// is above its maximum.
    pub fn alignment(&self) -> Option<u8> {
        alignment_bytes(self.alignment)
    }

    /// DGST: what the host asks for.
    pub fn digests(&self) -> Digests {
        Digests::from_bits(self.digests)
    }

    /// MAXR2T: R2Ts that the host takes for one command at a time, at least 1.
    pub fn r2t_max(&self) -> u32 {
        self.r2t_max.get().saturating_add(1)
    }
}

/// Initialize Connection Response (`ICResp`): a controller's first PDU.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IcResp {
    common: CommonHeader,
    format: U16,
    alignment: u8,
    digests: u8,
    h2c_data_max: U32,
    reserved: [u8; 112],
}

const _: () = assert!(size_of::<IcResp>() == 128, "an ICResp has 128 bytes");

impl IcResp {
    /// Where PFV is in it.
    pub const FORMAT_AT: u32 = 8;
    /// Where CPDA is in it.
    pub const ALIGNMENT_AT: u32 = 10;
    /// Where DGST is in it.
    pub const DIGESTS_AT: u32 = 11;
    /// Where MAXH2CDATA is in it.
    pub const H2C_DATA_MAX_AT: u32 = 12;

    /// Takes a connection with `digests`, for a controller that wants data at multiples of
    /// `alignment` bytes (4 to 128) and at most `h2c_data_max` bytes of it in a PDU.
    pub fn new(alignment: u8, digests: Digests, h2c_data_max: u32) -> Self {
        Self {
            common: CommonHeader::new(PduType::IC_RESP, 128, 0),
            format: U16::ZERO,
            alignment: alignment_field(alignment),
            digests: digests.bits(),
            h2c_data_max: h2c_data_max.into(),
            reserved: [0; 112],
        }
    }

    /// PFV, as in [`IcReq::format`].
    pub fn format(&self) -> u16 {
        self.format.get()
    }

    /// CPDA: data in PDUs to the controller begins at a multiple of this many bytes. `None` if the
    /// field is above its maximum.
    pub fn alignment(&self) -> Option<u8> {
        alignment_bytes(self.alignment)
    }

    /// DGST: what the connection has.
    pub fn digests(&self) -> Digests {
        Digests::from_bits(self.digests)
    }

    /// MAXH2CDATA: bytes of data in an `H2CData` at most.
    pub fn h2c_data_max(&self) -> u32 {
        self.h2c_data_max.get()
    }
}

/// HPDA and CPDA count dwords, and are 0's based.
fn alignment_field(bytes: u8) -> u8 {
    assert!(bytes.is_multiple_of(4) && (4..=128).contains(&bytes), "4 to 128 bytes, not {bytes}");
    bytes / 4 - 1
}

fn alignment_bytes(field: u8) -> Option<u8> {
    (field <= 31).then(|| (field + 1) * 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Digests = Digests { header: true, data: true };

    #[test]
    fn requests_and_responses_have_the_specifications_bytes() {
        // TCP 1.1, ICReq: common header, PFV, HPDA, DGST, MAXR2T. HPDA 31 is 128 bytes.
        let request = IcReq::new(128, Digests { header: false, data: true }, 0x0102_0305);
        let mut expected = [0; 128];
        expected[..16].copy_from_slice(&[0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 31, 2, 4, 3, 2, 1]);
        assert_eq!(request.as_bytes(), expected);
        // TCP 1.1, ICResp: common header, PFV, CPDA, DGST, MAXH2CDATA.
        let response = IcResp::new(4, BOTH, 0x0004_1000);
        expected[..16].copy_from_slice(&[1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, 3, 0, 0x10, 4, 0]);
        assert_eq!(response.as_bytes(), expected);
    }

    #[test]
    fn accessors_read_each_field_whatever_surrounds_it() {
        let bytes: [u8; 128] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        let request = IcReq::read_from_bytes(&bytes).unwrap();
        assert_eq!(request.format(), 0x0a09);
        assert_eq!(request.alignment(), Some(12 * 4));
        assert_eq!(request.digests(), Digests { header: false, data: false });
        assert_eq!(request.r2t_max(), 0x100f_0e0e);
        let response = IcResp::read_from_bytes(&bytes).unwrap();
        assert_eq!(response.format(), 0x0a09);
        assert_eq!(response.alignment(), Some(12 * 4));
        assert_eq!(response.h2c_data_max(), 0x100f_0e0d);
        let response = IcResp::read_from_bytes(&[0xff; 128]).unwrap();
        assert_eq!((response.alignment(), response.digests()), (None, BOTH));
        assert_eq!(IcReq::read_from_bytes(&[0xff; 128]).unwrap().r2t_max(), u32::MAX);
    }

    #[test]
    fn every_alignment_comes_back() {
        for dwords in 1..=32 {
            let bytes = dwords * 4;
            assert_eq!(IcReq::new(bytes, Digests::NONE, 1).alignment(), Some(bytes));
            assert_eq!(IcResp::new(bytes, Digests::NONE, 4096).alignment(), Some(bytes));
        }
        assert_eq!(alignment_bytes(32), None);
    }
}
