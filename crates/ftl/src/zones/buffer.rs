use clock::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The protected memory in which writes gather until their page has landed, and the tasks that
/// wait for room there.
///
/// Writes enter in the order in which they came. One that waits goes on when there is room, or when
/// no page is under way: then room comes only from what it adds itself.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes_max: u64,
    bytes: u64,
    /// Pages that have been closed and have not landed.
    under_way: BTreeSet<Ticket>,
    closed: u64,
    queue: VecDeque<(TaskId, u64)>,
    /// The front of the queue has been woken and is about to leave it.
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

    /// Bytes that are there, and pages that were ever closed. `None` while something is under way.
    pub(crate) fn save(&self) -> Option<(u64, u64)> {
        let is_quiet = self.under_way.is_empty() && self.queue.is_empty();
        is_quiet.then_some((self.bytes, self.closed))
    }

    /// Takes what [`Self::save`] returned.
    pub(crate) const fn restore(&mut self, (bytes, closed): (u64, u64)) {
        (self.bytes, self.closed) = (bytes, closed);
    }

    /// True when `bytes` may be added now. Else the current task is in the queue, and parks.
    pub(crate) fn enter(&mut self, bytes: u64) -> bool {
        let goes_on = self.queue.is_empty() && self.has_room(bytes);
        if !goes_on {
            self.queue.push_back((clock::current(), bytes));
        }
        goes_on
    }

    /// The task at the front of the queue was woken and goes on.
    pub(crate) fn leave_queue(&mut self) {
        assert!(self.is_woken, "whoever waits for room is woken when it is there");
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

    /// `bytes` have left: those of the page of `ticket`, or of one that was never closed.
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

    /// Lets the first of the queue go on if it may.
    pub(crate) fn wake_next(&mut self) {
        let Some((task, bytes)) = self.queue.front() else { return };
        if !self.is_woken && self.has_room(*bytes) {
            self.is_woken = true;
            clock::wake(*task);
        }
    }

    /// True when no page is under way. Else the current task is woken when those that are now have
    /// landed, and parks.
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
