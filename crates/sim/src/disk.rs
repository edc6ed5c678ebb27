//! A disk with a cache that forgets.

mod conditions;
mod left;
mod sectors;

use base::{Buf, BufMut, Nanos, Rng};
use clock::{Class, LocalFuture, Rank, Stage, TaskId};
pub use conditions::{DiskConditions, DiskFaults};
pub use left::Left;
use media::{Blocks, BlocksShape, Error, Segments};
use sectors::{Change, Sectors};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Logical blocks of a disk in virtual time. Writes are answered when its cache has them, and a
/// flush makes those last that were answered before it began. A loss of power leaves of each sector
/// whatever the seed says, in any order.
#[derive(Debug)]
pub struct SimDisk {
    shape: BlocksShape,
    conditions: DiskConditions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sectors: Sectors,
    rng: Rng,
    counts: DiskCounts,
    unreadable: BTreeSet<u64>,
    /// Flushes are worth nothing.
    is_lossy: bool,
    /// Power is lost as this operation begins, of all writes, trims and flushes.
    cut_at: Option<u64>,
    is_cut: bool,
    waiter: Option<TaskId>,
}

/// What a disk was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Writes and flushes that failed.
    pub failed_changes: u64,
}

impl DiskCounts {
    /// All but reads.
    pub const fn changes(&self) -> u64 {
        self.writes + self.trims + self.flushes
    }
}

impl SimDisk {
    /// An empty disk; the seed chooses how long everything takes.
    pub fn new(shape: BlocksShape, conditions: DiskConditions, seed: u64) -> Self {
        let bytes = usize::try_from(shape.blocks).expect("it is in memory");
        let sectors = Sectors::new(bytes * shape.block_bytes as usize, conditions.sector_bytes);
        Self::with(shape, conditions, seed, sectors)
    }

    fn with(shape: BlocksShape, conditions: DiskConditions, seed: u64, sectors: Sectors) -> Self {
        let state = State {
            sectors,
            rng: Rng::new(seed),
            counts: DiskCounts::default(),
            unreadable: conditions.faults.unreadable.clone(),
            is_lossy: conditions.faults.lies,
            cut_at: None,
            is_cut: false,
            waiter: None,
        };
        Self { shape, conditions, state: Mutex::new(state) }
    }

    /// Returns the disk that a loss of power at this instant leaves. Its later behaviour comes from
    /// the seed and `faults`.
    #[must_use]
    pub fn cut(&self, left: Left, faults: DiskFaults, seed: u64) -> Self {
        let sectors = self.state().sectors.cut(left, &mut Rng::fork(seed, 1));
        let conditions = DiskConditions { faults, ..self.conditions.clone() };
        Self::with(self.shape, conditions, seed, sectors)
    }

    /// Returns the disk as another process finds it after its user was killed: each sector of a
    /// write under way was written or not, and nothing more was flushed. It has `faults`.
    #[must_use]
    pub fn killed(&self, faults: DiskFaults, seed: u64) -> Self {
        let sectors = self.state().sectors.killed(&mut Rng::fork(seed, 2));
        let conditions = DiskConditions { faults, ..self.conditions.clone() };
        Self::with(self.shape, conditions, seed, sectors)
    }

    /// Loses power as the write, trim or flush of this number begins, from 0: it and all that is
    /// under way then never end.
    pub fn cut_at(&self, change: u64) {
        self.state().cut_at = Some(change);
    }

