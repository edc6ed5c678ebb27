//! The log: the state of its extents and pages, and visits of its records. `append` writes the log,
//! `clean` frees its extents.
//!
//! Fields of [`State`] that change together are a part of it, in a file of its own. Only the part's
//! methods change them, and assert their invariants. `tests` breaks each invariant once.

mod cleaning_due;
mod copies;
mod frontier;
mod host_buffer;
mod landing;
mod live_counts;
mod recalls;
mod room;
mod sealing;
mod settled;
mod space;
mod state;
#[cfg(test)]
mod tests;
mod unlanded;
mod visit;

use crate::extent::Extents;
use crate::format::address::{Address, PageNumber};
use crate::format::layout::Layout;
use crate::format::record::Sequence;
use crate::lane::Lanes;
use crate::lane::values::Lives;
use crate::read::key_window::KeyWindows;
use crate::write::pending::Pending;
use base::Buf;
use clock::{Guard, Lock, Order};
pub(crate) use copies::Copies;
pub(crate) use frontier::Frontier;
use media::{ExtentId, Media, PageId, Shape};
pub use room::SPARE_EXTENTS_MIN;
pub(crate) use room::{NoRoom, RESERVED_EXTENTS, Shortage, reserve};
use settled::Settled;
use smallvec::SmallVec;
pub(crate) use state::{CountedValue, State};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
pub(crate) use unlanded::Program;
pub(crate) use visit::{OnItsWay, Pin, Unlanded, Visit};

/// See the module's documentation.
pub(crate) struct Log {
    pub(crate) media: Arc<dyn Media>,
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) windows: KeyWindows,
    /// Hosts are answered before their pages have landed.
    pub(crate) answers_early: bool,
    pub(crate) settled: Settled,
    /// How many pages have landed or failed records were undone. It changes under the lock of
    /// `state`, and is read without it.
    decisions: AtomicU64,
    state: Lock<State>,
}

/// The state of a log, which is locked when it is first asked for: at most once in a stretch.
pub(crate) struct LateState<'a> {
    log: &'a Log,
    state: Option<Guard<'a, State>>,
}

impl LateState<'_> {
    pub(crate) fn get(&mut self) -> &mut State {
        self.state.get_or_insert_with(|| self.log.state())
    }
}

/// Where a record went, and the pages that must land before it is durable.
#[derive(Debug)]
pub(crate) struct Appended {
    pub(crate) address: Address,
    pub(crate) sequence: Sequence,
    pub(crate) pages: SmallVec<[Arc<Pending>; 1]>,
}

impl Log {
    /// Makes a log on a medium with these extents; the next sequence number comes after `sequence`.
    pub(crate) fn new(media: Arc<dyn Media>, extents: Extents, sequence: Sequence) -> Self {
        let shape = media.shape();
        let shares_space = media.as_memory().is_some();
        let settled = Settled::new(&shape);
        for (id, extent) in extents.iter() {
            settled.set(id, extent.pages());
        }
        let state = State::new(extents, sequence, shares_space, shape.pages_per_extent);
        Self {
            shape,
            layout: Layout::new(&shape).vouched(media.vouches_for_headers()),
            media,
            lanes: Arc::default(),
            lives: Arc::new(Lives::new(&shape)),
            windows: KeyWindows::new(0),
            answers_early: false,
            settled,
            decisions: AtomicU64::new(0),
            state: Lock::new(Order::Log, state),
        }
    }

    /// Returns the log for its users. A disk tells it from now on how its pages end.
    pub(crate) fn share(self) -> Arc<Self> {
        let log = Arc::new(self);
        if let Some(disk) = log.media.as_disk() {
            let landings: Weak<Self> = Arc::downgrade(&log);
            disk.report_to(landings);
        }
        log
    }

    #[inline]
    #[track_caller]
    pub(crate) fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// As [`Self::state`], but locks it later, if at all.
    pub(crate) const fn late_state(&self) -> LateState<'_> {
        LateState { log: self, state: None }
    }

    /// Lets the cleaner use extents that are kept for table pages: see [`space::Space::owe`].
    pub(crate) fn owe_extents(&self) {
        self.state().space.owe(self.media.free_extents());
    }

    /// Free extents beside those kept for table pages.
    pub(crate) fn free_extents(&self, state: &State) -> u32 {
        self.media.free_extents().saturating_sub(state.space.kept())
    }

    /// Returns the checksum of `value`, or 0 where the medium vouches for its bytes.
    #[inline]
    pub(crate) fn value_crc(&self, value: &Buf) -> u32 {
        if value.len() == 0 || self.media.vouches() { 0 } else { value.crc32c() }
    }

    #[inline]
    pub(crate) fn page_id(&self, address: Address) -> PageId {
        self.layout.page_id(address.page())
    }

    #[inline]
    pub(crate) fn number(&self, extent: ExtentId, page: u32) -> PageNumber {
        PageNumber::new(PageId { extent, page }, self.shape.pages_per_extent)
    }
}
