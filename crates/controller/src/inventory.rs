mod saved;

pub use saved::SavedNamespaces;

use crate::block_run::BlockRun;
use crate::namespace::{NAMESPACES_MAX, Namespace, NamespaceInUse};
use clock::Users;
use ftl::Zones;
use spec::Status;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The namespaces of a device by their ids, from 1, and the free space for new ones.
///
/// New namespaces reuse the logical blocks of deleted ones, lowest first, in the same translation
/// layer. So zoned namespaces can be reused only as a whole. All key-value namespaces share one
/// store.
pub(crate) struct Inventory {
    state: RwLock<State>,
    /// Whether a namespace is being formatted; every command reads this.
    any_formatting: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The namespaces of the new device, in the order of their ids.
    made_with: Vec<Namespace>,
    slots: Vec<Slot>,
    /// The blocks of each block namespace.
    runs: BTreeMap<u32, BlockRun>,
    /// Free runs in the order of their positions, none adjacent to another.
    free: Vec<BlockRun>,
    free_zones: Vec<Arc<Zones>>,
    /// Number of deleted namespaces of each id.
    lives: BTreeMap<u32, u32>,
}

#[derive(Clone, Default)]
enum Slot {
    #[default]
    Free,
    /// A namespace is being created or deleted.
    Taken,
    Formatting(InUse),
    There(InUse),
}

/// A namespace, and the count of what holds it.
type InUse = (Arc<NamespaceInUse>, Users);

impl Slot {
    fn there(namespace: Namespace) -> Self {
        Self::There(NamespaceInUse::new(namespace))
    }

    fn is_formatting(&self) -> bool {
        matches!(self, Self::Formatting(_))
    }
}

