//! The target: cores that execute the stages of commands.

use super::core::{Core, Done};
use super::costs::Command;
use super::duration::Times;
use super::testbed::CORES;
use balance::{Balancer, Load, Settings};
use base::{Nanos, Rng};
use clock::{Group, Rank, Stage};
use std::cell::RefCell;

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

impl Target {
    pub(super) fn new(message: Nanos, drive: Nanos, times: Times, rng: Rng) -> Self {
        let group = Group::new();
        let core = |at| Core::new(at, group.resource("core", Rank::Handler, 1));
        let cores = (0..CORES).map(core).collect();
        Self { cores, message, drive, times, rng: RefCell::new(rng) }
    }

    /// A target whose cores take what they do from a single queue, whichever of them is free: the
    /// ideal balancer.
    pub(super) fn with_single_queue(drive: Nanos, times: Times, rng: Rng) -> Self {
        let group = Group::new();
        group.serve_in_order_of_arrival();
        let units = u32::try_from(CORES).expect("a few");
        let all = group.resource("cores", Rank::Handler, units);
        let cores = (0..CORES).map(|at| Core::new(at, all)).collect();
        Self { cores, message: Nanos::ZERO, drive, times, rng: RefCell::new(rng) }
    }

    /// Executes a command that core `at` receives, until its reply is sent.
    pub(super) async fn execute(&self, at: usize, command: Command) {
        let arrival = clock::now();
        let home = &self.cores[at];
        let [receive, begin] =
            [command.receive, command.kv + command.submit].map(|it| self.draw(it));
        let [end, reply] = [command.complete, command.reply].map(|it| self.draw(it));
        home.arrive();
        let turn = home.enter(command.receive + command.kv + command.submit).await;
        home.count(Load { depths: home.outstanding(), ..Load::default() });
        let executes = Load { executed: begin + end, ..Load::default() };
        let mut receives = Load { movable: begin + end, commands: 1, ..Load::default() };
        if let Some(to) = self.place(at, turn.expected()) {
            let other = &self.cores[to];
            // From now on, so that others see it.
            let queued = other.expect(self.message + command.kv + command.submit);
            turn.run(receive + self.message).await;
            other.run_for_other(queued, self.message + begin).await;
            clock::sleep(self.draw(self.drive), Stage::Array).await;
            other.run(end + self.message).await;
            home.run(self.message + reply).await;
            receives.diverted = 1;
            other.count(Load { taken: 1, ..executes });
        } else {
            turn.run(receive + begin).await;
            clock::sleep(self.draw(self.drive), Stage::Array).await;
            home.run(end + reply).await;
            home.count(executes);
        }
        home.count(receives);
        home.answer(clock::now() - arrival);
    }

    /// Returns the core for the movable stages of a command that core `at` begins to receive, and
    /// that takes `expected` of it.
    fn place(&self, at: usize, expected: Nanos) -> Option<usize> {
        let mut place = [None];
        self.cores[at].router().place(&mut place, |queues| {
            for (queue, core) in queues.iter_mut().zip(&self.cores) {
                *queue = core.queued();
            }
            queues[at] -= expected;
        });
        place[0]
    }

    /// Ends a window of the balancer again and again.
    pub(super) async fn balance(&self, mut balancer: Balancer, settings: Settings) {
        let mut before = self.done();
        loop {
            clock::sleep(settings.window, Stage::Core).await;
            let done = self.done();
            let loads = done.iter().zip(&before).map(|(now, before)| now.load - before.load);
            let loads: Vec<Load> = loads.collect();
            for (core, route) in self.cores.iter().zip(balancer.end_window(settings.window, &loads))
            {
                core.router().set(route);
            }
            before = done;
        }
    }

    /// Returns what each core did so far.
    pub(super) fn done(&self) -> [Done; CORES] {
        std::array::from_fn(|core| self.cores[core].done())
    }

    pub(super) fn draw(&self, mean: Nanos) -> Nanos {
        self.times.draw(mean, &mut self.rng.borrow_mut())
    }
}
