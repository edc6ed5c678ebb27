//! `kvasir bench`: a device under a load, measured.
//!
//! 1. [`space`] chooses the namespace. [`plan`] turns the command line into a plan, [`replay`]
//!    reads a trace; [`room`] tells whether the device and the machine can hold it.
//! 2. `crate::rig` puts the device together, fills or ages it and measures.
//! 3. [`report`] says how that went, [`figure`] draws it.

mod figure;
mod plan;
mod replay;
mod report;
mod room;
mod space;

use crate::args::{BenchArgs, BenchCommand, MeasureArgs};
use crate::memory;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::Progress;
use crate::rig::{Measured, Rig, Setup};
use crate::target::Target;
use base::human_bytes;
use report::{Before, BenchReport, Subject};
use std::path::{Path, PathBuf};
use workload::{Plan, Space, Zoning};

/// Measures what `args` ask for.
pub(crate) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    match &args.command {
        Some(BenchCommand::Replay(args)) => replay::run(args),
        None => run_plan(args),
    }
}

fn run_plan(args: &BenchArgs) -> Result<Output, Failure> {
    let target = Target::parse(&args.measure.target)?;
    check_outputs(&args.measure, &target, &[])?;
    let operation = plan::operation(args)?;
    let nsid = space::choose(&target, operation)?;
    let namespace = target.profile.namespaces[nsid as usize - 1].clone();
    let place = plan::Place { nsid, space: space::of(&namespace.kind) };
    let mut plan = plan::of(args, operation, place, target.payload)?;
    plan = plan::within(args, plan, namespace.size_bytes / u64::from(plan.values.max().max(1)))?;
    let aged = args.precondition.map(|level| level.of(namespace.size_bytes));
    let stored = plan::stored(&plan, aged);
    room::check(&stored, &target.profile, nsid, memory::total_bytes())?;
    let mut rig = rig(&args.measure, &target)?;
    if let Some(zones) = rig.device().zones(nsid) {
        let shape = zones.shape();
        let (zone_blocks, capacity_blocks) = (shape.zone_blocks, shape.zone_capacity);
        plan.space = Space::Zones(Zoning { zone_blocks, capacity_blocks });
        plan = plan::within(args, plan, rig.blocks_of(&plan))?;
        plan.validate().map_err(Failure::refused)?;
    }
    check_values(&plan, &target, &rig)?;
    let before = match args.precondition {
        Some(level) => {
            let precondition = rig.precondition(&plan, level)?;
            plan = Plan { keys: precondition.keys, is_filled: true, ..plan };
            plan.validate().map_err(Failure::refused)?;
            Before::Aged(precondition)
        }
        None if plan.needs_fill() => Before::Filled(rig.fill(&plan)?),
        None => Before::Blank,
    };
    let measured = rig.measure(&plan)?;
    finish(&args.measure, &target, &Subject::Plan(&plan), before, &measured)
}

/// Refuses values that are longer than the store takes.
fn check_values(plan: &Plan, target: &Target, rig: &Rig<'_>) -> Result<(), Failure> {
    match rig.device().kv() {
        Some(store)
            if plan.space == Space::Pairs && plan.values.max() > store.value_bytes_max() =>
        {
            Err(Failure::Refused(format!(
                "{} takes values of at most {}",
                target.profile.name,
                human_bytes(store.value_bytes_max().into())
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses output files that cannot be, beside `inputs` and the profile.
fn check_outputs(args: &MeasureArgs, target: &Target, inputs: &[&Path]) -> Result<(), Failure> {
    let outputs: Vec<&Path> = args.plot.iter().chain(&args.trace).map(PathBuf::as_path).collect();
    let inputs = [&[Path::new(&target.profile.name)], inputs].concat();
    outputs::check(&outputs, &inputs)
}

fn rig<'a>(args: &'a MeasureArgs, target: &'a Target) -> Result<Rig<'a>, Failure> {
    Rig::new(Setup {
        profile: &target.profile,
        seed: target.seed.unwrap_or(args.seed),
        shuffle: target.shuffle,
        clock: target.clock,
        timeline: args.trace.as_deref(),
        progress: Progress::new(args.json),
    })
}

/// Draws and reports.
fn finish(
    args: &MeasureArgs,
    target: &Target,
    subject: &Subject<'_>,
    before: Before,
    measured: &Measured,
) -> Result<Output, Failure> {
    let report = BenchReport::new(args, target, subject, before, measured);
    if let Some(path) = &args.plot {
        figure::draw(path, report.title(), report.caption(), &measured.outcome)?;
    }
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(errors))
}
