use super::{CommonHeader, PduType, Side};
use core::fmt;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the offending PDU's header that a termination repeats at most (TCP 1.1, `C2HTermReq`).
pub const TERMINATION_DATA_MAX: u32 = 128;

/// Why a connection is terminated (TCP 1.1, Fatal Error Status).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FatalError(pub u16);

impl FatalError {
    /// A field of the header has a value that it must not have.
    pub const INVALID_HEADER_FIELD: Self = Self(0x01);
    /// A PDU came where it must not.
    pub const SEQUENCE: Self = Self(0x02);
    /// A header and its digest do not agree.
    pub const HEADER_DIGEST: Self = Self(0x03);
    /// Data is outside of what was asked for.
    pub const DATA_OUT_OF_RANGE: Self = Self(0x04);
    /// A PDU has more data than it may (from a controller), or there are more R2Ts than there may
    /// be (from a host).
    pub const LIMIT_EXCEEDED: Self = Self(0x05);
    /// The other side asks for what this one does not have.
    pub const UNSUPPORTED_PARAMETER: Self = Self(0x06);
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::INVALID_HEADER_FIELD => "Invalid PDU Header Field",
            Self::SEQUENCE => "PDU Sequence Error",
            Self::HEADER_DIGEST => "Header Digest Error",
            Self::DATA_OUT_OF_RANGE => "Data Transfer Out of Range",
            Self::LIMIT_EXCEEDED => "Data Transfer Limit or R2T Limit Exceeded",
            Self::UNSUPPORTED_PARAMETER => "Unsupported Parameter",
            Self(other) => return write!(f, "fatal error {other:02X}h"),
        })
    }
}

impl fmt::Debug for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Terminate Connection Request (`H2CTermReq`, `C2HTermReq`): the other side broke the protocol.
/// The header of the PDU that did so follows as data.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct TermReq {
    common: CommonHeader,
    error: U16,
    information: U32,
    reserved: [u8; 10],
}

const _: () = assert!(size_of::<TermReq>() == 24, "a termination's header has 24 bytes");

impl TermReq {
    /// What `sender` says to end the connection for `error`. See [`Self::information`].
    pub fn new(sender: Side, error: FatalError, information: u32) -> Self {
        let kind = match sender {
            Side::Host => PduType::H2C_TERM_REQ,
            Side::Controller => PduType::C2H_TERM_REQ,
        };
        Self {
            common: CommonHeader::new(kind, 24, 0),
            error: error.0.into(),
            information: information.into(),
            reserved: [0; 10],
        }
    }

    /// FES: what went wrong.
    pub fn error(&self) -> FatalError {
        FatalError(self.error.get())
    }

    /// FEI: where the field is in the offending header, in bytes, for an invalid field and an
    /// unsupported parameter; the digest that was received, for a header digest error.
    pub fn information(&self) -> u32 {
        self.information.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_termination_has_the_specifications_bytes() {
        // TCP 1.1, C2HTermReq: common header, FES, FEI (which is not aligned).
        let request = TermReq::new(Side::Controller, FatalError::HEADER_DIGEST, 0x0102_0304);
        let mut expected = [0; 24];
        expected[..14].copy_from_slice(&[3, 0, 24, 0, 24, 0, 0, 0, 3, 0, 4, 3, 2, 1]);
        assert_eq!(request.as_bytes(), expected);
        assert_eq!(
            TermReq::new(Side::Host, FatalError(9), 0).as_bytes()[..9],
            [2, 0, 24, 0, 24, 0, 0, 0, 9]
        );
        let bytes: [u8; 24] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        let request = TermReq::read_from_bytes(&bytes).unwrap();
        assert_eq!(request.error(), FatalError(0x0a09));
        assert_eq!(request.information(), 0x0e0d_0c0b);
    }

    #[test]
    fn fatal_errors_have_the_specifications_numbers() {
        // TCP 1.1, Fatal Error Status.
        for (code, name) in [
            (1, "Invalid PDU Header Field"),
            (2, "PDU Sequence Error"),
            (3, "Header Digest Error"),
            (4, "Data Transfer Out of Range"),
            (5, "Data Transfer Limit or R2T Limit Exceeded"),
            (6, "Unsupported Parameter"),
            (0x17, "fatal error 17h"),
        ] {
            assert_eq!(FatalError(code).to_string(), name);
        }
    }
}
