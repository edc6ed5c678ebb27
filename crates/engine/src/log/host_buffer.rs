//! The pages of hosts in memory, and the stores that are about to join one.

use super::room::Shortage;
use crate::ack::Ack;
use clock::TaskId;

/// The pages of hosts that are being programmed, and the tasks that wait for one to land.
#[derive(Debug, Default)]
pub(crate) struct HostBuffer {
    /// Stores that have been accepted and are about to join a page.
    joining: u32,
    in_flight: u32,
    waiters: Vec<TaskId>,
    /// Power is lost: the energy of the capacitors is for the pages in the buffer.
    pub(crate) is_saving: bool,
}

impl HostBuffer {
    /// Returns a shortage if stores are answered from a buffer and this one's share of it, one of
    /// `shares`, is full. The open page counts.
    pub(crate) fn shortage(
        &self,
        ack: Ack,
        shares: usize,
        page_bytes: u32,
        value_len: u32,
    ) -> Option<Shortage> {
        let Ack::Buffer { bytes } = ack else { return None };
        let pages = u64::from(self.in_flight) + 1;
        let used = pages * u64::from(page_bytes) + u64::from(value_len);
        let is_full = used * shares as u64 > bytes && self.in_flight > 0;
        (is_full || self.is_saving).then_some(Shortage::Buffer)
    }

    /// Counts a page whose program begins.
    #[inline]
    pub(crate) fn begin_page(&mut self) {
        self.in_flight += 1;
    }

    /// Takes off a page that has landed, and wakes the tasks that wait for one.
    #[inline]
    pub(crate) fn end_page(&mut self) {
        assert!(self.in_flight > 0, "each host page in flight is counted");
        self.in_flight -= 1;
        self.waiters.drain(..).for_each(clock::wake);
    }

    /// Adds the current task to those that wait until a page lands.
    pub(crate) fn await_page(&mut self) {
        self.waiters.push(clock::current());
    }

    /// Counts a store that is about to join a page.
    #[inline]
    pub(crate) fn announce(&mut self) {
        self.joining += 1;
    }

    /// Takes an announced store off. Returns true for the last one.
    #[inline]
    pub(crate) fn retract(&mut self) -> bool {
        assert!(self.joining > 0, "what was announced is counted");
        self.joining -= 1;
        self.joining == 0
    }

    /// Returns true when a store is announced.
    pub(crate) const fn is_announced(&self) -> bool {
        self.joining > 0
    }

    /// Returns true when no store is announced, no page in flight and no task waiting.
    pub(crate) fn is_idle(&self) -> bool {
        self.joining == 0 && self.in_flight == 0 && self.waiters.is_empty()
    }
}
