//! The NVM command set, on logical blocks.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::copy::Copy;
use crate::gather::gathered;
use crate::queue::Submission;
use crate::span::Span;
use crate::status::{status_of_read, status_of_write};
use base::{Buf, BufMut};
use clock::{Class, join_all};
use media::{Blocks, Segments};
use smallvec::smallvec;
use spec::{BLOCK_RANGE_BYTES, BlockRange, Command, Opcode, Status};
use std::sync::Arc;

/// Blocks of zeros that are written in one go.
const ZEROES_AT_A_TIME: u64 = 256;

impl Controller {
    pub(crate) async fn execute_block(
        &self,
        blocks: &Arc<dyn Blocks>,
        submission: Submission,
    ) -> Executed {
        let Submission { command, data, .. } = submission;
        match command.opcode() {
            Opcode::READ => self.read(blocks, &command).await,
            Opcode::WRITE => self.write(blocks, &command, data).await,
            Opcode::WRITE_ZEROES => self.write_zeroes(blocks, &command).await,
            Opcode::DATASET_MANAGEMENT => self.manage_dataset(blocks, &command, &data).await,
            Opcode::COPY => self.copy(blocks, &command, &data).await,
            Opcode::FLUSH => flush(&**blocks).await,
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    async fn read(&self, blocks: &Arc<dyn Blocks>, command: &Command) -> Executed {
        let shape = blocks.shape();
        let (count, bytes) = Span::of(command).transfer(shape.block_bytes)?;
        let span = Span::of(command).within(shape.blocks)?;
        blocks.expect(span.first);
        self.firmware.handle("read", self.firmware.costs.t_read, None).await;
        let read = blocks.read(span.first, count, Class::HostRead).await;
        let segments = read.map_err(status_of_read)?;
        self.link.deliver(bytes).await;
        Ok(Outcome::with_data(gathered(segments, shape.block_bytes)))
    }

    async fn write(&self, blocks: &Arc<dyn Blocks>, command: &Command, data: Buf) -> Executed {
        let shape = blocks.shape();
        let bytes = Span::of(command).fetch(shape.block_bytes, &data)?;
        let span = Span::of(command).within(shape.blocks)?;
        blocks.expect(span.first);
        self.link.fetch(bytes).await;
        self.firmware.handle("write", self.firmware.costs.t_write, None).await;
        let written = blocks.write(span.first, smallvec![data], Class::HostWrite).await;
        written.map_err(status_of_write)?;
        if command.force_unit_access() { flush(&**blocks).await } else { Ok(Outcome::done()) }
    }

    /// Write Zeroes: zeros are written, which outlive a loss of power as any data does. They do not
    /// cross the link, so that they are not held to the length of a transfer.
    async fn write_zeroes(&self, blocks: &Arc<dyn Blocks>, command: &Command) -> Executed {
        let shape = blocks.shape();
        let span = Span::of(command).within(shape.blocks)?;
        self.firmware.handle("write zeroes", self.firmware.costs.t_write, None).await;
        let zeros = BufMut::unpooled(shape.block_bytes as usize).freeze();
        let (mut next, end) = (span.first, span.first + span.count);
        while next < end {
            let count = (end - next).min(ZEROES_AT_A_TIME);
            let data = (0..count).map(|_| zeros.clone()).collect();
            let written = blocks.write(next, data, Class::HostWrite).await;
            written.map_err(status_of_write)?;
            next += count;
        }
        if command.force_unit_access() { flush(&**blocks).await } else { Ok(Outcome::done()) }
    }

    /// Dataset Management: blocks that are no longer wanted are given up; what else it may say of
    /// blocks is a hint that is not taken.
    async fn manage_dataset(
        &self,
        blocks: &Arc<dyn Blocks>,
        command: &Command,
        data: &Buf,
    ) -> Executed {
        let bytes = command.block_ranges() * BLOCK_RANGE_BYTES;
        if data.len() != bytes {
            return Err(Status::INVALID_FIELD);
        }
        let ranges = data.bytes().and_then(BlockRange::all_in).ok_or(Status::INVALID_FIELD)?;
        let span = |range: &BlockRange| Span { first: range.lba(), count: range.blocks().into() };
        let end = blocks.shape().blocks;
        ranges.iter().try_for_each(|range| span(range).within(end).map(drop))?;
        self.link.fetch(bytes).await;
        self.firmware.handle("dataset", self.firmware.costs.t_write, None).await;
        if !command.is_deallocate() {
            return Ok(Outcome::done());
        }
        for span in ranges.iter().map(span) {
            let trimmed = blocks.trim(span.first, span.count, Class::HostWrite).await;
            trimmed.map_err(status_of_write)?;
        }
        Ok(Outcome::done())
    }

    /// Copy: all is read, side by side, before anything is written, so that ranges may overlap.
    async fn copy(&self, blocks: &Arc<dyn Blocks>, command: &Command, data: &Buf) -> Executed {
        let shape = blocks.shape();
        let copy = Copy::decode(command, data, shape.block_bytes, shape.blocks)?;
        self.link.fetch(data.len()).await;
        self.firmware.handle("copy", self.firmware.costs.t_write, None).await;
        let reads = copy.sources.into_iter().map(|(first, count)| {
            let blocks = blocks.clone();
            async move { blocks.read(first, count, Class::HostRead).await }
        });
        let mut copied = Segments::new();
        for read in join_all(reads.collect()).await {
            copied.extend(read.map_err(status_of_read)?);
        }
        let written = blocks.write(copy.target, copied, Class::HostWrite).await;
        written.map_err(status_of_write)?;
        if command.force_unit_access() { flush(&**blocks).await } else { Ok(Outcome::done()) }
    }
}

async fn flush(blocks: &dyn Blocks) -> Executed {
    blocks.flush().await.map(|()| Outcome::done()).map_err(status_of_write)
}
