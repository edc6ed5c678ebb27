//! A point, simulated.

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

/// Names the device and its loads.
const SEED: u64 = 1;

/// The fewest operations of a point, for each that is outstanding: what begins and ends with all
/// of them is little then.
const OPERATIONS_FOR_EACH: u64 = 32;

/// The fewest and the most operations of a point.
const OPERATIONS: (u64, u64) = (1 << 10, 1 << 20);

/// Keys of what does not store each once.
const KEYS_MAX: u64 = 1 << 15;

/// A figure is stable when twice as many operations change it by less.
const STABLE: f64 = 0.01;

/// Of the space for values, how much is used at most: cleaning would be another load.
const FILL: f64 = 0.5;

/// A point with as many operations as make it stable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub(super) point: &'a Point,
    pub(super) operations: u64,
}

/// The figures of `tasks` on `profile`, side by side on the machine's cores.
pub(super) fn all(profile: &Profile, tasks: &[Task<'_>]) -> Result<Vec<f64>, Failure> {
    each(tasks, |task| run(profile, task.point, task.operations))
}

/// Each of `points` with as many operations as make its figure stable on `profile`.
///
/// Operations are doubled until that changes the figure by less than a hundredth.
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

/// The most operations of a point that are simulated: pairs must not fill the device.
fn operations_max(profile: &Profile, point: &Point) -> Result<u64, Failure> {
    let (nsid, space) = place(profile, point).map_err(|failure| failure.of(&point.place))?;
    let size = profile.namespaces[nsid as usize - 1].size_bytes;
    let bytes = match space {
        // A header for each, twice.
        Space::Pairs => u64::from(point.load.value_bytes + point.load.key_bytes) + 64,
        _ => return Ok(OPERATIONS.1),
    };
    Ok(to_u64(FILL * float(size) / float(bytes)).min(OPERATIONS.1))
}

/// What `of` makes of each of `items`, in their order.
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

/// The namespace that `point` is of.
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

/// The figure of `point` on a fresh device of `profile`.
///
/// Stores that are answered from a buffer are faster until it is full. So that a rate is one that
/// lasts, the time in which what was answered gets to flash counts, but for the one program that
/// the last of any load takes.
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
        // How many points are done is what is shown.
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

/// The time of a page from the controller to the cells, at the slowest.
fn one_program(profile: &Profile) -> Nanos {
    let nand = &profile.nand;
    let program = nand.levels.program.iter().copied().max().unwrap_or(Nanos::ZERO);
    program + Nanos::for_bytes(nand.page_bytes.into(), nand.channel_bytes_per_second)
}

/// Whether blocks are overwritten that were never written.
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
