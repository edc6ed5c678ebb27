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
mod locked;
mod own;
mod owners;
mod pins;
mod recalls;
mod room;
mod sealing;
mod settled;
mod space;
mod state;
mod tally;
#[cfg(test)]
mod tests;
mod unlanded;
mod visit;
mod writer;

use crate::extent::Extents;
use crate::format::address::{Address, PageNumber};
use crate::format::layout::Layout;
use crate::format::record::Sequence;
use crate::lane::Lanes;
use crate::lane::values::Lives;
use crate::read::key_window::KeyWindows;
use crate::sync::{Apart, AtomicBool, AtomicU64, Mutex};
use crate::write::pending::Pending;
use base::Buf;
use cleaning_due::CleaningDue;
use clock::{Lock, Order};
pub(crate) use copies::Copies;
pub(crate) use frontier::Frontier;
pub(crate) use locked::{LateWhole, NotLocked, Part, Reach, Whole, Writing};
use media::{ExtentId, Media, PageId, Shape};
pub(crate) use own::Own;
use owners::{Owners, WRITERS_MAX};
pub(crate) use pins::PinOf;
use pins::Pins;
pub use room::SPARE_EXTENTS_MIN;
pub(crate) use room::{NoRoom, RESERVED_EXTENTS, Shortage, reserve};
use settled::Settled;
use smallvec::SmallVec;
pub(crate) use state::{CountedValue, State};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
pub(crate) use tally::Tally;
pub(crate) use unlanded::Program;
pub(crate) use visit::{OnItsWay, Pin, Unlanded, Visit};
pub(crate) use writer::Writer;

/// See the module's documentation.
// Its fields share no line of the processor's cache with the counts of its `Arc`, which all
// reactors change.
#[repr(align(128))]
pub(crate) struct Log {
    pub(crate) media: Arc<dyn Media>,
    pub(crate) shape: Shape,
    pub(crate) layout: Layout,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) windows: KeyWindows,
    /// Hosts are answered before their pages have landed.
    pub(crate) answers_early: bool,
    /// Live bytes that the log takes.
    capacity_bytes: u64,
    pub(crate) settled: Settled,
    pub(crate) owners: Owners,
    pub(crate) pins: Arc<Pins>,
    /// See [`Self::watch_decisions`].
    is_decision_watched: AtomicBool,
    /// Page numbers that records were written to since the last checkpoint, but for those that
    /// writers have not added yet.
    written_since: Apart<AtomicU64>,
    pub(crate) cleaning: Arc<CleaningDue>,
    /// Some page has not landed since the log was opened. It is set under the locks of all writers.
    pub(crate) has_given_up: AtomicBool,
    writers: Vec<Mutex<Writer>>,
    state: Apart<Lock<State>>,
}

/// Where a record went, and the pages that must land before it is durable.
#[derive(Debug)]
pub(crate) struct Appended {
    pub(crate) address: Address,
    /// The extent of the address.
    pub(crate) extent: ExtentId,
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
        let mount = sequence.mount();
        let has_given_up = extents.iter().any(|(_, extent)| extent.gave_up_in(mount));
        let pins = Arc::new(Pins::new(&shape));
        let state = State::new(extents, sequence, shares_space, pins.clone());
        Self {
            shape,
            layout: Layout::new(&shape)
                .vouched(media.vouches_for_headers())
                .checked(!media.vouches()),
            media,
            lanes: Arc::default(),
            lives: Arc::new(Lives::new(&shape)),
            windows: KeyWindows::new(0),
            answers_early: false,
            capacity_bytes: u64::MAX,
            settled,
            owners: Owners::new(shape.extents),
            pins,
            is_decision_watched: AtomicBool::new(false),
            written_since: Apart(AtomicU64::new(0)),
            cleaning: state.cleaning.clone(),
            has_given_up: AtomicBool::new(has_given_up),
            writers: vec![Mutex::new(Writer::new(0, sequence, shape.pages_per_extent))],
            state: Apart(Lock::new(Order::Log, state)),
        }
    }

    /// Gives the log a capacity, and writers for so many reactors or fewer. Each writer has an open
    /// extent, which the cleaner must not need. `spare` extents are not filled by the capacity.
    pub(crate) fn prepare(&mut self, capacity_bytes: u64, reactors: u32, spare: u32) {
        self.capacity_bytes = capacity_bytes;
        let sequence = self.whole().sequence;
        let may_be_open = 1 + spare.saturating_sub(SPARE_EXTENTS_MIN);
        let writers = reactors.min(may_be_open).clamp(1, WRITERS_MAX);
        let pages = self.shape.pages_per_extent;
        self.writers.extend(
            (1..writers as usize).map(|number| Mutex::new(Writer::new(number, sequence, pages))),
        );
        self.owners.share_among(self.writers.len());
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

    /// Returns the number of the writer of this reactor.
    #[inline]
    pub(crate) fn own_writer(&self) -> usize {
        if self.has_one_writer() { 0 } else { self.owners.own() }
    }

    /// Returns the number of its writers.
    pub(crate) const fn writers(&self) -> usize {
        self.writers.len()
    }

    pub(crate) const fn has_one_writer(&self) -> bool {
        self.writers() == 1
    }

    /// Counts page numbers that records were written to.
    pub(crate) fn count_written(&self, numbers: u64) {
        if numbers > 0 {
            self.written_since.fetch_add(numbers, Ordering::Relaxed);
        }
    }

    /// Returns the page numbers that records were written to since the last checkpoint, as far as
    /// they have been counted.
    #[inline]
    pub(crate) fn written_since(&self) -> u64 {
        self.written_since.load(Ordering::Relaxed)
    }

    /// Sets what [`Self::written_since`] returns. The whole log is locked.
    pub(crate) fn set_written_since(&self, numbers: u64) {
        self.written_since.store(numbers, Ordering::Relaxed);
    }

    /// Lets the cleaner use extents that are kept for table pages: see [`space::Space::owe`].
    pub(crate) fn owe_extents(&self) {
        self.whole().space.owe(self.media.free_extents());
    }

    /// Free extents beside those kept for table pages.
    pub(crate) fn free_extents(&self, state: &State) -> u32 {
        self.media.free_extents().saturating_sub(state.space.kept())
    }

    /// Returns the checksum of `value`, or 0 where the medium vouches for its bytes.
    #[inline]
    pub(crate) fn value_crc(&self, value: &Buf) -> u32 {
        if self.has_crc(value.len()) { value.crc32c() } else { 0 }
    }

    /// Returns whether the header of a value of `len` bytes has its checksum.
    #[inline]
    pub(crate) const fn has_crc(&self, len: u32) -> bool {
        len > 0 && self.layout.is_checked
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
