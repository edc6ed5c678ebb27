//! The target: cores that execute the stages of commands.

use super::costs::Command;
use super::duration::Times;
use super::testbed::CORES;
use balance::{Balancer, Load, Router, Settings};
use base::{Nanos, Rng};
use clock::{Class, Group, Rank, Resource, Stage};
use std::cell::{Cell, RefCell};

/// A target in virtual time. Each core does one thing at a time, in the order of arrival.
pub(super) struct Target {
    cores: Vec<Core>,
    /// What a message between two cores takes of each of them.
    message: Nanos,
    /// What the drive takes for a command.
    drive: Nanos,
    times: Times,
    rng: RefCell<Rng>,
}

/// A core, and what it did so far.
struct Core {
    processor: Resource,
    router: RefCell<Router>,
    /// The time of the movable stages of the commands that it received.
    movable: Cell<Nanos>,
    /// The commands that it received and answered, and the time from one to the other of all.
    answered: Cell<(u64, Nanos)>,
    /// Those that another core executed.
    diverted: Cell<u64>,
}

/// What a core did from the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) busy: Nanos,
    pub(super) movable: Nanos,
    pub(super) answered: u64,
    pub(super) diverted: u64,
    /// The sum of the times between receiving a command and answering it.
    pub(super) latency: Nanos,
}

impl Target {
    pub(super) fn new(message: Nanos, drive: Nanos, times: Times, rng: Rng) -> Self {
        let group = Group::new();
        group.serve_in_order_of_arrival();
        let core = |_| Core {
            processor: group.resource("core", Rank::Core, 1),
            router: RefCell::new(Router::new(CORES)),
            movable: Cell::default(),
            answered: Cell::default(),
            diverted: Cell::default(),
        };
        let cores = (0..CORES).map(core).collect();
        Self { cores, message, drive, times, rng: RefCell::new(rng) }
    }

    /// Executes a command that core `at` receives, until its reply is sent.
    pub(super) async fn execute(&self, at: usize, command: Command) {
        let arrival = clock::now();
        let home = &self.cores[at];
        let diverted = home.router.borrow_mut().choose();
        let [receive, begin] =
            [command.receive, command.kv + command.submit].map(|it| self.draw(it));
        let [end, reply] = [command.complete, command.reply].map(|it| self.draw(it));
        if let Some(to) = diverted {
            let other = &self.cores[to];
            home.run(receive + self.message).await;
            other.run(self.message + begin).await;
            clock::sleep(self.draw(self.drive), Stage::Array).await;
            other.run(end + self.message).await;
            home.run(self.message + reply).await;
            home.diverted.set(home.diverted.get() + 1);
        } else {
            home.run(receive + begin).await;
            clock::sleep(self.draw(self.drive), Stage::Array).await;
            home.run(end + reply).await;
        }
        home.movable.set(home.movable.get() + begin + end);
        let (count, latency) = home.answered.get();
        home.answered.set((count + 1, latency + (clock::now() - arrival)));
    }

    /// Ends a window of the balancer again and again.
    pub(super) async fn balance(&self, mut balancer: Balancer, settings: Settings) {
        let mut before = self.done();
        loop {
            clock::sleep(settings.window, Stage::Core).await;
            let done = self.done();
            let load = |(now, before): (&Done, &Done)| Load {
                busy: now.busy - before.busy,
                movable: now.movable - before.movable,
            };
            let loads: Vec<Load> = done.iter().zip(&before).map(load).collect();
            for (core, route) in self.cores.iter().zip(balancer.end_window(settings.window, &loads))
            {
                core.router.borrow_mut().set(route);
            }
            before = done;
        }
    }

    /// Returns what each core did so far.
    pub(super) fn done(&self) -> [Done; CORES] {
        let of = |core: &Core| {
            let (answered, latency) = core.answered.get();
            let (busy, movable) = (core.processor.busy(), core.movable.get());
            Done { busy, movable, answered, diverted: core.diverted.get(), latency }
        };
        std::array::from_fn(|core| of(&self.cores[core]))
    }

    pub(super) fn draw(&self, mean: Nanos) -> Nanos {
        self.times.draw(mean, &mut self.rng.borrow_mut())
    }
}

impl Core {
    async fn run(&self, time: Nanos) {
        self.processor.serve(Class::HostRead, Stage::Core, time).await;
    }
}
