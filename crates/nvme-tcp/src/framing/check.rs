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
    let (data_at, data_len) = data(common, header_end, digests, terms, receiver)?;
    Ok(Layout { header_len, data_at, data_len, digests })
}

/// Returns where the data of a PDU begins, and its length.
#[inline]
fn data(
    common: CommonHeader,
    header_end: usize,
    digests: Digests,
    terms: Terms,
    receiver: Side,
) -> Result<(usize, u32), Fault> {
    let kind = common.kind();
    let is_termination = matches!(kind, PduType::H2C_TERM_REQ | PduType::C2H_TERM_REQ);
    let data_at = if is_termination { header_end } else { usize::from(common.data_offset()) };
    // The smallest alignment needs no division.
    let is_aligned = match terms.alignment(receiver) {
        4 => data_at.is_multiple_of(4),
        alignment => data_at.is_multiple_of(alignment.into()),
    };
    if !is_termination && (data_at < header_end || !is_aligned) {
        return Err(Fault::field(CommonHeader::DATA_OFFSET_AT));
    }
    let around = data_at + digest_len(digests.data);
    let data_len = (common.len() as usize).checked_sub(around).filter(|len| *len > 0);
    let Some(data_len) = data_len.and_then(|len| u32::try_from(len).ok()) else {
        return Err(Fault::field(CommonHeader::LEN_AT));
    };
    if kind.has_digests() && common.has(CommonHeader::DATA_DIGEST) != digests.data {
        return Err(Fault::field(CommonHeader::FLAGS_AT));
    }
    let max = match kind {
        PduType::CAPSULE_CMD => IN_CAPSULE_BYTES_MAX,
        PduType::H2C_DATA if data_len > terms.h2c_data_max => {
            return Err(Fault::of(FatalError::LIMIT_EXCEEDED));
        }
        PduType::H2C_DATA | PduType::C2H_DATA => u32::MAX,
        _ if is_termination => TERMINATION_DATA_MAX,
        _ => 0,
    };
    if data_len > max {
        return Err(Fault::field(CommonHeader::LEN_AT));
    }
    Ok((data_at, data_len))
}

/// Returns the bytes of a digest, 0 if there is none.
#[inline]
pub(super) const fn digest_len(is_there: bool) -> usize {
    if is_there { DIGEST_BYTES } else { 0 }
}
