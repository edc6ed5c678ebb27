use crate::span::Span;
use crate::span_locks::SpanLocks;
use crate::status::{status_of_read, status_of_write, status_of_zones};
use clock::Class;
use ftl::{ZoneError, Zones};
use media::{Blocks, Segments};
use spec::Status;
use std::sync::Arc;

/// What the NVM command set reads and writes: logical blocks, whether they come in zones or not.
pub(crate) trait LogicalBlocks {
    /// Blocks that a command reads in one go if it moves no data to the host.
    const READ_AT_A_TIME: u64;

    /// Bytes of a block.
    fn block_bytes(&self) -> u32;

    /// How many blocks there are.
    fn count(&self) -> u64;

    /// The content of blocks that there are, not more than a `u32` counts.
    async fn read_span(&self, span: Span) -> Result<Segments, Status>;

    /// Writes blocks that there are, from `first` on.
    async fn write_from(&self, first: u64, data: Segments) -> Result<(), Status>;

    /// These blocks, which there are, need not be kept: they read as they are, or as zeros.
    async fn give_up(&self, span: Span) -> Result<(), Status>;

    /// Returns when all that was written before outlives a loss of power.
    async fn make_durable(&self) -> Result<(), Status>;
}

impl LogicalBlocks for Arc<dyn Blocks> {
    const READ_AT_A_TIME: u64 = 256;

    fn block_bytes(&self) -> u32 {
        self.shape().block_bytes
    }

    fn count(&self) -> u64 {
        self.shape().blocks
    }

    async fn read_span(&self, span: Span) -> Result<Segments, Status> {
        self.read(span.first, span.short(), Class::HostRead).await.map_err(status_of_read)
    }

    async fn write_from(&self, first: u64, data: Segments) -> Result<(), Status> {
        self.write(first, data, Class::HostWrite).await.map_err(status_of_write)
    }

    async fn give_up(&self, span: Span) -> Result<(), Status> {
        self.trim(span.first, span.count, Class::HostWrite).await.map_err(status_of_write)
    }

    async fn make_durable(&self) -> Result<(), Status> {
        self.flush().await.map_err(status_of_write)
    }
}

/// The blocks of a namespace. Writes lock their blocks against fused operations.
pub(crate) struct LockedBlocks<'a> {
    pub(crate) blocks: &'a Arc<dyn Blocks>,
    pub(crate) locks: &'a SpanLocks,
    pub(crate) nsid: u32,
}

impl LogicalBlocks for LockedBlocks<'_> {
    const READ_AT_A_TIME: u64 = <Arc<dyn Blocks> as LogicalBlocks>::READ_AT_A_TIME;

    fn block_bytes(&self) -> u32 {
        self.blocks.block_bytes()
    }

    fn count(&self) -> u64 {
        self.blocks.count()
    }

    async fn read_span(&self, span: Span) -> Result<Segments, Status> {
        self.blocks.read_span(span).await
    }

    async fn write_from(&self, first: u64, data: Segments) -> Result<(), Status> {
        let bytes: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        let span = Span { first, count: bytes / u64::from(self.block_bytes()) };
        let _held = self.locks.share(self.nsid, span).await;
        self.blocks.write_from(first, data).await
    }

    async fn give_up(&self, span: Span) -> Result<(), Status> {
        let _held = self.locks.share(self.nsid, span).await;
        self.blocks.give_up(span).await
    }

    async fn make_durable(&self) -> Result<(), Status> {
        self.blocks.make_durable().await
    }
}

impl LogicalBlocks for Arc<Zones> {
    /// All, for no read may reach into another zone.
    const READ_AT_A_TIME: u64 = u64::MAX;

    fn block_bytes(&self) -> u32 {
        self.shape().block_bytes
    }

    fn count(&self) -> u64 {
        self.shape().blocks()
    }

    async fn read_span(&self, span: Span) -> Result<Segments, Status> {
        let read = self.read(span.first, span.short(), Class::HostRead).await;
        read.map_err(|error| status_of_zones(error, status_of_read))
    }

    async fn write_from(&self, first: u64, data: Segments) -> Result<(), Status> {
        self.write(first, data, Class::HostWrite).await.map_err(status_of_zone_write)
    }

    /// Zones keep what they have until they are reset as a whole.
    async fn give_up(&self, _: Span) -> Result<(), Status> {
        Ok(())
    }

    async fn make_durable(&self) -> Result<(), Status> {
        self.flush().await;
        Ok(())
    }
}

/// The status that tells a host why zones did not change.
pub(crate) fn status_of_zone_write(error: ZoneError) -> Status {
    status_of_zones(error, status_of_write)
}
