//! One run of client threads against a target.

use super::core::Done;
use super::costs::{Command, Costs};
use super::duration::Times;
use super::placement::ConnectionPlacement;
use super::target::Target;
use super::testbed::{CORES, Operation, SEED};
use crate::parallel;
use crate::progress::Unit as ProgressUnit;
use crate::reproduce::moke::nanos;
use crate::reproduce::run::Run;
use balance::{Balancer, Memory, Policy, Settings};
use base::{Nanos, Rng};
use clock::Stage;
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;

/// Time for queues and routes to settle.
pub(super) const WARM_UP: Nanos = Nanos::from_secs(1);

/// Time measured.
pub(super) const MEASURED: Nanos = Nanos::from_secs(1);

/// What a core takes to send a message to another one, or to take one: see the assumptions.
pub(super) const MESSAGE: Nanos = Nanos(150);

/// See the assumptions.
pub(super) const DRIVE: Nanos = Nanos::from_micros(10);

/// Where the key-value store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StorePlace {
    /// On the client, above a file system on blocks of the target.
    Client,
    /// In the target.
    Target,
}

/// What a trial runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) store: StorePlace,
    pub(super) operation: Operation,
    pub(super) threads: usize,
    pub(super) placement: ConnectionPlacement,
    pub(super) policy: Policy,
    pub(super) memory: Memory,
    pub(super) times: Times,
    pub(super) seed: u64,
}

/// What a trial measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) cores: [CoreFigures; CORES],
    /// Operations a second.
    pub(super) rate: f64,
    /// Mean time of an operation, in nanoseconds.
    pub(super) response: f64,
}

/// What a trial measured of a core.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoreFigures {
    /// The mean number of commands that the core had received and not answered.
    pub(super) depth: f64,
    /// The share of the time for which it was busy.
    pub(super) utilisation: f64,
    /// The mean time between receiving and answering a command, in nanoseconds.
    pub(super) latency: f64,
    /// The share of its commands that another core executed.
    pub(super) diverted: f64,
}

/// The clients: threads that do one operation after the other.
struct Clients {
    target: Rc<Target>,
    /// What the client does before it sends the commands of an operation.
    time: Nanos,
    commands: Vec<Command>,
    placement: ConnectionPlacement,
    /// Operations done, and the sum of their times.
    done: Cell<(u64, Nanos)>,
}

/// Runs trials, as many at a time as this machine has cores, and returns them in their order.
pub(super) fn run_all(setups: &[Setup], run: Run) -> Vec<Trial> {
    let mut bar = run.progress.bar("trials", ProgressUnit::Count);
    let total = setups.len() as u64;
    parallel::map(setups, parallel::cores(), |setup| setup.run(), |done| bar.set(done, total))
}

impl Setup {
    /// `threads` threads without balancing, on a client whose processors are connected as those of
    /// the paper.
    pub(super) fn new(store: StorePlace, operation: Operation, threads: usize) -> Self {
        Self {
            store,
            operation,
            threads,
            placement: ConnectionPlacement::OF_PAPER,
            policy: Policy::None,
            memory: Settings::default().memory,
            times: Times::Exponential,
            seed: SEED,
        }
    }

    fn run(self) -> Trial {
        Reactor::new(None).run(async {
            let costs = Costs::of_paper();
            let message = costs.scaled(MESSAGE);
            let rng = Rng::fork(self.seed, 0);
            let target = Rc::new(Target::new(message, DRIVE, self.times, rng));
            let clients = Rc::new(self.clients(target.clone(), &costs));
            for thread in 0..self.threads {
                let rng = Rng::fork(self.seed, 1 + thread as u64);
                clock::spawn(clients.clone().run_thread(thread, rng));
            }
            let settings = Settings { memory: self.memory, ..Settings::default() };
            let balancer = Balancer::new(self.policy, settings, CORES);
            clock::spawn({
                let target = target.clone();
                async move { target.balance(balancer, settings).await }
            });
            clock::sleep(WARM_UP, Stage::Core).await;
            let before = (target.done(), clients.done.get());
            clock::sleep(MEASURED, Stage::Core).await;
            Trial::of(before, (target.done(), clients.done.get()))
        })
    }

    fn clients(self, target: Rc<Target>, costs: &Costs) -> Clients {
        let (time, commands) = match (self.store, self.operation) {
            (StorePlace::Target, operation) => (1, vec![costs.with_key(operation)]),
            (StorePlace::Client, Operation::Get) => (3, costs.of_blocks(Operation::Get).to_vec()),
            (StorePlace::Client, Operation::Put) => (15, costs.of_blocks(Operation::Put).to_vec()),
        };
        let (time, placement) = (Nanos::from_micros(time), self.placement);
        Clients { target, time, commands, placement, done: Cell::default() }
    }
}

impl Clients {
    async fn run_thread(self: Rc<Self>, thread: usize, mut rng: Rng) {
        loop {
            let start = clock::now();
            clock::sleep(self.target.draw(self.time), Stage::Core).await;
            let core = self.placement.core(thread, &mut rng);
            let execute = |command: &Command| {
                let (target, command) = (self.target.clone(), *command);
                async move { target.execute(core, command).await }
            };
            match &self.commands[..] {
                [command] => execute(command).await,
                commands => drop(clock::join_all(commands.iter().map(execute).collect()).await),
            }
            let (count, time) = self.done.get();
            self.done.set((count + 1, time + (clock::now() - start)));
        }
    }
}

/// What target and clients did so far.
type Totals = ([Done; CORES], (u64, Nanos));

impl Trial {
    fn of((cores, operations): Totals, (cores_after, operations_after): Totals) -> Self {
        let count = number(operations_after.0 - operations.0);
        Self {
            cores: std::array::from_fn(|at| CoreFigures::of(cores[at], cores_after[at])),
            rate: count / MEASURED.as_secs_f64(),
            response: nanos(operations_after.1 - operations.1) / count,
        }
    }

    /// Returns the mean of a figure of the cores, and its standard deviation.
    pub(super) fn spread(&self, figure: impl Fn(&CoreFigures) -> f64) -> (f64, f64) {
        spread(&self.cores.each_ref().map(figure))
    }
}

impl CoreFigures {
    fn of(before: Done, after: Done) -> Self {
        let answered = number(after.load.commands - before.load.commands);
        let latency = nanos(after.latency - before.latency);
        Self {
            depth: latency / nanos(MEASURED),
            utilisation: nanos(after.load.busy - before.load.busy) / nanos(MEASURED),
            latency: latency / answered,
            diverted: number(after.load.diverted - before.load.diverted) / answered,
        }
    }
}

/// Returns the mean of `figures` and their standard deviation, that of a sample as in the slides:
/// 0.78 for the first row of the queue depths.
pub(super) fn spread(figures: &[f64; CORES]) -> (f64, f64) {
    let cores = number(CORES as u64);
    let mean = figures.iter().sum::<f64>() / cores;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    (mean, (squares / (cores - 1.0)).sqrt())
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds, below 2^53")]
pub(super) const fn number(count: u64) -> f64 {
    count as f64
}