    /// Waits until power is lost.
    pub async fn until_cut(&self) {
        let is_cut = {
            let mut state = self.state();
            state.waiter = Some(clock::current());
            state.is_cut
        };
        if !is_cut {
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }

    /// Whether it is lost.
    pub fn is_cut(&self) -> bool {
        self.state().is_cut
    }

    /// Logical blocks that cannot be read now.
    pub fn unreadable(&self) -> BTreeSet<u64> {
        self.state().unreadable.clone()
    }

    /// What was asked so far.
    pub fn counts(&self) -> DiskCounts {
        self.state().counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a time up to `longest`. Without power nothing ends.
    async fn work(&self, longest: Nanos) {
        let end = {
            let mut state = self.state();
            let number = state.counts.changes();
            if state.cut_at.is_some_and(|cut_at| number > cut_at) && !state.is_cut {
                state.is_cut = true;
                state.waiter.take().into_iter().for_each(clock::wake);
            }
            let DiskConditions { tick, at_once, .. } = self.conditions;
            if at_once > 0 && state.rng.below(8) < at_once {
                clock::now()
            } else {
                let end = clock::now() + Nanos(state.rng.below(longest.0 + 1));
                Nanos(end.0.next_multiple_of(tick.0))
            }
        };
        clock::sleep_until(end, Stage::Array).await;
        if self.state().is_cut {
            clock::park(Rank::Core, Stage::Queue).await;
            unreachable!("a task without power is not woken");
        }
    }

    fn start(&self, first: u64, count: u64) -> usize {
        let end = first.checked_add(count).filter(|end| *end <= self.shape.blocks);
        assert!(end.is_some(), "{count} blocks from {first} are not of {}", self.shape.blocks);
        usize::try_from(first).expect("it is in memory") * self.shape.block_bytes as usize
    }

    /// Puts `data` at byte `start`, or fails as the plan says for this write.
    async fn change(&self, start: usize, data: Arc<[u8]>, write: Option<u64>) -> Result<(), Error> {
        let faults = &self.conditions.faults;
        let block_bytes = u64::from(self.shape.block_bytes);
        let (block, blocks) = (start as u64 / block_bytes, data.len() as u64 / block_bytes);
        let is_full = write.is_some_and(|write| faults.no_space.contains(&write));
        let fails = write.is_some_and(|write| faults.failed_writes.contains(&write));
        let number = self.state().counts.changes();
        if !is_full {
            self.state().sectors.begin(number, Change { start, data });
        }
        self.work(self.conditions.write).await;
        let State { sectors, rng, counts, unreadable, .. } = &mut *self.state();
        counts.failed_changes += u64::from(is_full || fails);
        if is_full {
            return Err(Error::NoSpace);
        }
        sectors.end(number, || !fails || rng.below(2) == 0);
        if fails {
            return Err(Error::UnwrittenBlock(block));
        }
        unreadable.retain(|other| !(block..block + blocks).contains(other));
        Ok(())
    }
}

impl Blocks for SimDisk {
    fn shape(&self) -> BlocksShape {
        self.shape
    }

    fn read(&self, first: u64, count: u32, _: Class) -> LocalFuture<'_, Result<Segments, Error>> {
        let start = self.start(first, count.into());
        Box::pin(async move {
            let number = {
                let counts = &mut self.state().counts;
                counts.reads += 1;
                counts.reads - 1
            };
            self.work(self.conditions.read).await;
            let mut state = self.state();
            let failed = self.conditions.faults.failed_reads.contains(&number).then_some(first);
            let blocks = first..first + u64::from(count);
            if let Some(block) = failed.or_else(|| state.unreadable.range(blocks).next().copied()) {
                state.counts.failed_reads += 1;
                return Err(Error::UnrecoveredBlock(block));
            }
            let mut bytes = BufMut::unpooled((count * self.shape.block_bytes) as usize);
            state.sectors.read(start, bytes.as_mut());
            Ok(Segments::from_iter([bytes.freeze()]))
        })
    }

    fn write(&self, first: u64, data: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let bytes = |segment: &Buf| segment.bytes().expect("a disk holds bytes").to_vec();
        let data: Arc<[u8]> = data.iter().flat_map(bytes).collect();
        let block_bytes = self.shape.block_bytes as usize;
        assert!(data.len().is_multiple_of(block_bytes), "{} bytes are not blocks", data.len());
        let start = self.start(first, (data.len() / block_bytes) as u64);
        Box::pin(async move {
            let number = {
                let counts = &mut self.state().counts;
                counts.writes += 1;
                counts.writes - 1
            };
            self.change(start, data, Some(number)).await
        })
    }

    fn trim(&self, first: u64, count: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let start = self.start(first, count);
        let len =
            usize::try_from(count).expect("it is in memory") * self.shape.block_bytes as usize;
        Box::pin(async move {
            self.state().counts.trims += 1;
            let zeros = if self.conditions.trims { vec![0; len] } else { Vec::new() };
            self.change(start, Arc::from(zeros), None).await
        })
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let (number, ends) = {
                let mut state = self.state();
                state.counts.flushes += 1;
                (state.counts.flushes - 1, state.sectors.ends())
            };
            self.work(self.conditions.flush).await;
            let mut state = self.state();
            if self.conditions.faults.failed_flushes.contains(&number) {
                state.is_lossy = true;
                state.counts.failed_changes += 1;
                return Err(Error::NotFlushed);
            }
            if !state.is_lossy {
                state.sectors.flush(ends);
            }
            Ok(())
        })
    }
}
