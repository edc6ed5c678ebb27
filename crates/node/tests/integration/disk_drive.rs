//! A drive of pairs on blocks, as hosts' commands find it.

use base::Buf;
use clock::{Class, LocalFuture};
use controller::{QueuePair, Submission};
use drive::{Durability, Format, OpenError};
use engine::How;
use media::{Blocks, BlocksShape, Error, MemoryBlocks, Segments};
use node::{DISK_DRIVE_EXTENTS_MIN, DiskDrive, DiskError, DiskOptions, capacity_bytes};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const EXTENT_BYTES: u64 = 1 << 20;
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };

/// Blocks in memory that count what they are asked.
struct Counting {
    memory: MemoryBlocks,
    reads: AtomicU64,
    flushes: AtomicU64,
}

impl Counting {
    fn new(extents: u64) -> Arc<Self> {
        let blocks = (extents * EXTENT_BYTES + (24 << 10)) / 512;
        let shape = BlocksShape { block_bytes: 512, blocks, parallelism: 4 };
        let (reads, flushes) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { memory: MemoryBlocks::new(shape), reads, flushes })
    }
}

impl Blocks for Counting {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.reads.fetch_add(1, Relaxed);
        self.memory.read(first, count, class)
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.write(first, data, class)
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.memory.trim(first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.flushes.fetch_add(1, Relaxed);
        self.memory.flush()
    }
}

async fn open(blocks: &Arc<Counting>, durability: Durability) -> DiskDrive {
    let options = DiskOptions { durability, ..DiskOptions::default() };
    DiskDrive::open(blocks.clone(), options).await.expect("it is a drive")
}

async fn ask(queue: &QueuePair, command: Command, data: Buf) -> Status {
    queue.submit(Submission { command, long_key: None, data });
    queue.next().await.status
}

async fn store(queue: &QueuePair, key: &[u8], value: &[u8]) -> Status {
    let len = u32::try_from(value.len()).expect("a short value");
    ask(queue, Command::store(1, key, len, StoreOptions::NONE), Buf::copy_from(value)).await
}

async fn retrieve(queue: &QueuePair, key: &[u8]) -> Option<Vec<u8>> {
    let command = Command::retrieve(1, key, 1 << 20);
    queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
    let completion = queue.next().await;
    (completion.status == Status::SUCCESS)
        .then(|| completion.data.bytes().expect("of a disk").to_vec())
}

#[test]
fn a_flush_of_a_host_reaches_the_disk_where_the_answer_to_a_store_does_not() {
    for (durability, by_store, by_flush) in
        [(Durability::Group, 1, 0), (Durability::EverySecond, 0, 1), (Durability::Capacitor, 0, 0)]
    {
        let blocks = Counting::new(24);
        Reactor::new(None).run(async {
            DiskDrive::format(blocks.clone(), FORMAT).await.expect("it is large enough");
            let drive = open(&blocks, durability).await;
            let queue = drive.controller().queue_pair();
            let before = blocks.flushes.load(Relaxed);
            assert_eq!(store(&queue, b"key", &[7; 5_000]).await, Status::SUCCESS);
            let stored = blocks.flushes.load(Relaxed);
            assert_eq!(ask(&queue, Command::flush(1), Buf::phantom(0, 0)).await, Status::SUCCESS);
            let flushed = blocks.flushes.load(Relaxed);
            let counted = (stored - before, flushed - stored);
            assert_eq!(counted, (by_store, by_flush), "{durability:?}");
        });
    }
}

/// Overwritten many times, so that cleaning was at work when it was closed.
#[test]
fn what_was_closed_opens_by_its_checkpoint_and_reads_none_of_its_log() {
    let blocks = Counting::new(24);
    let value = |key: u8, round: u8| vec![key ^ round; 3_000 + usize::from(key) * 40];
    Reactor::new(None).run(async {
        DiskDrive::format(blocks.clone(), FORMAT).await.expect("it is large enough");
        let drive = open(&blocks, Durability::Group).await;
        let queue = drive.controller().queue_pair();
        for round in 0..20 {
            for key in 0..250 {
                assert_eq!(store(&queue, &[key], &value(key, round)).await, Status::SUCCESS);
            }
        }
        assert!(drive.store().counters().victims > 0, "it was not full");
        drive.close().await.expect("nothing fails");
    });
    Reactor::new(None).run(async {
        let drive = open(&blocks, Durability::Group).await;
        let recovery = drive.recovery();
        assert_eq!((recovery.how, recovery.records), (How::Checkpoint, 0));
        let queue = drive.controller().queue_pair();
        for key in 0..250 {
            let before = blocks.reads.load(Relaxed);
            assert_eq!(retrieve(&queue, &[key]).await, Some(value(key, 19)));
            assert_eq!(blocks.reads.load(Relaxed) - before, 1, "a retrieve is one read");
        }
    });
}

