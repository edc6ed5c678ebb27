//! Blocks that take their time, and fail when they are told to.

use base::Nanos;
use clock::{Class, LocalFuture, Stage, sleep};
use media::{Blocks, BlocksShape, Error, MemoryBlocks, Segments};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) const WRITE: Nanos = Nanos(100_000);
pub(crate) const FLUSH: Nanos = Nanos(1_000_000);
/// Of a read, once reads take time.
pub(crate) const READ: Nanos = Nanos(50_000);

/// What was asked of the blocks.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// First block and blocks of each write, but for those of the ledger.
    pub(crate) writes: Vec<(u64, u64)>,
    /// The same of each read.
    pub(crate) reads: Vec<(u64, u64)>,
    pub(crate) flushes: u32,
    pub(crate) flushing: u32,
    pub(crate) flushing_max: u32,
    pub(crate) writing: u32,
    pub(crate) writing_max: u32,
}

pub(crate) struct Slow {
    memory: Arc<MemoryBlocks>,
    counts: Mutex<Counts>,
    reads_take_time: AtomicBool,
    /// How long the write from block `.0` on takes.
    slower: Mutex<Option<(u64, Nanos)>>,
    fails_write: Mutex<Option<(u64, Error)>>,
    fails_flush: Mutex<Option<Error>>,
}

impl Slow {
    pub(crate) fn new(memory: Arc<MemoryBlocks>) -> Arc<Self> {
        Arc::new(Self {
            memory,
            counts: Mutex::default(),
            reads_take_time: AtomicBool::new(false),
            slower: Mutex::default(),
            fails_write: Mutex::default(),
            fails_flush: Mutex::default(),
        })
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().expect("one thread")
    }

    /// From here on a read takes [`READ`].
    pub(crate) fn slow_reads_down(&self) {
        self.reads_take_time.store(true, Relaxed);
    }

    pub(crate) fn slow_down(&self, first: u64, time: Nanos) {
        *self.slower.lock().expect("one thread") = Some((first, time));
    }

    /// The write with this block fails, and no other.
    pub(crate) fn fail_write(&self, block: u64, error: Error) {
        *self.fails_write.lock().expect("one thread") = Some((block, error));
    }

    /// The next flush fails, and no other.
    pub(crate) fn fail_flush(&self, error: Error) {
        *self.fails_flush.lock().expect("one thread") = Some(error);
    }

    fn failure(&self, first: u64, count: u64) -> Option<Error> {
        let mut fails = self.fails_write.lock().expect("one thread");
        let failure = fails.take_if(|(block, _)| (first..first + count).contains(block));
        failure.map(|(_, error)| error)
    }

    /// Both copies of the ledger, of 4 KiB each, end where the last 4 KiB begin.
    fn is_ledger(&self, block: u64) -> bool {
        let BlocksShape { block_bytes, blocks, .. } = self.shape();
        let block_bytes = u64::from(block_bytes);
        let end = blocks * block_bytes / 4_096 * 4_096 - 4_096;
        ((end - 8_192) / block_bytes..end / block_bytes).contains(&block)
    }

    fn time(&self, first: u64) -> Nanos {
        let slower = *self.slower.lock().expect("one thread");
        slower.filter(|(block, _)| *block == first).map_or(WRITE, |(_, time)| time)
    }
}

impl Blocks for Slow {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.counts().reads.push((first, count.into()));
        Box::pin(async move {
            if self.reads_take_time.load(Relaxed) {
                sleep(READ, Stage::Array).await;
            }
            self.memory.read(first, count, class).await
        })
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        let bytes: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        let count = bytes / u64::from(self.shape().block_bytes);
        Box::pin(async move {
            if self.is_ledger(first) {
                return self.memory.write(first, data, class).await;
            }
            {
                let mut counts = self.counts();
                counts.writes.push((first, count));
                counts.writing += 1;
                counts.writing_max = counts.writing_max.max(counts.writing);
            }
            sleep(self.time(first), Stage::Array).await;
            self.counts().writing -= 1;
            match self.failure(first, count) {
                Some(error) => Err(error),
                None => self.memory.write(first, data, class).await,
            }
        })
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.trim(first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            {
                let mut counts = self.counts();
                counts.flushes += 1;
                counts.flushing += 1;
                counts.flushing_max = counts.flushing_max.max(counts.flushing);
            }
            sleep(FLUSH, Stage::Array).await;
            self.counts().flushing -= 1;
            self.fails_flush.lock().expect("one thread").take().map_or(Ok(()), Err)
        })
    }
}
