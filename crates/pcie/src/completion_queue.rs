use crate::bar0::Doorbell;
use crate::bus::HostMemory;
use crate::pending::Pending;
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::ring::Ring;
use spec::Completion;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of a completion queue entry.
pub(crate) const ENTRY_BYTES: usize = 16;

/// The phase bit in the last dword, which is written last.
const PHASE: u32 = 1 << 16;

/// A completion queue in host memory.
pub(crate) struct CompletionQueue {
    id: u16,
    memory: Rc<dyn HostMemory>,
    ring: Ring,
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

    /// Posts a completion, or keeps it until the queue has room.
    #[inline]
    pub(crate) fn post(&self, entry: Completion) -> Result<(), QueueFault> {
        if self.is_full() {
            self.waiting.borrow_mut().push_back(entry);
            self.pending.room.insert(self.id);
            return self.look();
        }
        self.write(entry)
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
            self.write(entry)?;
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
    fn write(&self, entry: Completion) -> Result<(), QueueFault> {
        let mut entry: [u8; ENTRY_BYTES] = zerocopy::transmute!(entry);
        if self.phase.get() {
            let last = entry.last_chunk_mut().expect("it has more than 4 bytes");
            *last = (u32::from_le_bytes(*last) | PHASE).to_le_bytes();
        }
        self.memory.post(self.ring.address(), &entry)?;
        if self.ring.advance() {
            self.phase.set(!self.phase.get());
        }
        if self.vector.is_some() {
            self.pending.interrupts.insert(self.id);
        }
        Ok(())
    }
}
