use crate::bar0::Doorbell;
use crate::bus::HostMemory;
use crate::pending::Pending;
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::ring::Ring;
use smallvec::SmallVec;
use spec::Completion;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of a completion queue entry.
pub(crate) const ENTRY_BYTES: usize = 16;

/// The phase bit in the last dword, which is written last.
const PHASE: u32 = 1 << 16;

/// Entries of a line of the cache, which are written together: a host that polls for one of them
/// takes the line away from the function.
const LINE: u16 = 4;

/// A completion queue in host memory.
pub(crate) struct CompletionQueue {
    id: u16,
    memory: Rc<dyn HostMemory>,
    ring: Ring,
    /// Where the first entry lies that is not written yet, and those from there on.
    first_unwritten: Cell<u64>,
    unwritten: RefCell<SmallVec<[[u8; ENTRY_BYTES]; LINE as usize]>>,
    /// The phase bit of this pass over the ring: inverted at each pass, and first 1.
    phase: Cell<bool>,
    /// The first entry that the host has not consumed.
    head: Cell<u16>,
    /// Completions for which the host has made no room yet.
    waiting: RefCell<VecDeque<Completion>>,
    /// The MSI-X vector that it raises, if any.
    vector: Option<u16>,
    /// Has the queue while completions wait, and while its vector is to be raised.
    pending: Rc<Pending>,
    /// Where the head is read, if the function is not told of each write.
    polled: RefCell<Option<Rc<PolledDoorbells>>>,
}

impl CompletionQueue {
    pub(crate) fn new(
        id: u16,
        memory: Rc<dyn HostMemory>,
        (address, entries): (u64, u16),
        vector: Option<u16>,
        pending: Rc<Pending>,
    ) -> Self {
        Self {
            id,
            memory,
            ring: Ring::new(address, ENTRY_BYTES, entries),
            first_unwritten: Cell::new(address),
            unwritten: RefCell::default(),
            phase: Cell::new(true),
            head: Cell::new(0),
            waiting: RefCell::default(),
            vector,
            pending,
            polled: RefCell::default(),
        }
    }

