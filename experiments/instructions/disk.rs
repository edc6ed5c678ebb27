use crate::aside::aside;
use base::{BufPool, Nanos};
use clock::{Class, LocalFuture, Stage, sleep};
use media::{Blocks, BlocksShape, Error, Segments};
use smallvec::smallvec;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The latency of an operation, in virtual time.
const LATENCY: Nanos = Nanos::from_micros(80);

const BLOCK_BYTES: u32 = 4_096;

/// Bytes of freed buffers of each size kept for later reads.
const POOL_BYTES: usize = 8 << 20;

/// A disk in memory, whose own work is not counted. Like a disk with direct I/O, it reads into one
/// aligned buffer, and keeps no buffer that was written.
#[derive(Debug)]
pub(crate) struct Disk {
    bytes: Mutex<Vec<u8>>,
    blocks: u64,
    pool: BufPool,
}

impl Disk {
    pub(crate) fn new(bytes: u64) -> Self {
        let len = usize::try_from(bytes).expect("it fits into memory");
        Self {
            bytes: Mutex::new(vec![0; len]),
            blocks: bytes / u64::from(BLOCK_BYTES),
            pool: BufPool::new(POOL_BYTES),
        }
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the offset in bytes of block `first`.
fn offset(first: u64) -> usize {
    usize::try_from(first * u64::from(BLOCK_BYTES)).expect("the disk is in memory")
}

impl Blocks for Disk {
    fn shape(&self) -> BlocksShape {
        BlocksShape { block_bytes: BLOCK_BYTES, blocks: self.blocks, parallelism: 64 }
    }

    fn read(&self, first: u64, count: u32, _: Class) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(async move {
            sleep(LATENCY, Stage::Array).await;
            let len = offset(u64::from(count));
            // A disk takes a buffer of its pool too, so this is counted.
            let mut buffer = self.pool.take(len);
            aside(|| {
                buffer.as_mut().copy_from_slice(&self.bytes()[offset(first)..][..len]);
            });
            Ok(smallvec![buffer.freeze()])
        })
    }

    fn write(&self, first: u64, data: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            sleep(LATENCY, Stage::Array).await;
            aside(|| {
                let (mut bytes, mut at) = (self.bytes(), offset(first));
                for part in data.iter().map(|part| part.bytes().expect("a drive writes bytes")) {
                    bytes[at..][..part.len()].copy_from_slice(part);
                    at += part.len();
                }
            });
            Ok(())
        })
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            sleep(LATENCY, Stage::Array).await;
            aside(|| self.bytes()[offset(first)..][..offset(count)].fill(0));
            Ok(())
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            sleep(LATENCY, Stage::Array).await;
            Ok(())
        })
    }
}
