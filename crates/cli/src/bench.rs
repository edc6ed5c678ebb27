//! `kvasir bench`: a device under a load, measured.
//!
//! 1. [`space`] chooses the namespace. [`plan`] turns the command line into a plan, [`replay`]
//!    reads a trace; [`room`] tells whether the device and the machine can hold it.
//! 2. `crate::rig` puts the device together, fills or ages it and measures.
//! 3. [`state`] keeps the device in a file, at the end or in the middle.
//! 4. [`report`] says how that went, [`figure`] draws it. [`faults`] are those of the flash that
//!    happened, [`power`] is what a loss of power left.

mod faults;
mod figure;
mod fitted;
mod index_table;
mod plan;
mod power;
mod replay;
mod report;
mod room;
mod space;
mod state;

use crate::args::{BenchArgs, BenchCommand, Clock, MeasureArgs};
use crate::memory;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::Progress;
use crate::rig::{Cut, Measured, Rig, Setup};
use crate::target::Target;
use base::human_bytes;
use node::FaultPlan;
use node::profile::NamespaceKind;
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
    check_outputs(&args.measure, args.state.as_deref(), &target, &[])?;
    let operation = plan::operation(args)?;
    let nsid = space::choose(&target, operation)?;
    let namespace = target.profile.namespaces[nsid as usize - 1].clone();
    let place = plan::Place { nsid, space: space::of(&namespace.kind) };
    check_cut(args, &target, &namespace.kind)?;
    let mut plan = plan::of(args, operation, place, target.payload)?;
    plan = plan::within(args, plan, namespace.size_bytes / u64::from(plan.values.max().max(1)))?;
    state::check(args, &target, &plan)?;
    let aged = args.precondition.map(|level| level.of(namespace.size_bytes));
    let stored = plan::stored(&plan, aged);
    room::check(&stored, &target.profile, nsid, memory::total_bytes())?;
    let faults = faults::load(&args.measure)?;
    let setup = setup(&args.measure, &target, faults.as_ref());
    let (mut rig, stopped) = match state::restore(args, setup)? {
        Some((rig, stopped)) => (rig, Some(stopped)),
        None => (Rig::new(setup)?, None),
    };
    if let Some(zones) = rig.device().zones(nsid) {
        let shape = zones.shape();
        let (zone_blocks, capacity_blocks) = (shape.zone_blocks, shape.zone_capacity);
        plan.space = Space::Zones(Zoning { zone_blocks, capacity_blocks });
        plan = plan::within(args, plan, rig.blocks_of(&plan))?;
        plan.validate().map_err(Failure::refused)?;
    }
    check_values(&plan, &target, &rig)?;
    let (plan, start) = match stopped {
        Some(stopped) => state::start(args, plan, stopped)?,
        None => prepare(args, &mut rig, plan)?,
    };
    let (subject, before) = (Subject::Plan(&plan), start.before);
    if let Some(time) = args.cut_at {
        let (measured, cut) = rig.measure_until_cut(&plan, time)?;
        return finish(&args.measure, &target, &subject, before, &measured, Some(&cut));
    }
    match state::carry_out(args, &mut rig, &plan, start)? {
        state::End::Paused(output) => Ok(output),
        state::End::Measured(measured) => {
            finish(&args.measure, &target, &subject, before, &measured, None)
        }
    }
}

/// Ages or fills a new device for `plan`.
fn prepare(
    args: &BenchArgs,
    rig: &mut Rig<'_>,
    plan: Plan,
) -> Result<(Plan, state::Start), Failure> {
    let Some(level) = args.precondition else {
        let is_filled = plan.needs_fill();
        let before = if is_filled { Before::Filled(rig.fill(&plan)?) } else { Before::Blank };
        return Ok((plan, state::Start::new(before)));
    };
    let precondition = rig.precondition(&plan, level)?;
    let plan = Plan { keys: precondition.keys, is_filled: true, ..plan };
    plan.validate().map_err(Failure::refused)?;
    Ok((plan, state::Start::new(Before::Aged(precondition))))
}

/// Refuses to take the power of what cannot be checked afterwards.
fn check_cut(args: &BenchArgs, target: &Target, kind: &NamespaceKind) -> Result<(), Failure> {
    if args.cut_at.is_none() {
        return Ok(());
    }
    if target.clock == Clock::Real {
        return Err(Failure::refused(
            "--cut-at is for virtual time: use a target sim:PROFILE instead of emu:PROFILE",
        ));
    }
    if matches!(kind, NamespaceKind::Zoned(_)) {
        return Err(Failure::refused(
            "--cut-at is for pairs and blocks: what zones hold is not checked afterwards",
        ));
    }
    Ok(())
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
fn check_outputs(
    args: &MeasureArgs,
    state: Option<&Path>,
    target: &Target,
    inputs: &[&Path],
) -> Result<(), Failure> {
    let drawn = args.plot.iter().chain(&args.trace).map(PathBuf::as_path);
    let outputs: Vec<&Path> = drawn.chain(state).collect();
    let inputs = [&[Path::new(&target.profile.name)], inputs].concat();
    outputs::check(&outputs, &inputs)
}

fn setup<'a>(
    args: &'a MeasureArgs,
    target: &'a Target,
    faults: Option<&'a FaultPlan>,
) -> Setup<'a> {
    Setup {
        profile: &target.profile,
        seed: target.seed.unwrap_or(args.seed),
        shuffle: target.shuffle,
        faults,
        clock: target.clock,
        timeline: args.trace.as_deref(),
        progress: Progress::new(args.json),
    }
}

/// Draws and reports.
fn finish(
    args: &MeasureArgs,
    target: &Target,
    subject: &Subject<'_>,
    before: Before,
    measured: &Measured,
    cut: Option<&Cut>,
) -> Result<Output, Failure> {
    let report = BenchReport::new(args, target, subject, before, measured, cut);
    if let Some(path) = &args.plot {
        figure::draw(path, report.title(), report.caption(), &measured.outcome)?;
    }
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(errors))
}