impl Inventory {
    /// Creates the inventory of `namespaces`, in the order of their ids from 1.
    pub(crate) fn new(namespaces: Vec<Namespace>) -> Self {
        let made_with = namespaces.clone();
        let runs = (1..).zip(&namespaces);
        let runs = runs.filter_map(|(nsid, namespace)| Some((nsid, namespace.run()?))).collect();
        let slots = namespaces.into_iter().map(Slot::there).collect();
        let state = RwLock::new(State { made_with, slots, runs, ..State::default() });
        Self { state, any_formatting: AtomicBool::new(false) }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the namespace with this id, if any. While the caller holds the `Arc`, its media are
    /// not given to another namespace.
    #[inline]
    pub(crate) fn get(&self, nsid: u32) -> Option<Arc<NamespaceInUse>> {
        match self.state().slots.get((nsid as usize).checked_sub(1)?)? {
            Slot::There((namespace, _)) | Slot::Formatting((namespace, _)) => {
                Some(namespace.clone())
            }
            Slot::Free | Slot::Taken => None,
        }
    }

    /// Returns how many namespaces had this id before.
    pub(crate) fn life(&self, nsid: u32) -> u32 {
        self.state().lives.get(&nsid).copied().unwrap_or(0)
    }

    /// Returns whether the namespace with this id is being formatted.
    #[inline]
    pub(crate) fn is_formatting(&self, nsid: u32) -> bool {
        let slot = (nsid as usize).wrapping_sub(1);
        self.any_formatting.load(Ordering::Relaxed)
            && self.state().slots.get(slot).is_some_and(Slot::is_formatting)
    }

    /// Returns the ids of the namespaces, in ascending order.
    pub(crate) fn ids(&self) -> Vec<u32> {
        let state = self.state();
        let slots = (1..).zip(&state.slots);
        let is_there = |slot: &Slot| matches!(slot, Slot::There(_) | Slot::Formatting(_));
        slots.filter(|(_, slot)| is_there(slot)).map(|(nsid, _)| nsid).collect()
    }

    /// Reserves and returns the smallest free namespace id.
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

    /// Frees an id that has no namespace after a failed creation or deletion.
    pub(crate) fn release(&self, nsid: u32) {
        self.state_mut().set(nsid, Slot::Free);
    }

    /// Puts a new namespace at its reserved id, or restores one after a failed deletion.
    pub(crate) fn put(&self, nsid: u32, namespace: Namespace) {
        self.state_mut().set(nsid, Slot::there(namespace));
    }

    /// Ends the format of a namespace. Commands that found it before this still use it.
    pub(crate) fn end_format(&self, nsid: u32) {
        let mut state = self.state_mut();
        let slot = std::mem::take(&mut state.slots[nsid as usize - 1]);
        let Slot::Formatting(in_use) = slot else { panic!("a namespace that is formatted") };
        state.set(nsid, Slot::There(in_use));
        let any = state.slots.iter().any(Slot::is_formatting);
        self.any_formatting.store(any, Ordering::Relaxed);
    }

    /// Starts to delete a namespace: new commands do not find it. Returns it with the commands that
    /// use it.
    pub(crate) fn begin_end(&self, nsid: u32) -> Result<(Namespace, Users), Status> {
        self.state_mut().replace(nsid, |_| Slot::Taken)
    }

    /// Starts to format a namespace. Returns it with the commands that use it.
    pub(crate) fn begin_format(&self, nsid: u32) -> Result<(Namespace, Users), Status> {
        let mut state = self.state_mut();
        let formatting = |namespace| Slot::Formatting(NamespaceInUse::new(namespace));
        let before = state.replace(nsid, formatting)?;
        self.any_formatting.store(true, Ordering::Relaxed);
        Ok(before)
    }

    /// Allocates `count` blocks for the namespace of a reserved id.
    pub(crate) fn take_blocks(&self, nsid: u32, count: u64) -> Result<Namespace, Status> {
        let mut state = self.state_mut();
        let run = state.free.iter_mut().find_map(|run| run.take(count));
        let run = run.ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        state.free.retain(|run| run.count() > 0);
        let blocks = run.blocks();
        state.runs.insert(nsid, run);
        Ok(Namespace::Block(blocks))
    }

    /// Allocates zones with exactly `count` blocks, unwritable ones included.
    pub(crate) fn take_zones(&self, count: u64) -> Result<Namespace, Status> {
        let zones = &mut self.state_mut().free_zones;
        let at = zones.iter().position(|zones| zones.shape().blocks() == count);
        let at = at.ok_or(Status::NAMESPACE_INSUFFICIENT_CAPACITY)?;
        Ok(Namespace::Zoned(zones.swap_remove(at)))
    }

    /// Frees the blocks and the id of a deleted namespace.
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

    /// Returns the bytes of free blocks and zones.
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

    /// Replaces the slot of a namespace by the result of `becomes`.
    fn replace(
        &mut self,
        nsid: u32,
        becomes: impl FnOnce(Namespace) -> Slot,
    ) -> Result<(Namespace, Users), Status> {
        let at = (nsid as usize).checked_sub(1);
        let slot = at.and_then(|at| self.slots.get_mut(at)).ok_or(Status::INVALID_NAMESPACE)?;
        match slot {
            Slot::There((in_use, users)) => {
                let (namespace, users) = (Namespace::clone(in_use), users.clone());
                *slot = becomes(namespace.clone());
                Ok((namespace, users))
            }
            Slot::Formatting(_) => Err(Status::FORMAT_IN_PROGRESS),
            Slot::Free | Slot::Taken => Err(Status::INVALID_NAMESPACE),
        }
    }
}

impl Namespace {
    /// Returns the run of all its blocks, if it is a block namespace.
    fn run(&self) -> Option<BlockRun> {
        match self {
            Self::Block(blocks) => Some(BlockRun::all(blocks.clone())),
            Self::Kv(_) | Self::Zoned(_) => None,
        }
    }

    /// Returns its zones, if it is zoned.
    fn zones(&self) -> Option<Arc<Zones>> {
        match self {
            Self::Zoned(zones) => Some(zones.clone()),
            Self::Kv(_) | Self::Block(_) => None,
        }
    }
}
