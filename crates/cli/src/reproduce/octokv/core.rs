//! A core of the target.

use super::testbed::CORES;
use balance::{Load, Router};
use base::Nanos;
use clock::{Class, Hold, Resource, Stage};
use std::cell::{Cell, RefCell, RefMut};

/// A core, and what it did so far.
pub(super) struct Core {
    processor: Resource,
    router: RefCell<Router>,
    /// Without the time for which it was busy.
    load: Cell<Load>,
    /// The sum of the times between receiving a command and answering it.
    latency: Cell<Nanos>,
    /// The commands that it received and has not answered.
    outstanding: Cell<u64>,
    /// What it is expected to take for what it has begun, and for what waits for it.
    queued: Cell<Nanos>,
}

/// What a core did from the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// `commands` are those that it answered.
    pub(super) load: Load,
    /// The sum of the times between receiving a command and answering it.
    pub(super) latency: Nanos,
}

/// A turn on a core.
pub(super) struct Turn<'a> {
    core: &'a Core,
    expected: Nanos,
    _unit: Hold,
}

impl Core {
    /// Core `at` of the target, which runs on `processor`.
    pub(super) fn new(at: usize, processor: Resource) -> Self {
        Self {
            processor,
            router: RefCell::new(Router::new(at, CORES)),
            load: Cell::default(),
            latency: Cell::default(),
            outstanding: Cell::default(),
            queued: Cell::default(),
        }
    }

    pub(super) fn router(&self) -> RefMut<'_, Router> {
        self.router.borrow_mut()
    }

    /// Notes that a command has arrived.
    pub(super) fn arrive(&self) {
        self.outstanding.set(self.outstanding.get() + 1);
    }

    /// Notes that a command is answered, so long after it arrived.
    pub(super) fn answer(&self, latency: Nanos) {
        self.outstanding.set(self.outstanding.get() - 1);
        self.latency.set(self.latency.get() + latency);
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.outstanding.get()
    }

    /// Adds to what the core did.
    pub(super) fn count(&self, more: Load) {
        self.load.set(self.load.get() + more);
    }

    pub(super) fn done(&self) -> Done {
        let load = Load { busy: self.processor.busy(), ..self.load.get() };
        Done { load, latency: self.latency.get() }
    }

    /// Notes that work is queued, which is expected to take this time.
    pub(super) fn expect(&self, time: Nanos) -> Nanos {
        self.queued.set(self.queued.get() + time);
        time
    }

    /// Returns what the core is expected to take for what is queued.
    pub(super) fn queued(&self) -> Nanos {
        self.queued.get()
    }

    /// Waits for a turn, which is expected to take this time.
    pub(super) async fn enter(&self, expected: Nanos) -> Turn<'_> {
        self.expect(expected);
        let unit = self.processor.acquire(Class::HostWrite).await;
        Turn { core: self, expected, _unit: unit }
    }

    /// Runs for this time.
    pub(super) async fn run(&self, time: Nanos) {
        self.expect(time);
        self.serve(Class::HostWrite, (time, time)).await;
    }

    /// Runs for this time what another core has sent and is queued already, before what this core
    /// has received: a server does so before each batch of commands.
    pub(super) async fn run_for_other(&self, expected: Nanos, time: Nanos) {
        self.serve(Class::HostRead, (expected, time)).await;
    }

    async fn serve(&self, class: Class, (expected, time): (Nanos, Nanos)) {
        self.processor.serve(class, Stage::Core, time).await;
        self.queued.set(self.queued.get() - expected);
    }
}

impl Turn<'_> {
    pub(super) fn expected(&self) -> Nanos {
        self.expected
    }

    /// Runs for this time, and ends the turn.
    pub(super) async fn run(self, time: Nanos) {
        clock::sleep(time, Stage::Core).await;
        self.core.queued.set(self.core.queued.get() - self.expected);
    }
}
