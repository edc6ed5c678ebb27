//! What each reactor has done for a store.

use super::{Counts, add, add_shared};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What a reactor has done for a store since it was opened. The counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReactorWork {
    /// The reactor's number: see [`clock::reactor_id`].
    pub reactor_id: u32,
    /// Bytes of keys and values that it stored for hosts.
    pub host_bytes: u64,
    /// Bytes of values that it retrieved for hosts.
    pub retrieved_bytes: u64,
    /// Pages that it sensed for retrieves.
    pub retrieve_page_reads: u64,
    /// Pages that it sensed for headers of keys that hosts asked for.
    pub lookup_page_reads: u64,
    /// Extents that it cleaned.
    pub victims: u64,
    /// Records that it moved to clean extents.
    pub records_moved: u64,
    /// Records that it compared with what the index has of their keys, when the store was opened.
    pub records_entered: u64,
    /// Pages of the medium that it wrote for the index and for checkpoints.
    pub table_pages: u64,
    /// Bytes that it read and checked to scrub.
    pub scrubbed_bytes: u64,
}

/// The counters behind [`ReactorWork`]. Each reactor that uses the store has a slot of its own, so
/// counting needs no locked instruction. Tasks of one reactor run one at a time.
#[derive(Debug)]
pub(super) struct ByReactor {
    slots: Vec<Slot>,
    /// Of reactors without a slot, and of a saved state.
    others: Work,
}

// A line of the processor's cache is fetched with its neighbour.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    /// The reactor's number plus 1; 0 for none.
    reactor: AtomicU32,
    work: Work,
}

#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) host_bytes: AtomicU64,
    pub(super) retrieved_bytes: AtomicU64,
    pub(super) retrieve_page_reads: AtomicU64,
    pub(super) lookup_page_reads: AtomicU64,
    pub(super) victims: AtomicU64,
    pub(super) records_moved: AtomicU64,
    pub(super) records_entered: AtomicU64,
    pub(super) scrubbed_bytes: AtomicU64,
}

impl ByReactor {
    /// For a store that so many reactors use. A single one opens it, and need not be looked up.
    pub(super) fn new(reactors: u32) -> Self {
        let slots: Vec<_> = (0..reactors.max(1)).map(|_| Slot::default()).collect();
        if let [only] = &slots[..]
            && clock::is_installed()
        {
            only.is_of(clock::reactor_id());
        }
        Self { slots, others: Work::default() }
    }

    /// Adds to a counter of this reactor.
    #[inline]
    pub(super) fn count(&self, counter: impl Fn(&Work) -> &AtomicU64, more: u64) {
        let own = match &self.slots[..] {
            [only] => Some(only),
            slots => own(slots, clock::reactor_id()),
        };
        match own {
            Some(slot) => add(counter(&slot.work), more),
            None => add_shared(counter(&self.others), more),
        }
    }

    /// Returns the work of each reactor that has a slot.
    pub(super) fn work(&self) -> Vec<ReactorWork> {
        let slots = self.slots.iter();
        slots.filter_map(|slot| Some(slot.work.read(slot.reactor_id()?))).collect()
    }

    /// Returns the work of all, with no number of a reactor.
    pub(super) fn sum(&self) -> ReactorWork {
        self.slots.iter().fold(self.others.read(0), |sum, slot| {
            let work = slot.work.read(0);
            ReactorWork {
                reactor_id: 0,
                host_bytes: sum.host_bytes + work.host_bytes,
                retrieved_bytes: sum.retrieved_bytes + work.retrieved_bytes,
                retrieve_page_reads: sum.retrieve_page_reads + work.retrieve_page_reads,
                lookup_page_reads: sum.lookup_page_reads + work.lookup_page_reads,
                victims: sum.victims + work.victims,
                records_moved: sum.records_moved + work.records_moved,
                records_entered: sum.records_entered + work.records_entered,
                scrubbed_bytes: sum.scrubbed_bytes + work.scrubbed_bytes,
                ..sum
            }
        })
    }

    /// Continues counting from `counts`, which are of no reactor.
    pub(super) fn restore(&self, counts: &Counts) {
        let others = &self.others;
        for (counter, count) in [
            (&others.host_bytes, counts.host_bytes),
            (&others.retrieve_page_reads, counts.retrieve_page_reads),
            (&others.lookup_page_reads, counts.host_page_reads - counts.retrieve_page_reads),
            (&others.victims, counts.victims),
            (&others.records_moved, counts.records_moved),
        ] {
            counter.store(count, Ordering::Relaxed);
        }
    }
}

