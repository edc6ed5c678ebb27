use base::Nanos;
use clock::{Class, Group, LocalFuture, Rank, Resource, Stage, sleep};
use media::{Blocks, BlocksShape, Error, MemoryBlocks, Segments};
use std::sync::atomic::{AtomicU64, Ordering};

/// The times of a disk, in virtual time: each operation has a latency, and all bytes go through one
/// channel in order of arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speed {
    pub(crate) read: Nanos,
    pub(crate) write: Nanos,
    pub(crate) flush: Nanos,
    pub(crate) read_bytes_per_second: u64,
    pub(crate) write_bytes_per_second: u64,
}

/// A disk in memory with a given speed.
#[derive(Debug)]
pub(crate) struct PacedDisk {
    memory: MemoryBlocks,
    speed: Speed,
    channel: Resource,
    written: AtomicU64,
}

impl PacedDisk {
    /// Runs inside a reactor.
    pub(crate) fn new(bytes: u64, speed: Speed) -> Self {
        let (block_bytes, parallelism) = (4_096, 16);
        let blocks = bytes / u64::from(block_bytes);
        let memory = MemoryBlocks::new(BlocksShape { block_bytes, blocks, parallelism });
        let group = Group::new();
        group.serve_in_order_of_arrival();
        let channel = group.resource("channel of the disk", Rank::Channel, 1);
        Self { memory, speed, channel, written: AtomicU64::new(0) }
    }

    /// Returns the bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    async fn move_bytes(&self, bytes: u64, per_second: u64, class: Class) {
        let time = Nanos(bytes * 1_000_000_000 / per_second);
        self.channel.serve(class, Stage::Channel, time).await;
    }
}

impl Blocks for PacedDisk {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(async move {
            let bytes = u64::from(count) * u64::from(self.shape().block_bytes);
            self.move_bytes(bytes, self.speed.read_bytes_per_second, class).await;
            sleep(self.speed.read, Stage::Array).await;
            self.memory.read(first, count, class).await
        })
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let bytes = data.iter().map(|part| u64::from(part.len())).sum();
            self.written.fetch_add(bytes, Ordering::Relaxed);
            self.move_bytes(bytes, self.speed.write_bytes_per_second, class).await;
            sleep(self.speed.write, Stage::Array).await;
            self.memory.write(first, data, class).await
        })
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.trim(first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            sleep(self.speed.flush, Stage::Array).await;
            self.memory.flush().await
        })
    }
}
