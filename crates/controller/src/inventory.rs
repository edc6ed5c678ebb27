mod saved;

pub use saved::SavedNamespaces;

use crate::block_run::BlockRun;
use crate::namespace::{NAMESPACES_MAX, Namespace};
use ftl::Zones;
use spec::Status;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The namespaces of a device by their ids, from 1, and what is free for new ones.
///
/// Logical blocks of a deleted namespace become the blocks of new ones, first come first served
/// from the lowest: they keep the translation layer that they have. So zones can be had again only
/// as a whole. Pairs of keys and values have all one store.
pub(crate) struct Inventory {
    state: RwLock<State>,
    /// Whether any is being formatted, which every command asks.
    any_formatting: AtomicBool,
}

#[derive(Default)]
struct State {
    /// What the device was made with, in the order of the ids that they had.
    made_with: Vec<Namespace>,
    slots: Vec<Slot>,
    /// Which blocks a namespace of blocks has.
    runs: BTreeMap<u32, BlockRun>,
    /// In the order of their places, none of which is next to another.
    free: Vec<BlockRun>,
    free_zones: Vec<Arc<Zones>>,
    /// How often a namespace of an id has ended.
    lives: BTreeMap<u32, u32>,
}

#[derive(Clone, Default)]
enum Slot {
    #[default]
    Free,
    /// A namespace is being made, or being ended.
    Taken,
    Formatting(Arc<Namespace>),
    There(Arc<Namespace>),
}

impl Slot {
    fn is_formatting(&self) -> bool {
        matches!(self, Self::Formatting(_))
    }
}

impl Inventory {
    /// Of `namespaces`, in the order of their ids from 1.
    pub(crate) fn new(namespaces: Vec<Namespace>) -> Self {
        let made_with = namespaces.clone();
        let runs = (1..).zip(&namespaces);
        let runs = runs.filter_map(|(nsid, namespace)| Some((nsid, namespace.run()?))).collect();
        let slots = namespaces.into_iter().map(|it| Slot::There(Arc::new(it))).collect();
        let state = RwLock::new(State { made_with, slots, runs, ..State::default() });
        Self { state, any_formatting: AtomicBool::new(false) }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The namespace of this id, if there is one. What it has is nobody else's while this is held.
    #[inline]
    pub(crate) fn get(&self, nsid: u32) -> Option<Arc<Namespace>> {
        match self.state().slots.get((nsid as usize).checked_sub(1)?)? {
            Slot::There(namespace) | Slot::Formatting(namespace) => Some(namespace.clone()),
            Slot::Free | Slot::Taken => None,
        }
    }

    /// How many namespaces have had this id before.
    pub(crate) fn life(&self, nsid: u32) -> u32 {
        self.state().lives.get(&nsid).copied().unwrap_or(0)
    }

    /// Whether the namespace of this id is being formatted.
    #[inline]
    pub(crate) fn is_formatting(&self, nsid: u32) -> bool {
        let slot = (nsid as usize).wrapping_sub(1);
        self.any_formatting.load(Ordering::Relaxed)
            && self.state().slots.get(slot).is_some_and(Slot::is_formatting)
    }

    /// Whether a namespace is being made, made new or ended.
    pub(crate) fn is_changing(&self) -> bool {
        let is_changing = |slot: &Slot| matches!(slot, Slot::Taken | Slot::Formatting(_));
        self.state().slots.iter().any(is_changing)
    }

    /// The ids of the namespaces, in ascending order.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let state = self.state();
        let slots = (1..).zip(&state.slots);
        let is_there = |slot: &Slot| matches!(slot, Slot::There(_) | Slot::Formatting(_));
        slots.filter(|(_, slot)| is_there(slot)).map(|(nsid, _)| nsid).collect()
    }

    /// The smallest id that no namespace has, which is nobody else's from here on.
    pub(crate) fn reserve(&self) -> Result<u32, Status> {
        let mut state = self.state_mut();
        let at = state.slots.iter().position(|slot| matches!(slot, Slot::Free));
        let at = at.unwrap_or(state.slots.len());
        if at >= NAMESPACES_MAX as usize {
            return Err(Status::NAMESPACE_ID_UNAVAILABLE);
        }
        let len = state.slots.len().max(at + 1);
        state.slots.resize(len, Slot::Free);
        state.slots[at] = Slot::Taken;
        Ok(u32::try_from(at + 1).expect("ids are small"))
    }

    /// Nothing has become of an id that was reserved, or of a namespace that was begun to end.
    pub(crate) fn release(&self, nsid: u32) {
        self.state_mut().set(nsid, Slot::Free);
    }

