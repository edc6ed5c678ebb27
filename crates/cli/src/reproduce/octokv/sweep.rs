//! Loads drawn by a seed, which each balancer and a single queue serve in turn.

use super::core::Done;
use super::costs::{Command, Costs};
use super::duration::Times;
use super::target::Target;
use super::testbed::{CORES, Operation};
use super::trial::{DRIVE, MESSAGE, number};
use crate::reproduce::moke::nanos;
use balance::{Balancer, Policy, Settings};
use base::{Nanos, Rng};
use clock::Stage;
use reactor::Reactor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Time for queues and routes to settle.
pub(super) const WARM_UP: Nanos = Nanos::from_millis(600);

/// Time measured.
pub(super) const MEASURED: Nanos = Nanos::from_millis(150);

/// The largest number of connections.
const CONNECTIONS_MAX: u64 = 48;

/// The largest number of outstanding commands of a connection, on the average.
const DEPTH_MAX: u64 = 32;

/// A load: connections in round robin over the cores, each with a number of commands outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) operation: Operation,
    /// Bytes of a value.
    pub(super) bytes: u64,
    /// The commands outstanding of each connection.
    pub(super) depths: Vec<u64>,
}

/// What decides where commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduler {
    Balancer(Policy),
    /// The ideal: a single queue for all cores, and no messages.
    SingleQueue,
}

/// What a load got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Commands a second.
    pub(super) rate: f64,
    /// The 99th percentile of their latency, in nanoseconds.
    pub(super) p99: f64,
    /// The share of them that moved.
    pub(super) diverted: f64,
}

impl Load {
    /// Draws a load: 1 to 48 connections, 512 B to 64 KiB, 1 to 32 commands a connection. Of all
    /// commands outstanding, one connection has a share between its own and all: none in a third of
    /// the loads.
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let connections = 1 + rng.below(CONNECTIONS_MAX);
        let depth = 1 + rng.below(DEPTH_MAX);
        let bytes = 512 << rng.below(8);
        let operation = Operation::ALL[usize::from(rng.below(2) == 0)];
        let mut depths = vec![depth; usize::try_from(connections).expect("a few")];
        if rng.below(3) > 0 {
            let hot = rng.below(depth * connections + 1);
            for other in &mut depths[1..] {
                let left = *other - *other * hot / (depth * connections);
                *other = left;
            }
            depths[0] = depth * connections - depths[1..].iter().sum::<u64>();
        }
        Self { operation, bytes, depths }
    }

    /// Returns whether each core has the same commands outstanding.
    pub(super) fn is_balanced(&self) -> bool {
        (1..CORES).all(|core| self.on(core) == self.on(0))
    }

    /// Returns whether a core could receive and answer its share of `rate` commands a second, if
    /// others executed all of them. What no core can receive, no balancer can serve.
    pub(super) fn can_receive(&self, rate: f64) -> bool {
        let costs = Costs::of_paper();
        let command = costs.with_bytes(self.operation, self.bytes);
        let stays = command.receive + command.reply + costs.scaled(MESSAGE) + costs.scaled(MESSAGE);
        let total: u64 = self.depths.iter().sum();
        let most = (0..CORES).map(|core| self.on(core)).max().expect("there are cores");
        rate * nanos(stays) / 1e9 * number(most) / number(total) <= 1.0
    }

    /// Returns the commands outstanding on a core.
    fn on(&self, core: usize) -> u64 {
        self.depths.iter().skip(core).step_by(CORES).sum()
    }

    /// Serves the load.
    pub(super) fn serve(&self, scheduler: Scheduler, seed: u64) -> Served {
        Reactor::new(None).run(async {
            let costs = Costs::of_paper();
            let rng = Rng::fork(seed, 0);
            let target = Rc::new(match scheduler {
                Scheduler::Balancer(_) => {
                    Target::new(costs.scaled(MESSAGE), DRIVE, Times::Exponential, rng)
                }
                Scheduler::SingleQueue => Target::with_single_queue(DRIVE, Times::Exponential, rng),
            });
            let clients = Rc::new(Clients {
                target: target.clone(),
                command: costs.with_bytes(self.operation, self.bytes),
                is_measured: Cell::new(false),
                latencies: RefCell::default(),
            });
            for (connection, depth) in self.depths.iter().enumerate() {
                for _ in 0..*depth {
                    clock::spawn(clients.clone().send(connection % CORES));
                }
            }
            if let Scheduler::Balancer(policy) = scheduler {
                let settings = Settings::default();
                let balancer = Balancer::new(policy, settings, CORES);
                let target = target.clone();
                clock::spawn(async move { target.balance(balancer, settings).await });
            }
            clock::sleep(WARM_UP, Stage::Core).await;
            let before = target.done();
            clients.is_measured.set(true);
            clock::sleep(MEASURED, Stage::Core).await;
            clients.served(&before, &target.done())
        })
    }
}

/// The connections.
struct Clients {
    target: Rc<Target>,
    command: Command,
    is_measured: Cell<bool>,
    latencies: RefCell<Vec<Nanos>>,
}

impl Clients {
    /// Sends one command after the other to `core`.
    async fn send(self: Rc<Self>, core: usize) {
        loop {
            let start = clock::now();
            self.target.execute(core, self.command).await;
            if self.is_measured.get() {
                self.latencies.borrow_mut().push(clock::now() - start);
            }
        }
    }

    fn served(&self, before: &[Done; CORES], after: &[Done; CORES]) -> Served {
        let mut latencies = self.latencies.borrow_mut();
        let at = latencies.len() * 99 / 100;
        let (_, p99, _) = latencies.select_nth_unstable(at);
        let grown = |of: fn(&Done) -> u64| {
            let total = |done: &[Done; CORES]| done.iter().map(of).sum::<u64>();
            number(total(after) - total(before))
        };
        let answered = grown(|done| done.load.commands);
        Served {
            rate: answered / MEASURED.as_secs_f64(),
            p99: nanos(*p99),
            diverted: grown(|done| done.load.diverted) / answered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_loads_have_all_kinds_and_keep_their_total() {
        let mut rng = Rng::new(1);
        let loads: Vec<Load> = (0..500).map(|_| Load::draw(&mut rng)).collect();
        for load in &loads {
            assert!((1..=48).contains(&load.depths.len()) && (512..=65_536).contains(&load.bytes));
            let total: u64 = load.depths.iter().sum();
            assert_eq!(total % load.depths.len() as u64, 0, "{load:?}");
        }
        let is_hot = |load: &&Load| load.depths[0] > load.depths[load.depths.len() - 1];
        assert!((200..400).contains(&loads.iter().filter(is_hot).count()));
        assert!(loads.iter().any(Load::is_balanced));
    }

    /// Each core has 32 commands, so it is never idle, and the rate is that of the cores.
    #[test]
    fn a_balanced_load_is_served_at_the_rate_of_the_cores() {
        let (operation, bytes) = (Operation::Get, 16 << 10);
        let load = Load { operation, bytes, depths: vec![32; CORES] };
        let command = Costs::of_paper().with_bytes(operation, bytes);
        let all = command.receive + command.kv + command.submit + command.complete + command.reply;
        let limit = 6e9 / f64::from(u32::try_from(all.0).unwrap());
        for scheduler in [Scheduler::Balancer(Policy::None), Scheduler::SingleQueue] {
            let served = load.serve(scheduler, 1);
            assert!((served.rate / limit - 1.0).abs() < 0.01, "{served:?} of {limit}");
        }
    }
}