/// Returns the slot of a reactor, which takes one at first. `None` if others have them all.
fn own(slots: &[Slot], reactor: u32) -> Option<&Slot> {
    // The numbers of the reactors that use a store mostly follow each other: they are its place.
    let (before, from) = slots.split_at_checked(reactor as usize).unwrap_or((slots, &[]));
    from.iter().chain(before).find(|slot| slot.is_of(reactor))
}

impl Slot {
    /// Returns true if the slot is that of `reactor`, which takes it if it is free.
    fn is_of(&self, reactor: u32) -> bool {
        let (found, reactor) = (self.reactor.load(Ordering::Relaxed), reactor + 1);
        let take =
            || self.reactor.compare_exchange(0, reactor, Ordering::Relaxed, Ordering::Relaxed);
        found == reactor || found == 0 && take().is_ok()
    }

    fn reactor_id(&self) -> Option<u32> {
        self.reactor.load(Ordering::Relaxed).checked_sub(1)
    }
}

impl Work {
    fn read(&self, reactor_id: u32) -> ReactorWork {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ReactorWork {
            reactor_id,
            host_bytes: read(&self.host_bytes),
            retrieved_bytes: read(&self.retrieved_bytes),
            retrieve_page_reads: read(&self.retrieve_page_reads),
            lookup_page_reads: read(&self.lookup_page_reads),
            victims: read(&self.victims),
            records_moved: read(&self.records_moved),
            records_entered: read(&self.records_entered),
            scrubbed_bytes: read(&self.scrubbed_bytes),
            ..ReactorWork::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::{Schedule, install, uninstall};

    /// Calls `work` in the reactor of this number.
    fn in_reactor(reactor: u32, work: impl FnOnce()) {
        let mut schedule = Schedule::new(None);
        schedule.join_peers(reactor, Box::new(|_| {}));
        install(Box::new(schedule));
        work();
        uninstall();
    }

    fn store(counters: &ByReactor, reactor: u32, bytes: u64) {
        in_reactor(reactor, || counters.count(|work| &work.host_bytes, bytes));
    }

    fn of(reactor_id: u32, host_bytes: u64) -> ReactorWork {
        ReactorWork { reactor_id, host_bytes, ..ReactorWork::default() }
    }

    #[test]
    fn each_reactor_counts_its_own_work_whatever_its_number() {
        let counters = ByReactor::new(3);
        for (reactor, bytes) in [(3, 10), (1, 20), (2, 30), (3, 100), (1, 200), (2, 300)] {
            store(&counters, reactor, bytes);
        }
        in_reactor(2, || counters.count(|work| &work.victims, 5));
        in_reactor(2, || counters.count(|work| &work.records_moved, 7));
        let mut work = counters.work();
        work.sort_unstable_by_key(|work| work.reactor_id);
        let second = ReactorWork { victims: 5, records_moved: 7, ..of(2, 330) };
        assert_eq!(work, [of(1, 220), second, of(3, 110)]);
        let sum = ReactorWork { victims: 5, records_moved: 7, ..of(0, 660) };
        assert_eq!(counters.sum(), sum);
    }

    #[test]
    fn work_of_reactors_without_a_slot_and_of_a_saved_state_is_in_the_sum_only() {
        let counters = ByReactor::new(2);
        for reactor in [7, 0, 1] {
            store(&counters, reactor, 10);
        }
        store(&counters, 7, 100);
        assert_eq!((counters.work(), counters.sum()), (vec![of(7, 110), of(0, 10)], of(0, 130)));
        let counters = ByReactor::new(2);
        counters.restore(&Counts { host_bytes: 50, ..Counts::default() });
        store(&counters, 1, 10);
        assert_eq!((counters.work(), counters.sum()), (vec![of(1, 10)], of(0, 60)));
    }

    #[test]
    fn the_only_reactor_of_a_store_is_the_one_that_opened_it() {
        in_reactor(4, || {
            let counters = ByReactor::new(1);
            counters.count(|work| &work.host_bytes, 10);
            assert_eq!(counters.work(), [of(4, 10)]);
        });
    }
}
