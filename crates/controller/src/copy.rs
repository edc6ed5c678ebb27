use crate::span::{Span, TRANSFER_BYTES_MAX};
use base::Buf;
use smallvec::SmallVec;
use spec::{COPY_RANGE_BYTES, Command, CopyRange, Status};

/// What a Copy asks for, in block and zoned namespaces alike.
pub(crate) struct Copy {
    /// First block and count of each range that is read, in order.
    pub(crate) sources: SmallVec<[(u64, u32); 4]>,
    /// The first block that is written.
    pub(crate) target: u64,
}

impl Copy {
    /// Decodes a Copy whose source ranges are `data`, for a namespace of `blocks` logical blocks of
    /// `block_bytes` each. Together they are at most as long as a transfer (NVM 1.1, Identify
    /// Namespace data structure: MSRC 255, MSSRL and MCL of as many blocks).
    pub(crate) fn decode(
        command: &Command,
        data: &Buf,
        block_bytes: u32,
        blocks: u64,
    ) -> Result<Self, Status> {
        if command.copy_format() != 0 || data.len() != command.copy_ranges() * COPY_RANGE_BYTES {
            return Err(Status::INVALID_FIELD);
        }
        let ranges = data.bytes().and_then(CopyRange::all_in).ok_or(Status::INVALID_FIELD)?;
        let count: u64 = ranges.iter().map(|range| u64::from(range.blocks())).sum();
        if count * u64::from(block_bytes) > TRANSFER_BYTES_MAX.into() {
            return Err(Status::COMMAND_SIZE_LIMIT_EXCEEDED);
        }
        let target = Span { first: command.lba(), count }.within(blocks)?.first;
        let source = |range: &CopyRange| {
            let span = Span { first: range.lba(), count: range.blocks().into() };
            span.within(blocks).map(|span| (span.first, range.blocks()))
        };
        Ok(Self { sources: ranges.iter().map(source).collect::<Result<_, _>>()?, target })
    }
}
