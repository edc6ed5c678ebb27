use crate::durability::Durability;
use crate::extents::{Extent, Free};
use crate::flusher::Flushes;
use crate::layout::Layout;
use crate::ledger::Ledger;
use crate::origin::{Opening, Origin};
use base::BufPool;
use clock::{Class, Guard, Lock, Order};
use media::{Blocks, Error, ExtentId, Landings, Segments, Shape, cut_out};
use std::sync::{Arc, OnceLock, Weak};

/// Bytes of freed buffers of each size kept for later writes: as much as one extent's writes need.
const POOL_BYTES: usize = 4 << 20;

/// What the tasks of a medium share.
// Its fields share no line of the processor's cache with the counts of its `Arc`, which all
// reactors change.
#[repr(align(128))]
pub(crate) struct Drive {
    pub(crate) blocks: Arc<dyn Blocks>,
    pub(crate) layout: Layout,
    pub(crate) secret: [u8; 16],
    /// The number of this mount.
    pub(crate) mount: u32,
    pub(crate) durability: Durability,
    /// The sizes of the medium, but for its parallelism.
    pub(crate) shape: Shape,
    /// Memory for what is written beside values.
    pub(crate) pool: BufPool,
    /// Why nothing more is written, once that is so.
    ended: OnceLock<Error>,
    extents: Vec<Lock<Extent>>,
    state: Lock<State>,
}

/// What all extents of an open medium share. A task may have locked an extent before it locks this.
// Aligned so that the lock shares no line of the processor's cache with what is read without it.
#[repr(align(128))]
pub(crate) struct State {
    pub(crate) free: Free,
    pub(crate) flushes: Flushes,
    pub(crate) ledger: Ledger,
    /// Free extents in whose places old copies were found.
    pub(crate) outdated: Vec<ExtentId>,
    /// The log that is told how its pages end.
    pub(crate) log: Option<Weak<dyn Landings>>,
}

impl Drive {
    pub(crate) fn new(
        blocks: Arc<dyn Blocks>,
        layout: Layout,
        secret: [u8; 16],
        mount: u32,
        durability: Durability,
    ) -> Self {
        let state = State {
            free: Free::default(),
            flushes: Flushes::default(),
            ledger: Ledger::default(),
            outdated: Vec::new(),
            log: None,
        };
        let sizes = [layout.unit_bytes, layout.block_bytes];
        assert!(sizes.iter().all(|size| size.is_power_of_two()), "{layout:?} is cut by shifts");
        let (shape, pool) = (layout.shape(0), BufPool::new(POOL_BYTES));
        let state = Lock::new(Order::Medium, state);
        let extent = |_| Lock::new(Order::Extent, Extent::default());
        let extents = (0..layout.extents).map(extent).collect();
        let ended = OnceLock::new();
        Self { blocks, layout, secret, mount, durability, shape, pool, ended, extents, state }
    }

    /// Writes nothing more, and fails with `error` where it would, or with an earlier error.
    pub(crate) fn end_writing(&self, error: Error) {
        self.ended.get_or_init(|| error);
    }

    /// The error with which everything ends that would write, if there is one.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        self.ended.get().map_or(Ok(()), |error| Err(*error))
    }

    #[track_caller]
    pub(crate) fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Locks what is known of an extent.
    #[track_caller]
    pub(crate) fn extent(&self, id: ExtentId) -> Guard<'_, Extent> {
        self.extents[id.0 as usize].lock()
    }

    /// Locks one extent after the other, and returns what `read` makes of each.
    pub(crate) fn each_extent<T>(
        &self,
        mut read: impl FnMut(ExtentId, &mut Extent) -> Option<T>,
    ) -> Vec<T> {
        let ids = (0..self.layout.extents).map(ExtentId);
        ids.filter_map(|id| read(id, &mut self.extent(id))).collect()
    }

    pub(crate) const fn origin(&self, extent: ExtentId, opening: Opening) -> Origin {
        Origin { secret: self.secret, extent, opening }
    }

    /// `len` bytes from byte `start`, of which all blocks are read that they lie in.
    pub(crate) async fn read_bytes(
        &self,
        start: u64,
        len: u32,
        class: Class,
    ) -> Result<Segments, Error> {
        let (shift, last) = (self.block_shift(), u64::from(self.layout.block_bytes - 1));
        let (first, end) = (start >> shift, (start + u64::from(len) + last) >> shift);
        let count = u32::try_from(end - first).expect("what is read at a time is far less");
        let found = self.blocks.read(first, count, class).await?;
        let before = u32::try_from(start & last).expect("less than a block");
        Ok(cut_out(found, before, len).expect("all of the blocks was read"))
    }

    /// Writes whole blocks from byte `start` on.
    pub(crate) async fn write_bytes(
        &self,
        start: u64,
        data: Segments,
        class: Class,
    ) -> Result<(), Error> {
        let last = u64::from(self.layout.block_bytes - 1);
        assert!(start & last == 0, "byte {start} is the first of a block");
        self.blocks.write(start >> self.block_shift(), data, class).await
    }

    /// The power of two that a block's bytes are.
    const fn block_shift(&self) -> u32 {
        self.layout.block_bytes.trailing_zeros()
    }
}
