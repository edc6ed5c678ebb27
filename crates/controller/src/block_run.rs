use base::limits::BLOCK_BYTES;
use clock::{Class, LocalFuture};
use media::{Blocks, BlocksShape, Error, Segments};
use std::sync::Arc;

/// Blocks of a medium that follow each other, as a medium of their own.
#[derive(Clone)]
pub(crate) struct BlockRun {
    whole: Arc<dyn Blocks>,
    first: u64,
    count: u64,
}

impl BlockRun {
    /// All blocks of a medium.
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

    /// As blocks of a namespace. These have one size, whatever the device.
    pub(crate) fn blocks(&self) -> Arc<dyn Blocks> {
        let is_all = self.count == self.whole.shape().blocks;
        if is_all { self.whole.clone() } else { Arc::new(self.clone()) }
    }

    /// The first `count` of the blocks, which stay behind without them. `None` if they are fewer.
    pub(crate) fn take(&mut self, count: u64) -> Option<Self> {
        let left = self.count.checked_sub(count)?;
        let taken = Self { whole: self.whole.clone(), first: self.first, count };
        (self.first, self.count) = (self.first + count, left);
        Some(taken)
    }

    /// The `count` blocks from `first` on of the medium, if this run has them.
    pub(crate) fn part(&self, first: u64, count: u64) -> Option<Self> {
        let part = Self { whole: self.whole.clone(), first, count };
        first.checked_add(count).filter(|_| count > 0 && self.has(&part)).map(|_| part)
    }

    /// Whether all blocks of `part` are of this run.
    pub(crate) fn has(&self, part: &Self) -> bool {
        Arc::ptr_eq(&self.whole, &part.whole)
            && self.first <= part.first
            && part.first + part.count <= self.first + self.count
    }

    /// What is left of this run without `part`, which it has.
    pub(crate) fn without(mut self, part: &Self) -> impl Iterator<Item = Self> {
        let before = self.take(part.first - self.first);
        let _ = self.take(part.count);
        before.into_iter().chain([self]).filter(|run| run.count > 0)
    }

    /// Makes one run of both, if `next` is what follows.
    pub(crate) fn join(&mut self, next: &Self) -> bool {
        let follows =
            Arc::ptr_eq(&self.whole, &next.whole) && self.first + self.count == next.first;
        if follows {
            self.count += next.count;
        }
        follows
    }

    /// Where it is, to put runs of one medium in order.
    pub(crate) fn place(&self) -> (usize, u64) {
        (Arc::as_ptr(&self.whole).cast::<()>().addr(), self.first)
    }
}

impl Blocks for BlockRun {
    fn shape(&self) -> BlocksShape {
        BlocksShape { blocks: self.count, ..self.whole.shape() }
    }

    fn expect(&self, first: u64) {
        self.whole.expect(self.first + first);
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
    /// Beyond the run are the blocks of another namespace.
    fn assert_has(&self, first: u64, count: u64) {
        let fits = count <= self.count && first <= self.count - count;
        assert!(fits, "{count} blocks from {first} are not of {}", self.count);
    }
}
