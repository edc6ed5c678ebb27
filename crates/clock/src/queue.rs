use crate::class::Class;
use crate::rank::Rank;
use base::Nanos;
use serde::{Deserialize, Serialize};

/// The resources of one device, which share one order of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub(crate) u32);

impl Group {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The order in which the resources of a group serve.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupOrder {
    /// Collectors that want garbage collection above host writes.
    pub(crate) promotions: u32,
    /// True when resources ignore classes.
    pub(crate) by_arrival: bool,
}

impl GroupOrder {
    /// The classes, most urgent first.
    pub(crate) const fn classes(self) -> [Class; Class::COUNT] {
        if self.promotions > 0 { Class::GC_PROMOTED } else { Class::USUAL }
    }
}

/// The description of a resource in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// The name that its maker gave it.
    pub name: &'static str,
    /// Its place in the order of waiting.
    pub rank: Rank,
}

/// The waiters of one class, linked by `Task::next`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

/// A resource's waiters and its account.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: &'static str,
    pub(crate) rank: Rank,
    pub(crate) group: Group,
    units: u32,
    pub(crate) free: u32,
    /// One bit for each list that has waiters.
    pub(crate) waiting: u8,
    pub(crate) bypassed: u32,
    /// By class, or all waiters in the first.
    pub(crate) lists: [List; Class::COUNT],
    pub(crate) by_arrival: bool,
    /// Units held by background work, the instant since which at least one is, and earlier such
    /// time.
    gc_units: u32,
    gc_since: Nanos,
    gc_total: Nanos,
    busy_total: Nanos,
    busy_mark: Nanos,
}

impl Queue {
    pub(crate) const NO_TASK: u32 = u32::MAX;

    pub(crate) fn new(name: &'static str, rank: Rank, units: u32, group: Group) -> Self {
        Self {
            name,
            rank,
            group,
            units,
            free: units,
            waiting: 0,
            bypassed: 0,
            lists: [List { head: Self::NO_TASK, tail: Self::NO_TASK }; Class::COUNT],
            by_arrival: false,
            gc_units: 0,
            gc_since: Nanos::ZERO,
            gc_total: Nanos::ZERO,
            busy_total: Nanos::ZERO,
            busy_mark: Nanos::ZERO,
        }
    }

    pub(crate) fn serve_in_order_of_arrival(&mut self) {
        assert!(self.waiting == 0, "{} is waited for in another order", self.name);
        self.by_arrival = true;
    }

    pub(crate) const fn info(&self) -> ResourceInfo {
        ResourceInfo { name: self.name, rank: self.rank }
    }

    /// Time up to `now` during which background work held a unit.
    #[inline]
    pub(crate) fn gc_time(&self, now: Nanos) -> Nanos {
        if self.gc_units > 0 { self.gc_total + (now - self.gc_since) } else { self.gc_total }
    }

    #[inline]
    pub(crate) fn busy_until(&self, now: Nanos) -> Nanos {
        let held = u64::from(self.units - self.free);
        self.busy_total + Nanos((now - self.busy_mark).0 * held)
    }

    #[inline]
    pub(crate) fn take(&mut self, class: Class, now: Nanos) {
        self.occupy(now);
        self.begin_work(class, now);
    }

    /// Ends work of `class`, whose unit is then free. Returns true if a task waits for the unit: it
    /// stays held, for that task.
    #[inline]
    pub(crate) fn give_back(&mut self, class: Class, now: Nanos) -> bool {
        self.end_work(class, now);
        if self.waiting == 0 {
            self.vacate(now);
            return false;
        }
        assert!(self.free == 0, "{} is waited for while a unit is free", self.name);
        true
    }

    #[inline]
    pub(crate) fn occupy(&mut self, now: Nanos) {
        self.busy_total = self.busy_until(now);
        self.busy_mark = now;
        self.free -= 1;
    }

    #[inline]
    pub(crate) fn vacate(&mut self, now: Nanos) {
        assert!(self.free < self.units, "{} was given back more often than taken", self.name);
        self.busy_total = self.busy_until(now);
        self.busy_mark = now;
        self.free += 1;
    }

    /// Counts a unit that begins work of `class`.
    #[inline]
    pub(crate) fn begin_work(&mut self, class: Class, now: Nanos) {
        if class.is_background() {
            if self.gc_units == 0 {
                self.gc_since = now;
            }
            self.gc_units += 1;
        }
    }

    #[inline]
    pub(crate) fn end_work(&mut self, class: Class, now: Nanos) {
        if class.is_background() {
            self.gc_total = self.gc_time(now);
            self.gc_since = now;
            self.gc_units -= 1;
        }
    }
}

/// What a saved state keeps of an idle resource.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SavedQueue {
    bypassed: u32,
    gc_since: Nanos,
    gc_total: Nanos,
    busy_total: Nanos,
    busy_mark: Nanos,
}

impl Queue {
    pub(crate) const fn save(&self) -> SavedQueue {
        SavedQueue {
            bypassed: self.bypassed,
            gc_since: self.gc_since,
            gc_total: self.gc_total,
            busy_total: self.busy_total,
            busy_mark: self.busy_mark,
        }
    }

    pub(crate) const fn restore(&mut self, saved: SavedQueue) {
        self.bypassed = saved.bypassed;
        self.gc_since = saved.gc_since;
        self.gc_total = saved.gc_total;
        self.busy_total = saved.busy_total;
        self.busy_mark = saved.busy_mark;
    }
}
