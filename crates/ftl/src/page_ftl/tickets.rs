use clock::TaskId;
use std::collections::VecDeque;

/// Numbers, from 1, of the pages with host data, and which of them have landed.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    issued: u64,
    /// All tickets up to this one have landed.
    landed: u64,
    /// Whether each later ticket has landed.
    rest: VecDeque<bool>,
    waiters: Vec<(u64, TaskId)>,
}

impl Tickets {
    /// Returns tickets of which `issued` were issued and have landed.
    pub(crate) fn restored(issued: u64) -> Self {
        Self { issued, landed: issued, ..Self::default() }
    }

    /// Issues the ticket of a page that hosts begin to fill.
    pub(crate) fn issue(&mut self) -> u64 {
        self.issued += 1;
        self.rest.push_back(false);
        self.issued
    }

    /// Returns the last one issued.
    pub(crate) const fn last(&self) -> u64 {
        self.issued
    }

    /// True when the pages of all tickets up to this one have landed.
    #[inline]
    pub(crate) const fn have_landed(&self, ticket: u64) -> bool {
        self.landed >= ticket
    }

    /// Registers `task` to be woken when [`Self::have_landed`] becomes true.
    pub(crate) fn wake_when_landed(&mut self, ticket: u64, task: TaskId) {
        self.waiters.push((ticket, task));
    }

    /// Wakes all waiting tasks: what is left will never land.
    pub(crate) fn give_up(&mut self) {
        self.waiters.drain(..).for_each(|(_, task)| clock::wake(task));
    }

    /// Marks the page of `ticket` as landed.
    pub(crate) fn land(&mut self, ticket: u64) {
        let at = usize::try_from(ticket - self.landed - 1).expect("few pages are under way");
        self.rest[at] = true;
        while self.rest.front() == Some(&true) {
            self.rest.pop_front();
            self.landed += 1;
        }
        if !self.waiters.is_empty() {
            let landed = self.landed;
            let done = self.waiters.extract_if(.., |(ticket, _)| *ticket <= landed);
            done.for_each(|(_, task)| clock::wake(task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_has_landed_when_those_before_it_have() {
        let mut tickets = Tickets::default();
        assert!(tickets.have_landed(tickets.last()));
        let all: Vec<u64> = (0..3).map(|_| tickets.issue()).collect();
        assert_eq!((all, tickets.last()), (vec![1, 2, 3], 3));
        tickets.land(2);
        assert!(!tickets.have_landed(1) && !tickets.have_landed(2));
        tickets.land(1);
        assert!(tickets.have_landed(2) && !tickets.have_landed(3));
        tickets.land(3);
        assert!(tickets.have_landed(3));
    }
}
