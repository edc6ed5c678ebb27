use crate::conditions::Conditions;
use crate::pipe::{Bells, Pipe};
use base::{Nanos, Rng};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A connection: two ends, called 0 and 1, and a pipe from each.
#[derive(Debug)]
pub(crate) struct Wire {
    /// How many connections of the network were made before this one.
    pub(crate) number: u64,
    /// By the end that writes.
    pub(crate) pipes: [RefCell<Pipe>; 2],
    pub(crate) notifies: [Bells; 2],
    /// Which ends were shut down.
    pub(crate) is_shut: [Cell<bool>; 2],
}

impl Wire {
    pub(crate) fn new(number: u64, conditions: Conditions, rng: &mut Rng) -> Rc<Self> {
        let mut pipe = || RefCell::new(Pipe::new(conditions, Rng::new(rng.next_u64())));
        Rc::new(Self {
            number,
            pipes: [pipe(), pipe()],
            notifies: Default::default(),
            is_shut: Default::default(),
        })
    }

    /// Wakes the reader of the direction from `writer` at `at`.
    pub(crate) fn notify_reader_at(self: &Rc<Self>, writer: usize, at: Nanos) {
        let wire = self.clone();
        clock::spawn_at(at, async move || wire.notifies[writer].reader.notify());
    }

    /// End `end` shuts the connection down.
    pub(crate) fn shut_down(self: &Rc<Self>, end: usize) {
        if self.is_shut[end].replace(true) || !clock::is_installed() {
            return;
        }
        let peer = 1 - end;
        let at = self.pipes[end].borrow_mut().end(clock::now());
        self.pipes[peer].borrow_mut().go_deaf(at);
        self.notifies[end].writer.notify();
        self.notifies[peer].reader.notify();
        let wire = self.clone();
        clock::spawn_at(at, async move || {
            wire.notifies[end].reader.notify();
            wire.notifies[peer].writer.notify();
        });
    }

    pub(crate) fn cut(&self) {
        for (pipe, notifies) in self.pipes.iter().zip(&self.notifies) {
            pipe.borrow_mut().cut();
            notifies.reader.notify();
            notifies.writer.notify();
        }
    }

    /// True while both ends are there, as far as they have been told.
    pub(crate) fn is_open(&self) -> bool {
        let is_shut = self.is_shut.iter().any(Cell::get);
        !is_shut && !self.pipes[0].borrow().is_cut()
    }
}
