use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos};
use controller::{Completion, Queue, Submission};
use guest::{Guest, GuestDoorbells};
use spec::{Opcode, Status};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint;
use std::rc::Rc;

/// An I/O queue of a guest in this process, which reads single blocks and polls for completions.
/// The data of a read stays in guest memory.
#[derive(Clone)]
pub(super) struct GuestQueue(Rc<RefCell<State>>);

struct State {
    queue: guest::Queue<GuestDoorbells>,
    next_number: u64,
    /// Command ids that are free.
    free: VecDeque<u16>,
    /// The command of each id.
    asked: Vec<(u64, Nanos)>,
    /// Kept for its connection.
    _guest: Guest,
}

impl GuestQueue {
    /// Creates the queue of a guest, with so many entries. The error is a sentence.
    pub(super) fn new(guest: Guest, entries: u16) -> Result<Self, String> {
        let state = State {
            queue: guest.queue(entries)?,
            next_number: 0,
            free: (0..entries - 1).collect(),
            asked: vec![(0, Nanos::ZERO); entries.into()],
            _guest: guest,
        };
        Ok(Self(Rc::new(RefCell::new(state))))
    }
}

impl Queue for GuestQueue {
    fn submit(&self, submission: Submission) -> u64 {
        assert_eq!(submission.command.opcode(), Opcode::READ, "it is for reads only");
        let state = &mut *self.0.borrow_mut();
        let number = state.next_number;
        state.next_number += 1;
        let id = state.free.pop_front().expect("the queue has an entry for each read");
        state.asked[usize::from(id)] = (number, clock::host_now());
        state.queue.push(id, submission.command);
        state.queue.ring_tail();
        number
    }

    async fn next(&self) -> Completion {
        let state = &mut *self.0.borrow_mut();
        let id = loop {
            match state.queue.take() {
                Some(id) => break id,
                None => hint::spin_loop(),
            }
        };
        state.queue.ring_head();
        state.free.push_back(id);
        let (number, submitted) = state.asked[usize::from(id)];
        let outcome = (Status::SUCCESS, 0, Buf::phantom(BLOCK_BYTES, 0));
        Completion::over_link(number, Opcode::READ, submitted, outcome)
    }
}