/// Each record of the log takes the place of one that the checkpoint knows.
#[test]
fn after_a_crash_what_was_overwritten_is_not_read_key_by_key() {
    const KEYS: u16 = 2_000;
    let blocks = Counting::new(64);
    let overwrite = |round: u8| {
        let blocks = blocks.clone();
        async move {
            let drive = open(&blocks, Durability::Group).await;
            let queue = drive.controller().queue_pair();
            for key in 0..KEYS {
                let status = store(&queue, &key.to_be_bytes(), &[round; 4_000]).await;
                assert_eq!(status, Status::SUCCESS);
            }
            drive
        }
    };
    Reactor::new(None).run(async {
        DiskDrive::format(blocks.clone(), FORMAT).await.expect("it is large enough");
        overwrite(0).await.close().await.expect("nothing fails");
    });
    Reactor::new(None).run(async {
        overwrite(1).await;
    });
    Reactor::new(None).run(async {
        let before = blocks.reads.load(Relaxed);
        let drive = open(&blocks, Durability::Group).await;
        let reads = blocks.reads.load(Relaxed) - before;
        let recovery = drive.recovery();
        assert_eq!(recovery.how, How::Checkpoint);
        assert!(recovery.records >= u64::from(KEYS), "{recovery:?}");
        assert!(reads < u64::from(KEYS) / 2, "{reads} reads for {KEYS} keys: {recovery:?}");
        let queue = drive.controller().queue_pair();
        for key in 0..KEYS {
            assert_eq!(retrieve(&queue, &key.to_be_bytes()).await, Some(vec![1; 4_000]));
        }
    });
}

/// Of its 3,000 keys each extent has some 100.
#[test]
fn after_an_opening_what_is_overwritten_is_not_read_key_by_key_either() {
    let blocks = Counting::new(64);
    let key = |number: u32| number.to_be_bytes();
    let keys = 3_000;
    Reactor::new(None).run(async {
        DiskDrive::format(blocks.clone(), FORMAT).await.expect("it is large enough");
        let drive = open(&blocks, Durability::Capacitor).await;
        let queue = drive.controller().queue_pair();
        for number in 0..keys {
            assert_eq!(store(&queue, &key(number), &[1; 8_000]).await, Status::SUCCESS);
        }
        drive.close().await.expect("it is closed");
    });
    Reactor::new(None).run(async {
        let drive = open(&blocks, Durability::Capacitor).await;
        assert_eq!(drive.recovery().how, How::Checkpoint);
        let (queue, before) = (drive.controller().queue_pair(), blocks.reads.load(Relaxed));
        // In another order than that of their places.
        for number in (0..keys).map(|number| number * 1_597 % keys) {
            assert_eq!(store(&queue, &key(number), &[2; 8_000]).await, Status::SUCCESS);
        }
        let reads = blocks.reads.load(Relaxed) - before;
        assert!(reads < 700, "{reads} reads for {keys} keys in some 30 extents");
        for number in 0..keys {
            assert_eq!(retrieve(&queue, &key(number)).await, Some(vec![2; 8_000]));
        }
        drive.close().await.expect("it is closed");
    });
}

#[test]
fn a_drive_without_room_for_pairs_is_refused() {
    Reactor::new(None).run(async {
        let blocks = Counting::new(u64::from(DISK_DRIVE_EXTENTS_MIN) - 1);
        let found = blocks.shape().blocks * u64::from(blocks.shape().block_bytes);
        let small = DiskDrive::format(blocks, FORMAT).await.unwrap_err();
        // The extents, and before them two copies of a superblock and of a ledger.
        let needed = u64::from(DISK_DRIVE_EXTENTS_MIN) * EXTENT_BYTES + 12_288 + 8_192;
        assert_eq!(small, DiskError::Medium(OpenError::TooSmall { found, needed }));
        let blocks = Counting::new(DISK_DRIVE_EXTENTS_MIN.into());
        let refused = DiskDrive::open(blocks.clone(), DiskOptions::default()).await.unwrap_err();
        assert_eq!(refused, DiskError::Medium(OpenError::NotADrive));
        let info = DiskDrive::format(blocks, FORMAT).await.expect("it is just large enough");
        // Two marks and a footer are no room for pages.
        let half = u64::from(DISK_DRIVE_EXTENTS_MIN / 2) * (EXTENT_BYTES - 3 * 4_096);
        assert_eq!(capacity_bytes(&info), half / 8 * 7);
    });
}
