use super::{Fault, Terms};
use crate::pdu::{
    CommonHeader, DIGEST_BYTES, Digests, FatalError, PduType, Side, TERMINATION_DATA_MAX,
};
use controller::IN_CAPSULE_BYTES_MAX;

/// The layout of a PDU, from its common header and the connection's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of the header without its digest.
    pub(super) header_len: usize,
    /// Bytes before the data: header, digest, padding.
    pub(super) data_at: usize,
    pub(super) data_len: u32,
    pub(super) digests: Digests,
}

/// Returns the layout of a PDU that `receiver` has received, from its first 8 bytes.
#[inline]
pub(super) fn layout(common: CommonHeader, receiver: Side, terms: Terms) -> Result<Layout, Fault> {
    let kind = common.kind();
    let header_len = match kind.header_len_and_sender() {
        Some((header_len, sender)) if sender != receiver => header_len,
        _ => return Err(Fault::field(CommonHeader::TYPE_AT)),
    };
    if common.header_len() != header_len {
        return Err(Fault::field(CommonHeader::HEADER_LEN_AT));
    }
    let digests = if kind.has_digests() { terms.digests } else { Digests::NONE };
    if kind.has_digests() && common.has(CommonHeader::HEADER_DIGEST) != digests.header {
        return Err(Fault::field(CommonHeader::FLAGS_AT));
    }
    let header_len = usize::from(header_len);
    let header_end = header_len + digest_len(digests.header);
    let needs_data = matches!(kind, PduType::H2C_DATA | PduType::C2H_DATA);
    let after_header = (common.len() as usize).checked_sub(header_end);
    if after_header.is_none() {
        return Err(Fault::field(CommonHeader::LEN_AT));
    }
    if after_header == Some(0) && !needs_data {
        return Ok(Layout { header_len, data_at: header_end, data_len: 0, digests });
    }
    let data_at = data_at(common, header_end, terms.alignment(receiver))?;
    let around = data_at + digest_len(digests.data);
    let data_len = (common.len() as usize).checked_sub(around).filter(|len| *len > 0);
    let Some(data_len) = data_len.and_then(|len| u32::try_from(len).ok()) else {
        return Err(Fault::field(CommonHeader::LEN_AT));
    };
    check_data(common, data_len, digests, terms)?;
    Ok(Layout { header_len, data_at, data_len, digests })
}

fn data_at(common: CommonHeader, header_end: usize, alignment: u8) -> Result<usize, Fault> {
    if matches!(common.kind(), PduType::H2C_TERM_REQ | PduType::C2H_TERM_REQ) {
        return Ok(header_end);
    }
    let data_at = usize::from(common.data_offset());
    // The smallest alignment needs no division.
    let is_aligned = match alignment {
        4 => data_at.is_multiple_of(4),
        _ => data_at.is_multiple_of(alignment.into()),
    };
    if data_at < header_end || !is_aligned {
        return Err(Fault::field(CommonHeader::DATA_OFFSET_AT));
    }
    Ok(data_at)
}

/// Checks that a PDU of this type may have that much data.
fn check_data(
    common: CommonHeader,
    data_len: u32,
    digests: Digests,
    terms: Terms,
) -> Result<(), Fault> {
    let kind = common.kind();
    if kind.has_digests() && common.has(CommonHeader::DATA_DIGEST) != digests.data {
        return Err(Fault::field(CommonHeader::FLAGS_AT));
    }
    let (max, fault) = match kind {
        PduType::CAPSULE_CMD => (IN_CAPSULE_BYTES_MAX, Fault::field(CommonHeader::LEN_AT)),
        PduType::H2C_DATA => (terms.h2c_data_max, Fault::of(FatalError::LIMIT_EXCEEDED)),
        PduType::C2H_DATA => return Ok(()),
        PduType::H2C_TERM_REQ | PduType::C2H_TERM_REQ => {
            (TERMINATION_DATA_MAX, Fault::field(CommonHeader::LEN_AT))
        }
        _ => (0, Fault::field(CommonHeader::LEN_AT)),
    };
    if data_len > max { Err(fault) } else { Ok(()) }
}

/// Returns the bytes of a digest, 0 if there is none.
#[inline]
pub(super) const fn digest_len(is_there: bool) -> usize {
    if is_there { DIGEST_BYTES } else { 0 }
}
