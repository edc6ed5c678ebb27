use clock::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The protected memory in which writes gather until their page has landed, and the tasks that
/// wait for room there.
///
/// Writes enter in order of arrival. The first in the queue enters when there is room, or when no
/// page is in flight: then only the write itself can bring room.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes_max: u64,
    bytes: u64,
    /// Pages that are closed and have not landed.
    under_way: BTreeSet<Ticket>,
    closed: u64,
    queue: VecDeque<(TaskId, u64)>,
    /// True when the first task of the queue is woken and about to leave it.
    is_woken: bool,
    /// The tasks that wait for all pages before this one.
    flushes: Vec<(Ticket, TaskId)>,
}

/// A closed page's number, counted over all zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Ticket(u64);

impl Buffer {
    pub(crate) const fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            under_way: BTreeSet::new(),
            closed: 0,
            queue: VecDeque::new(),
            is_woken: false,
            flushes: Vec::new(),
        }
    }

    /// Returns the bytes in the buffer and the number of pages ever closed. `None` while a page is
    /// in flight.
    pub(crate) fn save(&self) -> Option<(u64, u64)> {
        let is_quiet = self.under_way.is_empty() && self.queue.is_empty();
        is_quiet.then_some((self.bytes, self.closed))
    }

    /// Restores what [`Self::save`] returned.
    pub(crate) const fn restore(&mut self, (bytes, closed): (u64, u64)) {
        (self.bytes, self.closed) = (bytes, closed);
    }

    /// Returns true when `bytes` may be added now. Otherwise queues the current task, which then
    /// parks.
    pub(crate) fn enter(&mut self, bytes: u64) -> bool {
        let enters = self.queue.is_empty() && self.has_room(bytes);
        if !enters {
            self.queue.push_back((clock::current(), bytes));
        }
        enters
    }

    /// Removes the woken task from the front of the queue.
    pub(crate) fn leave_queue(&mut self) {
        assert!(self.is_woken, "a task leaves the queue only after it was woken");
        self.is_woken = false;
        self.queue.pop_front();
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.under_way.is_empty() || self.bytes + bytes <= self.bytes_max
    }

    pub(crate) const fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Notes that a page is on its way to the medium.
    pub(crate) fn close_page(&mut self) -> Ticket {
        let ticket = Ticket(self.closed);
        self.closed += 1;
        self.under_way.insert(ticket);
        ticket
    }

    /// Removes `bytes` of the page of `ticket`, or of a page that was never closed.
    pub(crate) fn remove(&mut self, bytes: u64, ticket: Option<Ticket>) {
        self.bytes -= bytes;
        let Some(ticket) = ticket else { return };
        assert!(self.under_way.remove(&ticket), "a page leaves the buffer once");
        let first = self.first_under_way();
        self.flushes.retain(|(end, task)| {
            let waits = first < *end;
            if !waits {
                clock::wake(*task);
            }
            waits
        });
    }

    /// Wakes the first task of the queue if it may enter.
    pub(crate) fn wake_next(&mut self) {
        let Some((task, bytes)) = self.queue.front() else { return };
        if !self.is_woken && self.has_room(*bytes) {
            self.is_woken = true;
            clock::wake(*task);
        }
    }

    /// Returns true when no page is in flight. Otherwise registers the current task, which parks
    /// until the present ones have landed.
    pub(crate) fn is_flushed(&mut self) -> bool {
        let is_flushed = self.under_way.is_empty();
        if !is_flushed {
            self.flushes.push((Ticket(self.closed), clock::current()));
        }
        is_flushed
    }

    fn first_under_way(&self) -> Ticket {
        self.under_way.first().copied().unwrap_or(Ticket(self.closed))
    }
}
