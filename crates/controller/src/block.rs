//! The NVM command set on logical blocks without zones.

use crate::completion::Executed;
use crate::controller::Controller;
use crate::copy::Copy;
use crate::logical_blocks::{LockedBlocks, LogicalBlocks};
use crate::nvm::{flush, written, zeros};
use crate::span::Span;
use crate::status::status_of_read;
use crate::submission::Submission;
use base::Buf;
use clock::{Class, join_all};
use media::{Blocks, Segments};
use spec::{Command, Opcode, Status};
use std::sync::Arc;

/// Maximum blocks of zeros in one write.
const ZEROES_AT_A_TIME: u64 = 256;

impl Controller {
    pub(crate) async fn execute_block(
        &self,
        blocks: &Arc<dyn Blocks>,
        submission: Submission,
    ) -> Executed {
        let Submission { command, data, .. } = submission;
        let locks = &self.span_locks;
        let blocks = &LockedBlocks { blocks, locks, nsid: command.nsid() };
        // Rare futures are boxed, so that a command stays small.
        match command.opcode() {
            Opcode::READ => self.read(blocks, &command).await,
            Opcode::WRITE => self.write(blocks, &command, data).await,
            Opcode::WRITE_ZEROES => Box::pin(self.write_zeroes(blocks, &command)).await,
            Opcode::DATASET_MANAGEMENT => {
                Box::pin(self.manage_dataset(blocks, &command, &data)).await
            }
            Opcode::COPY => Box::pin(self.copy(blocks, &command, &data)).await,
            Opcode::COMPARE => Box::pin(self.compare(blocks, &command, &data)).await,
            Opcode::VERIFY => Box::pin(self.verify(blocks, &command)).await,
            Opcode::FLUSH => flush(blocks).await,
            _ => Err(Status::INVALID_OPCODE),
        }
    }

    /// Executes Write Zeroes: deallocates the blocks if allowed, otherwise writes zeros, as durable
    /// as other data. The zeros do not cross the link, so the transfer limit does not apply.
    async fn write_zeroes(&self, blocks: &LockedBlocks<'_>, command: &Command) -> Executed {
        let span = Span::of(command).within(blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.write("write zeroes").await;
        }
        if command.may_deallocate() {
            blocks.give_up(span).await?;
            return written(blocks, command).await;
        }
        for part in span.parts(ZEROES_AT_A_TIME) {
            blocks.write_from(part.first, zeros(blocks.block_bytes(), part.count)).await?;
        }
        written(blocks, command).await
    }

    /// Executes Copy: reads all ranges concurrently before it writes, so that they may overlap.
    async fn copy(&self, blocks: &LockedBlocks<'_>, command: &Command, data: &Buf) -> Executed {
        let copy = Copy::decode(command, data, blocks.block_bytes(), blocks.count())?;
        if let Some(delays) = &self.delays {
            delays.fetch(data.len()).await;
            delays.write("copy").await;
        }
        let reads = copy.sources.into_iter().map(|(first, count)| {
            let blocks = blocks.blocks.clone();
            async move { blocks.read(first, count, Class::HostRead).await }
        });
        let mut copied = Segments::new();
        for read in join_all(reads.collect()).await {
            copied.extend(read.map_err(status_of_read)?);
        }
        blocks.write_from(copy.target, copied).await?;
        written(blocks, command).await
    }
}