    /// Has the queue read its head there.
    pub(crate) fn set_polled(&self, polled: Option<Rc<PolledDoorbells>>) {
        *self.polled.borrow_mut() = polled;
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    pub(crate) fn doorbell(&self) -> Doorbell {
        Doorbell::Head(self.id)
    }

    /// Posts a completion, or keeps it until the queue has room. It is written with those of its
    /// line, at the latest by [`Self::write_posted`].
    #[inline]
    pub(crate) fn post(&self, entry: Completion) -> Result<(), QueueFault> {
        if self.is_full() {
            self.waiting.borrow_mut().push_back(entry);
            self.pending.room.insert(self.id);
            return self.look();
        }
        self.add(entry)
    }

    /// Returns whether completions wait for room.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Reads the head, if it is polled and completions wait for it.
    #[inline]
    pub(crate) fn look(&self) -> Result<(), QueueFault> {
        let polled = self.polled.borrow().clone();
        let polled = polled.filter(|_| self.is_waiting());
        match polled.map(|polled| polled.value(self.doorbell())) {
            Some(Ok(head)) => self.consume(head),
            // A guest's firmware may move memory while a queue is there.
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// Asks the host to write the real doorbell when it makes room for completions that wait.
    pub(crate) fn arm(&self) {
        if let Some(polled) = self.polled.borrow().as_ref().filter(|_| self.is_waiting()) {
            // If its memory has gone, the host finds no index there either.
            let _ = polled.set_event_index(self.doorbell(), self.head.get());
        }
    }

    /// Forgets completions of a deleted submission queue that wait for room.
    pub(crate) fn forget(&self, submission: u16) {
        self.waiting.borrow_mut().retain(|entry| entry.queue_id() != submission);
        self.note_waiting();
    }

    /// Notes whether completions wait, after some have left.
    fn note_waiting(&self) {
        if !self.is_waiting() {
            self.pending.room.remove(self.id);
        }
    }

    /// Takes the value of the doorbell: the host has consumed the entries before it. Posts
    /// completions that waited.
    pub(crate) fn consume(&self, head: u32) -> Result<(), QueueFault> {
        let head = u16::try_from(head).map_err(|_| QueueFault)?;
        let (old, tail) = (self.head.get(), self.ring.position());
        // From the old head to the tail, over the end of the ring if the tail is before it.
        let is_posted = if old <= tail {
            (old..=tail).contains(&head)
        } else {
            head >= old && head < self.ring.entries() || head <= tail
        };
        if !is_posted {
            return Err(QueueFault);
        }
        self.head.set(head);
        while !self.is_full() {
            let Some(entry) = self.waiting.borrow_mut().pop_front() else { break };
            self.add(entry)?;
        }
        self.note_waiting();
        Ok(())
    }

    /// Returns the vector to raise for entries, if any.
    #[inline]
    pub(crate) fn vector(&self) -> Option<u16> {
        self.vector
    }

    pub(crate) fn pending(&self) -> &Rc<Pending> {
        &self.pending
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.ring.next() == self.head.get()
    }

    #[inline]
    fn add(&self, entry: Completion) -> Result<(), QueueFault> {
        let mut entry: [u8; ENTRY_BYTES] = zerocopy::transmute!(entry);
        if self.phase.get() {
            let last = entry.last_chunk_mut().expect("it has more than 4 bytes");
            *last = (u32::from_le_bytes(*last) | PHASE).to_le_bytes();
        }
        if self.unwritten.borrow().is_empty() {
            self.first_unwritten.set(self.ring.address());
        }
        self.unwritten.borrow_mut().push(entry);
        if self.ring.advance() {
            self.phase.set(!self.phase.get());
        }
        if self.vector.is_some() {
            self.pending.interrupts.insert(self.id);
        }
        if self.ring.position().is_multiple_of(LINE) {
            return self.write_posted();
        }
        self.pending.writes.insert(self.id);
        Ok(())
    }

    /// Writes the completions that were posted.
    #[inline]
    pub(crate) fn write_posted(&self) -> Result<(), QueueFault> {
        let unwritten = &mut *self.unwritten.borrow_mut();
        if !unwritten.is_empty() {
            let written = self.memory.post(self.first_unwritten.get(), unwritten);
            unwritten.clear();
            written?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostRam;
    use spec::Status;

    #[test]
    fn entries_of_a_line_are_written_together_or_when_the_task_asks() {
        let ram = Rc::<HostRam>::default();
        let address = ram.allocate(1);
        let pending = Rc::<Pending>::default();
        let queue = CompletionQueue::new(3, ram.clone(), (address, 6), None, pending.clone());
        // The phase bits and ids of the entries that the host sees, of this pass over the ring.
        let seen = |phase: u8| -> Vec<u8> {
            let ring = ram.get(address, 6 * ENTRY_BYTES);
            let entries = ring.chunks(ENTRY_BYTES).filter(|entry| entry[14] & 1 == phase);
            entries.map(|entry| entry[12]).collect()
        };
        let post = |id| queue.post(Completion::new(id, Status::SUCCESS, 0)).unwrap();
        (1..=3).for_each(post);
        assert_eq!(seen(1), [], "others of their line may follow");
        post(4);
        assert_eq!(seen(1), [1, 2, 3, 4]);
        post(5);
        assert_eq!((seen(1).len(), pending.writes.ids().next()), (4, Some(3)));
        queue.write_posted().unwrap();
        assert_eq!(seen(1), [1, 2, 3, 4, 5]);
        queue.consume(5).unwrap();
        post(6);
        assert_eq!(seen(1), [1, 2, 3, 4, 5, 6], "the last line of the ring may be short");
        post(7);
        queue.write_posted().unwrap();
        assert_eq!((seen(0), seen(1)), (vec![7], vec![2, 3, 4, 5, 6]));
        let writes = ram.writes();
        queue.write_posted().unwrap();
        assert_eq!(ram.writes(), writes, "each entry is written once");
    }
}