    /// There is a namespace of a reserved id, or again one that was being formatted or ended.
    pub(crate) fn put(&self, nsid: u32, namespace: Arc<Namespace>) {
        let mut state = self.state_mut();
        state.set(nsid, Slot::There(namespace));
        let any = state.slots.iter().any(Slot::is_formatting);
        self.any_formatting.store(any, Ordering::Relaxed);
    }

    /// Begins to end a namespace: no command finds it any more.
    pub(crate) fn begin_end(&self, nsid: u32) -> Result<Arc<Namespace>, Status> {
        self.state_mut().replace(nsid, |_| Slot::Taken)
    }

    /// Begins to format a namespace.
    pub(crate) fn begin_format(&self, nsid: u32) -> Result<Arc<Namespace>, Status> {
        let mut state = self.state_mut();
        let namespace = state.replace(nsid, Slot::Formatting)?;
        self.any_formatting.store(true, Ordering::Relaxed);
        Ok(namespace)
    }

    /// So many blocks for the namespace of a reserved id.
    pub(crate) fn take_blocks(&self, nsid: u32, count: u64) -> Result<Namespace, Status> {
        let mut state = self.state_mut();
        let run = state.free.iter_mut().find_map(|run| run.take(count));
        let run = run.ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        state.free.retain(|run| run.count() > 0);
        let blocks = run.blocks();
        state.runs.insert(nsid, run);
        Ok(Namespace::Block(blocks))
    }

    /// Zones that have so many blocks, with those that cannot be written.
    pub(crate) fn take_zones(&self, count: u64) -> Result<Namespace, Status> {
        let zones = &mut self.state_mut().free_zones;
        let at = zones.iter().position(|zones| zones.shape().blocks() == count);
        let at = at.ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        Ok(Namespace::Zoned(zones.swap_remove(at)))
    }

    /// What an ended namespace had is free, and so is its id.
    pub(crate) fn end(&self, nsid: u32, namespace: &Namespace) {
        let mut state = self.state_mut();
        match namespace {
            Namespace::Kv(_) => {}
            Namespace::Block(_) => {
                let run = state.runs.remove(&nsid).expect("a namespace of blocks has blocks");
                state.give_back(run);
            }
            Namespace::Zoned(zones) => state.free_zones.push(zones.clone()),
        }
        *state.lives.entry(nsid).or_default() += 1;
        state.set(nsid, Slot::Free);
    }

    /// Bytes of blocks and zones that no namespace has.
    pub(crate) fn unallocated_bytes(&self) -> u64 {
        let state = self.state();
        let runs = state.free.iter().map(|run| Namespace::Block(run.blocks()));
        let zones = state.free_zones.iter().cloned().map(Namespace::Zoned);
        runs.chain(zones).map(|free| free.capacity_bytes()).sum()
    }
}

impl State {
    fn give_back(&mut self, run: BlockRun) {
        self.free.push(run);
        self.free.sort_by_key(BlockRun::place);
        self.free.dedup_by(|next, run| run.join(next));
    }

    fn set(&mut self, nsid: u32, slot: Slot) {
        self.slots[nsid as usize - 1] = slot;
    }

    /// Puts what `becomes` makes of a namespace in its place.
    fn replace(
        &mut self,
        nsid: u32,
        becomes: impl FnOnce(Arc<Namespace>) -> Slot,
    ) -> Result<Arc<Namespace>, Status> {
        let at = (nsid as usize).checked_sub(1);
        let slot = at.and_then(|at| self.slots.get_mut(at)).ok_or(Status::INVALID_NAMESPACE)?;
        match slot {
            Slot::There(namespace) => {
                let namespace = namespace.clone();
                *slot = becomes(namespace.clone());
                Ok(namespace)
            }
            Slot::Formatting(_) => Err(Status::FORMAT_IN_PROGRESS),
            Slot::Free | Slot::Taken => Err(Status::INVALID_NAMESPACE),
        }
    }
}

impl Namespace {
    /// All its blocks, if it is one of blocks.
    fn run(&self) -> Option<BlockRun> {
        match self {
            Self::Block(blocks) => Some(BlockRun::all(blocks.clone())),
            Self::Kv(_) | Self::Zoned(_) => None,
        }
    }

    /// Its zones, if it is zoned.
    fn zones(&self) -> Option<Arc<Zones>> {
        match self {
            Self::Zoned(zones) => Some(zones.clone()),
            Self::Kv(_) | Self::Block(_) => None,
        }
    }
}
