use base::limits::BLOCK_BYTES;
use clock::{Class, LocalFuture};
use media::{Access, Blocks, BlocksShape, Error, Segments};
use smallvec::SmallVec;
use std::sync::Arc;

/// Reads that need no memory of their own: as many as a queue holds.
const READS: usize = 32;

/// A run of adjacent blocks of a medium, usable as a medium.
#[derive(Clone)]
pub(crate) struct BlockRun {
    whole: Arc<dyn Blocks>,
    first: u64,
    count: u64,
}

impl BlockRun {
    /// Returns the run of all blocks of a medium.
    pub(crate) fn all(whole: Arc<dyn Blocks>) -> Self {
        let count = whole.shape().blocks;
        Self { whole, first: 0, count }
    }

    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the run as a medium of a namespace, whose blocks have one size on all devices.
    pub(crate) fn blocks(&self) -> Arc<dyn Blocks> {
        let is_all = self.count == self.whole.shape().blocks;
        if is_all { self.whole.clone() } else { Arc::new(self.clone()) }
    }

    /// Removes and returns the first `count` blocks. Returns `None` if there are fewer.
    pub(crate) fn take(&mut self, count: u64) -> Option<Self> {
        let left = self.count.checked_sub(count)?;
        let taken = Self { whole: self.whole.clone(), first: self.first, count };
        (self.first, self.count) = (self.first + count, left);
        Some(taken)
    }

    /// Returns the `count` blocks from block `first` of the medium, if this run has them.
    pub(crate) fn part(&self, first: u64, count: u64) -> Option<Self> {
        let part = Self { whole: self.whole.clone(), first, count };
        first.checked_add(count).filter(|_| count > 0 && self.has(&part)).map(|_| part)
    }

    /// Returns whether the run contains all blocks of `part`.
    pub(crate) fn has(&self, part: &Self) -> bool {
        Arc::ptr_eq(&self.whole, &part.whole)
            && self.first <= part.first
            && part.first + part.count <= self.first + self.count
    }

    /// Returns the rest of this run without `part`, which it contains.
    pub(crate) fn without(mut self, part: &Self) -> impl Iterator<Item = Self> {
        let before = self.take(part.first - self.first);
        let _ = self.take(part.count);
        before.into_iter().chain([self]).filter(|run| run.count > 0)
    }

    /// Appends `next` if it is adjacent. Returns whether it was.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let follows =
            Arc::ptr_eq(&self.whole, &next.whole) && self.first + self.count == next.first;
        if follows {
            self.count += next.count;
        }
        follows
    }

    /// Returns its position, a sort key for runs.
    pub(crate) fn place(&self) -> (usize, u64) {
        (Arc::as_ptr(&self.whole).cast::<()>().addr(), self.first)
    }
}

impl Blocks for BlockRun {
    fn shape(&self) -> BlocksShape {
        BlocksShape { blocks: self.count, ..self.whole.shape() }
    }

    fn expect(&self, first: u64, access: Access) {
        self.whole.expect(self.first + first, access);
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        self.assert_has(first, count.into());
        self.whole.read(self.first + first, count, class)
    }

    fn reads_at_once(&self) -> bool {
        self.whole.reads_at_once()
    }

    fn read_at_once(&self, reads: &[(u64, u32)], contents: &mut Vec<Option<Segments>>) {
        let of_whole = reads.iter().map(|&(first, count)| {
            self.assert_has(first, count.into());
            (self.first + first, count)
        });
        let of_whole: SmallVec<[(u64, u32); READS]> = of_whole.collect();
        self.whole.read_at_once(&of_whole, contents);
    }

    fn write(
        &self,
        first: u64,
        data: Segments,
        class: Class,
    ) -> LocalFuture<'_, Result<(), Error>> {
        let bytes: u64 = data.iter().map(|part| u64::from(part.len())).sum();
        self.assert_has(first, bytes.div_ceil(BLOCK_BYTES.into()));
        self.whole.write(self.first + first, data, class)
    }

    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>> {
        self.assert_has(first, count);
        self.whole.trim(self.first + first, count, class)
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        self.whole.flush()
    }
}

impl BlockRun {
    /// Asserts the range, because blocks after the run belong to another namespace.
    fn assert_has(&self, first: u64, count: u64) {
        let fits = count <= self.count && first <= self.count - count;
        assert!(fits, "{count} blocks from {first} are not of {}", self.count);
    }
}
