//! The protocol data units as bytes (TCP 1.1, PDU Definitions).

mod capsule;
mod data;
mod header;
mod initialize;
mod termination;

pub use capsule::{CapsuleCmd, CapsuleResp};
pub use data::{C2hData, H2cData, R2t};
pub use header::{CommonHeader, DIGEST_BYTES, PduType, Side};
pub use initialize::{Digests, IcReq, IcResp};
pub use termination::{FatalError, TERMINATION_DATA_MAX, TermReq};

/// A PDU's header, where it was received.
#[derive(Clone, Copy, Debug)]
pub enum Header<'a> {
    /// The host opens the connection.
    IcReq(&'a IcReq),
    /// The controller takes it.
    IcResp(&'a IcResp),
    /// Either side says that the other broke the protocol.
    TermReq(&'a TermReq),
    /// A command, with or without data.
    CapsuleCmd(&'a CapsuleCmd),
    /// The response to a command.
    CapsuleResp(&'a CapsuleResp),
    /// Data that an R2T asked for.
    H2cData(&'a H2cData),
    /// Data of a command that reads.
    C2hData(&'a C2hData),
    /// The controller is ready for data.
    R2t(&'a R2t),
}

impl<'a> Header<'a> {
    /// The header in `bytes`, which are as many as a PDU of type `kind` has. `None` if there is no
    /// such type.
    #[inline]
    pub fn read(kind: PduType, bytes: &'a [u8]) -> Option<Self> {
        use zerocopy::FromBytes;
        Some(match kind {
            PduType::IC_REQ => Self::IcReq(IcReq::ref_from_bytes(bytes).ok()?),
            PduType::IC_RESP => Self::IcResp(IcResp::ref_from_bytes(bytes).ok()?),
            PduType::H2C_TERM_REQ | PduType::C2H_TERM_REQ => {
                Self::TermReq(TermReq::ref_from_bytes(bytes).ok()?)
            }
            PduType::CAPSULE_CMD => Self::CapsuleCmd(CapsuleCmd::ref_from_bytes(bytes).ok()?),
            PduType::CAPSULE_RESP => Self::CapsuleResp(CapsuleResp::ref_from_bytes(bytes).ok()?),
            PduType::H2C_DATA => Self::H2cData(H2cData::ref_from_bytes(bytes).ok()?),
            PduType::C2H_DATA => Self::C2hData(C2hData::ref_from_bytes(bytes).ok()?),
            PduType::R2T => Self::R2t(R2t::ref_from_bytes(bytes).ok()?),
            _ => return None,
        })
    }
}
