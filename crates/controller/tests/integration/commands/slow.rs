//! Blocks in memory whose reads and writes take random times, so that commands overlap.

use base::{Nanos, Rng};
use clock::{Class, LocalFuture, Stage};
use media::{Blocks, BlocksShape, Error, MemoryBlocks, Segments};
use std::sync::Mutex;

/// Each read and write takes up to this long.
const LONGEST: Nanos = Nanos::from_micros(20);

/// A read returns the content at its begin, and a write changes it at its end. So compare and write
/// without a lock loses writes of other commands.
pub(crate) struct Slow {
    inner: MemoryBlocks,
    rng: Mutex<Rng>,
}

impl Slow {
    pub(crate) fn new(shape: BlocksShape, seed: u64) -> Self {
        Self { inner: MemoryBlocks::new(shape), rng: Mutex::new(Rng::new(seed)) }
    }

    async fn pass(&self) {
        let time = self.rng.lock().expect("one thread").below(LONGEST.0);
        clock::sleep(Nanos(time), Stage::Array).await;
    }
}

impl Blocks for Slow {
    fn shape(&self) -> BlocksShape {
        self.inner.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(async move {
            let found = self.inner.read(first, count, class).await;
            self.pass().await;
            found
        })
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.pass().await;
            self.inner.write(first, data, class).await
        })
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.pass().await;
            self.inner.trim(first, count, class).await
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.inner.flush()
    }
}
