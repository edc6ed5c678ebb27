//! Checks by loom: what a lane's lock, pins, atomic numbers and the locks of pages do together, in
//! all orders that a few threads and their memory can have. `docs/internals/testing.md` has the
//! command.

mod pins;
mod pool;
mod tail;

use crate::extent::{Extent, Extents};
use crate::format::address::Address;
use crate::format::record::Sequence;
use crate::hashed_key::hash_in_lane;
use crate::key_space::TableId;
use crate::log::{Log, SPARE_EXTENTS_MIN, Visit};
use crate::read::look_up::Visits;
use loom::cell::UnsafeCell;
use media::{ExtentId, ExtentInfo, Label, Memory, Shape, Stream};
use reactor::LoomPeers;
use std::sync::{Arc, Mutex, PoisonError};

const PAGES: u32 = 4;

const SHAPE: Shape = Shape {
    page_bytes: 4096,
    spare_bytes: 64,
    pages_per_extent: PAGES,
    extents: 4,
    parallelism: 1,
    frames: None,
};

const TABLE: TableId = TableId::STORE;
const VALUE_BYTES: u32 = 8;

/// When a reader pins the extents to which the index leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pinning {
    /// In the stretch of the index's answer.
    AtOnce,
    /// A mistake: in a later stretch.
    Late,
}

/// What the reactors of a model share: a log with a writer for each, and its lanes.
struct Scene {
    log: Arc<Log>,
    peers: LoomPeers,
    /// By extent: its bytes. loom reports a reset that does not come after all reads. The lock is
    /// one that loom does not know, so it orders nothing in the model.
    bytes: Vec<Mutex<UnsafeCell<()>>>,
}

impl Scene {
    /// Makes a log for `reactors`, whose first `full` extents are full and have landed.
    fn new(reactors: u32, full: u32) -> Arc<Self> {
        let mut extents = Extents::default();
        for id in (0..full).map(ExtentId) {
            let label = Label { stream: Stream::Host, epoch: id.0.into() };
            let info = ExtentInfo { id, label, pages: PAGES, holes: Vec::new(), summary: None };
            extents.insert(id, Extent::recovered(&info));
        }
        let mut log = Log::new(Arc::new(Memory::new(SHAPE)), extents, Sequence::first());
        log.prepare(u64::MAX, reactors, SPARE_EXTENTS_MIN + reactors - 1);
        assert_eq!(log.writers(), reactors as usize);
        let bytes = (0..SHAPE.extents).map(|_| Mutex::new(UnsafeCell::new(()))).collect();
        Arc::new(Self { log: log.share(), peers: LoomPeers::new(reactors), bytes })
    }

    /// Runs `task`, and all that it spawns, as reactor `number`.
    fn run<T>(&self, number: u32, task: impl Future<Output = T>) -> T {
        self.peers.run(number, task)
    }

    /// Points the index to the first record of an extent that is full.
    fn insert(&self, hash: u64, extent: ExtentId) -> Address {
        let address = self.log.layout.address(self.log.number(extent, 0), 0, 20, VALUE_BYTES);
        self.log.lanes.lock(hash).of(hash).entries.insert(TABLE, hash, address);
        address
    }

    /// Looks a key up and begins visits of its candidates, as `Store::look_up` does.
    fn visits(&self, hash: u64, pins: Pinning) -> Visits<'_> {
        let mut lanes = self.log.lanes.lock(hash);
        let table = lanes.of(hash).entries.table(TABLE);
        let candidates = table.map(|table| table.lookup(hash_in_lane(hash))).unwrap_or_default();
        if pins == Pinning::Late {
            drop(lanes);
            lanes = self.log.lanes.lock(hash);
        }
        let (mut state, mut visits) = (self.log.late_whole(), Visits::new());
        self.log.visit_all(&mut state, &candidates, &mut visits);
        visits
    }

    fn read(&self, visit: &Visit<'_>) {
        let extent = self.log.page_id(visit.address).extent;
        self.bytes(extent).with(|_| ());
    }

    fn reset(&self, extent: ExtentId) {
        self.bytes(extent).with_mut(|_| ());
    }

    fn bytes(&self, extent: ExtentId) -> std::sync::MutexGuard<'_, UnsafeCell<()>> {
        self.bytes[extent.0 as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
