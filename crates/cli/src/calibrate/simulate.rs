//! Simulates a point.

use super::points::{Figure, Point};
use crate::args::Clock;
use crate::number::to_u64;
use crate::output::Failure;
use crate::progress::Progress;
use crate::rig::{Rig, Setup};
use base::{Nanos, human_bytes};
use node::Profile;
use node::profile::NamespaceKind;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use workload::{
    Distribution, Kind, Load, Operation, Payload, Plan, Space, Tally, Until, ValueSizes,
};

/// Random seed of the device and its loads.
const SEED: u64 = 1;

/// Fewest operations of a point for each outstanding one, so that start and end of a run have
/// little weight.
const OPERATIONS_FOR_EACH: u64 = 32;

/// Fewest and most operations of a point.
const OPERATIONS: (u64, u64) = (1 << 10, 1 << 20);

/// Keys of a load that does not store each key once.
const KEYS_MAX: u64 = 1 << 15;

/// A figure is stable when twice as many operations change it by less than this share.
const STABLE: f64 = 0.01;

/// Largest used share of the space for values: above it the cleaner would change the load.
const FILL: f64 = 0.5;

/// A point with enough operations for a stable figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub(super) point: &'a Point,
    pub(super) operations: u64,
}

/// Returns the figures of `tasks` on `profile`, in parallel on the machine's cores.
pub(super) fn all(profile: &Profile, tasks: &[Task<'_>]) -> Result<Vec<f64>, Failure> {
    each(tasks, |task| run(profile, task.point, task.operations))
}

/// Returns each of `points` with enough operations for a stable figure on `profile`.
///
/// Doubles the operations until that changes the figure by less than a hundredth.
pub(super) fn tasks<'a>(
    profile: &Profile,
    points: &[&'a Point],
) -> Result<(Vec<Task<'a>>, u64), Failure> {
    let chosen = each(points, |point| {
        let least = OPERATIONS.0.max(OPERATIONS_FOR_EACH * u64::from(point.load.queue_depth));
        let most = operations_max(profile, point)?.max(least);
        let (mut operations, mut count) = (least, 1);
        let mut before = run(profile, point, operations)?;
        while operations * 2 <= most {
            operations *= 2;
            count += 1;
            let now = run(profile, point, operations)?;
            if (now / before - 1.0).abs() < STABLE {
                break;
            }
            before = now;
        }
        Ok((Task { point, operations }, count))
    })?;
    let count = chosen.iter().map(|(_, count)| count).sum();
    Ok((chosen.into_iter().map(|(task, _)| task).collect(), count))
}

/// Returns the most operations to simulate for a point: pairs must not fill the device.
fn operations_max(profile: &Profile, point: &Point) -> Result<u64, Failure> {
    let (nsid, space) = place(profile, point).map_err(|failure| failure.of(&point.place))?;
    let size = profile.namespaces[nsid as usize - 1].size_bytes;
    let bytes = match space {
        // Two headers for each pair.
        Space::Pairs => u64::from(point.load.value_bytes + point.load.key_bytes) + 64,
        _ => return Ok(OPERATIONS.1),
    };
    Ok(to_u64(FILL * float(size) / float(bytes)).min(OPERATIONS.1))
}

/// Maps `items` by `of`, in their order.
fn each<T: Sync, R: Send>(
    items: &[T],
    of: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            let result = of(item);
            results.lock().expect("no worker panics with it").push((index, result));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores.min(items.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().expect("no worker panicked with it");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Returns the namespace of `point`.
fn place(profile: &Profile, point: &Point) -> Result<(u32, Space), Failure> {
    let workload = point.load.workload;
    let takes = |kind: &NamespaceKind| match kind {
        NamespaceKind::Kv => workload.operation.is_for_pairs(),
        NamespaceKind::Block(_) => workload.operation.is_for_blocks(),
        NamespaceKind::Zoned(_) => false,
    };
    let found = (1..).zip(&profile.namespaces).find(|(_, namespace)| takes(&namespace.kind));
    let (nsid, namespace) = found.ok_or_else(|| {
        Failure::Refused(format!("{} has no namespace for {}", profile.name, workload.name))
    })?;
    Ok((nsid, if namespace.kind.is_kv() { Space::Pairs } else { Space::Blocks }))
}

fn plan(profile: &Profile, point: &Point, operations: u64) -> Result<Plan, Failure> {
    let load = point.load;
    let (nsid, space) = place(profile, point)?;
    let room = profile.namespaces[nsid as usize - 1].size_bytes / 2;
    let keys = match load.workload.operation {
        Operation::Store | Operation::Delete => operations,
        _ => operations.min(KEYS_MAX).min(room / u64::from(load.value_bytes.max(1))),
    };
    let plan = Plan {
        operation: load.workload.operation,
        until: Until::Operations(operations),
        load: Load::QueueDepth(load.queue_depth),
        nsid,
        space,
        key_bytes: load.key_bytes as usize,
        values: ValueSizes::Fixed(load.value_bytes),
        keys,
        is_filled: false,
        seed: SEED,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    };
    plan.validate().map_err(Failure::refused)?;
    Ok(plan)
}

/// Returns the figure of `point` on a fresh device of `profile`.
///
/// Stores that a buffer answers are faster until it is full. For a sustained rate, the time counts
/// until all answered data is on flash, except for the one program with which every load ends.
fn run(profile: &Profile, point: &Point, operations: u64) -> Result<f64, Failure> {
    simulate(profile, point, operations).map_err(|failure| failure.of(&point.place))
}

fn simulate(profile: &Profile, point: &Point, operations: u64) -> Result<f64, Failure> {
    let plan = plan(profile, point, operations)?;
    let mut rig = Rig::new(Setup {
        profile,
        seed: SEED,
        shuffle: false,
        faults: None,
        clock: Clock::Virtual,
        timeline: None,
        // The progress shows the number of finished points.
        progress: Progress::new(true),
    })?;
    check_values(&rig, point)?;
    if plan.needs_fill() || is_overwritten(&plan) {
        rig.fill(&plan)?;
    }
    rig.flush()?;
    let started = rig.now();
    let measured = rig.measure(&plan)?;
    let (outcome, whole) = (measured.outcome, rig.now() - started);
    if outcome.errors() > 0 {
        let workload = point.load.workload.name;
        return Err(Failure::Broken(format!("{workload} operations fail in simulation")));
    }
    let elapsed = outcome.elapsed();
    if elapsed == Nanos::ZERO {
        let name = &profile.name;
        return Err(Failure::Refused(format!("no time passes on {name}, so it has no figures")));
    }
    Ok(match point.figure {
        Figure::OpsPerSecond => {
            let late = whole.saturating_sub(elapsed + one_program(profile));
            float(outcome.operations()) / (elapsed + late).as_secs_f64()
        }
        Figure::LatencyNs => {
            let mut tallies = Kind::ALL.into_iter().filter_map(|kind| outcome.tally(kind));
            tallies.next().map_or(f64::NAN, Tally::mean_ns)
        }
    })
}

/// Returns the longest time of a page from the controller to the cells.
fn one_program(profile: &Profile) -> Nanos {
    let nand = &profile.nand;
    let program = nand.levels.program.iter().copied().max().unwrap_or(Nanos::ZERO);
    program + Nanos::for_bytes(nand.page_bytes.into(), nand.channel_bytes_per_second)
}

/// True if the load overwrites blocks that were never written.
fn is_overwritten(plan: &Plan) -> bool {
    plan.operation == Operation::RandWrite
}

fn check_values(rig: &Rig<'_>, point: &Point) -> Result<(), Failure> {
    let longest = rig.device().kv().map_or(u32::MAX, |store| store.value_bytes_max());
    if point.load.value_bytes <= longest {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "the device takes values of at most {}",
        human_bytes(longest.into())
    )))
}

#[expect(clippy::cast_precision_loss, reason = "counts and sizes far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
