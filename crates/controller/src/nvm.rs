//! The commands that namespaces of blocks and of zones share.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::gather::gathered;
use crate::logical_blocks::LogicalBlocks;
use crate::span::Span;
use base::{Buf, BufMut};
use media::Segments;
use smallvec::smallvec;
use spec::{BLOCK_RANGE_BYTES, BlockRange, Command, Status};

impl Controller {
    pub(crate) async fn read(&self, blocks: &impl LogicalBlocks, command: &Command) -> Executed {
        let block_bytes = blocks.block_bytes();
        let bytes = Span::of(command).transfer(block_bytes)?;
        let span = Span::of(command).within(blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.read("read").await;
        }
        let segments = blocks.read_span(span).await?;
        if let Some(delays) = &self.delays {
            delays.deliver(bytes).await;
        }
        Ok(Outcome::with_data(gathered(segments, block_bytes)))
    }

    pub(crate) async fn write(
        &self,
        blocks: &impl LogicalBlocks,
        command: &Command,
        data: Buf,
    ) -> Executed {
        let bytes = Span::of(command).fetch(blocks.block_bytes(), &data)?;
        let span = Span::of(command).within(blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.fetch(bytes).await;
            delays.write("write").await;
        }
        blocks.write_from(span.first, smallvec![data]).await?;
        written(blocks, command).await
    }

    /// Compare: the blocks are read and compared in the device.
    pub(crate) async fn compare(
        &self,
        blocks: &impl LogicalBlocks,
        command: &Command,
        data: &Buf,
    ) -> Executed {
        let bytes = Span::of(command).fetch(blocks.block_bytes(), data)?;
        let span = Span::of(command).within(blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.fetch(bytes).await;
            delays.read("compare").await;
        }
        compared(blocks, span, data).await
    }

    /// Verify: the blocks are read, and stay in the device. So it is not held to the length of a
    /// transfer.
    pub(crate) async fn verify<B: LogicalBlocks>(&self, blocks: &B, command: &Command) -> Executed {
        let span = Span::of(command).within(blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.read("verify").await;
        }
        for part in span.parts(B::READ_AT_A_TIME) {
            blocks.read_span(part).await?;
        }
        Ok(Outcome::done())
    }

    /// Dataset Management: blocks that are no longer wanted are given up; what else it may say of
    /// blocks is a hint that is not taken.
    pub(crate) async fn manage_dataset(
        &self,
        blocks: &impl LogicalBlocks,
        command: &Command,
        data: &Buf,
    ) -> Executed {
        let bytes = command.block_ranges() * BLOCK_RANGE_BYTES;
        if data.len() != bytes {
            return Err(Status::INVALID_FIELD);
        }
        let ranges = data.bytes().and_then(BlockRange::all_in).ok_or(Status::INVALID_FIELD)?;
        let span = |range: &BlockRange| Span { first: range.lba(), count: range.blocks().into() };
        let end = blocks.count();
        ranges.iter().try_for_each(|range| span(range).within(end).map(drop))?;
        if let Some(delays) = &self.delays {
            delays.fetch(bytes).await;
            delays.write("dataset").await;
        }
        if !command.is_deallocate() {
            return Ok(Outcome::done());
        }
        for span in ranges.iter().map(span) {
            give_up(blocks, span).await?;
        }
        Ok(Outcome::done())
    }
}

/// Whether blocks, which there are, are `data`. Where payloads are not kept, their checksums are
/// compared.
pub(crate) async fn compared(blocks: &impl LogicalBlocks, span: Span, data: &Buf) -> Executed {
    let found = gathered(blocks.read_span(span).await?, blocks.block_bytes());
    let is_same = match (found.bytes(), data.bytes()) {
        (Some(found), Some(data)) => found == data,
        _ => found.checksum() == data.checksum(),
    };
    if is_same { Ok(Outcome::done()) } else { Err(Status::COMPARE_FAILURE) }
}

/// Blocks that are given up in one go: 1 GiB. A command may name a whole device many times, and
/// others go on between.
const GIVEN_UP_AT_A_TIME: u64 = 1 << 18;

/// Gives up blocks, part by part.
pub(crate) async fn give_up(blocks: &impl LogicalBlocks, span: Span) -> Result<(), Status> {
    for part in span.parts(GIVEN_UP_AT_A_TIME) {
        blocks.give_up(part).await?;
        clock::give_way().await;
    }
    Ok(())
}

/// So many blocks of zeros.
pub(crate) fn zeros(block_bytes: u32, count: u64) -> Segments {
    let block = BufMut::unpooled(block_bytes as usize).freeze();
    (0..count).map(|_| block.clone()).collect()
}

/// Ends a command that has written: at once, or when all is on the medium if it asks for that.
pub(crate) async fn written(blocks: &impl LogicalBlocks, command: &Command) -> Executed {
    if command.force_unit_access() { flush(blocks).await } else { Ok(Outcome::done()) }
}

/// Makes durable what was written.
pub(crate) async fn flush(blocks: &impl LogicalBlocks) -> Executed {
    blocks.make_durable().await.map(|()| Outcome::done())
}
