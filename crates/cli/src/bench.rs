//! `kvasir bench`: measures a device under a load.
//!
//! 1. [`space`] chooses the namespace. [`plan`] turns the command line into a plan, [`replay`]
//!    reads a trace; [`room`] tells whether the device and the machine can hold it.
//! 2. `crate::rig` builds the device, fills or ages it and measures.
//! 3. [`state`] saves the device in a file, at the end of a run or at a pause.
//! 4. [`remote`] measures a namespace over NVMe/TCP, [`redis`] a database of a Redis server,
//!    [`file`] a drive on a disk, [`mem`] one in memory. Before they write to what can have data
//!    of others, [`foreign`] checks that it has none.
//! 5. [`report`] prints the result, [`figure`] draws it. [`faults`] lists the flash faults that
//!    happened, [`power`] what a power loss left.

mod faults;
mod figure;
mod file;
mod fitted;
mod foreign;
mod index_table;
mod long_polls;
mod mem;
mod outside;
mod plan;
mod power;
mod redis;
mod remote;
mod replay;
mod report;
mod room;
mod space;
mod spread;
mod state;

use crate::args::{BenchArgs, BenchCommand, Clock, MeasureArgs};
use crate::memory;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::Progress;
use crate::rig::{Cut, Measured, Rig, Setup};
use crate::target::Target;
use base::human_bytes;
use client::Uri;
use node::FaultPlan;
use node::profile::NamespaceKind;
use report::{Before, BenchReport, Subject};
use std::path::{Path, PathBuf};
use workload::{Operation, Plan, Space, Zoning};

/// Measures what `args` ask for.
pub(crate) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    match &args.command {
        Some(BenchCommand::Replay(args)) => replay::run(args),
        None if Uri::is_meant(&args.measure.target) => remote::run(args),
        None if resp_client::Uri::is_meant(&args.measure.target) => redis::run(args),
        None if mem::is_meant(&args.measure.target) => mem::run(args),
        None if file::is_meant(&args.measure.target) => file::run(args),
        None => run_plan(args),
    }
}

fn run_plan(args: &BenchArgs) -> Result<Output, Failure> {
    let target = Target::parse(&args.measure.target)?;
    if args.overwrite {
        return Err(Failure::refused(
            "--overwrite is for a target that can hold data of others, nvme-tcp://, resp:// or \
             file:, and not for a device in this program",
        ));
    }
    check_outputs(&args.measure, args.state.as_deref(), &target, &[])?;
    let operation = plan::operation(args)?;
    let nsid = space::choose(&target, operation)?;
    let kind = &target.profile.namespaces[nsid as usize - 1].kind;
    check_cut(args, &target, kind)?;
    state::check(args, &target)?;
    let faults = faults::load(&args.measure, &target)?;
    let setup = setup(&args.measure, &target, faults.as_ref());
    let mut kept = state::Kept::open(args, setup)?;
    let place = plan::Place { nsid, space: space::of(kind), keys: kept.keys() };
    let plan = plan_in(args, &target, operation, place)?;
    let restored = kept.restore(args, setup)?;
    let is_new = restored.is_none();
    let (mut rig, stopped) = match restored {
        Some((rig, stopped)) => (rig, Some(stopped)),
        None => {
            state::check_savable(args, setup)?;
            check_room(args, &target, &plan)?;
            (Rig::new(setup)?, None)
        }
    };
    let plan = in_zones(args, plan, place, &rig)?;
    check_values(&plan, &target, &rig)?;
    let (plan, start) = match stopped {
        Some(stopped) => state::start(args, plan, stopped)?,
        None => prepare(args, &mut rig, plan)?,
    };
    if !is_new {
        check_room(args, &target, &plan)?;
    }
    let (subject, before) = (Subject::Plan(&plan), start.before);
    if let Some(time) = args.cut_at {
        let (measured, cut) = rig.measure_until_cut(&plan, time)?;
        return Ok(finish(&args.measure, &target, &subject, before, &measured, Some(&cut)));
    }
    match state::carry_out(args, &mut rig, &plan, start, kept)? {
        state::End::Paused(output) => Ok(output),
        state::End::Measured { measured, unsaved } => {
            let output = finish(&args.measure, &target, &subject, before, &measured, None);
            Ok(output.with_errors(unsaved))
        }
    }
}

/// Returns the plan for `place`, as far as it is known without the device.
fn plan_in(
    args: &BenchArgs,
    target: &Target,
    operation: Operation,
    place: plan::Place,
) -> Result<Plan, Failure> {
    let plan = plan::of(args, operation, place, target.payload)?;
    let size_bytes = target.profile.namespaces[place.nsid as usize - 1].size_bytes;
    let plan = plan::within(args, plan, place, size_bytes / u64::from(plan.values.max().max(1)))?;
    state::check_pause(args, &plan)?;
    Ok(plan)
}

/// Completes `plan` with the zones of the device, if it is for zones.
fn in_zones(
    args: &BenchArgs,
    mut plan: Plan,
    place: plan::Place,
    rig: &Rig<'_>,
) -> Result<Plan, Failure> {
    let Some(zones) = rig.device().zones(plan.nsid) else { return Ok(plan) };
    let shape = zones.shape();
    let (zone_blocks, capacity_blocks) = (shape.zone_blocks, shape.zone_capacity);
    plan.space = Space::Zones(Zoning { zone_blocks, capacity_blocks });
    plan = plan::within(args, plan, place, rig.blocks_of(&plan))?;
    plan.validate().map_err(Failure::refused)?;
    Ok(plan)
}

/// Refuses a plan for which the device, its index or the machine has no room.
fn check_room(args: &BenchArgs, target: &Target, plan: &Plan) -> Result<(), Failure> {
    let size_bytes = target.profile.namespaces[plan.nsid as usize - 1].size_bytes;
    let aged = args.precondition.map(|level| level.of(size_bytes));
    let stored = plan::stored(plan, aged);
    if aged.is_none() {
        room::check_index(plan, &target.profile)?;
    }
    room::check(&stored, &target.profile, plan.nsid, memory::total_bytes())
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

/// Refuses a power loss after a load whose data cannot be checked afterwards.
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

/// Refuses values that are longer than the store accepts.
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

/// Refuses output files that cannot be written, or that are also `inputs`, the profile or the plan
/// of faults.
fn check_outputs(
    args: &MeasureArgs,
    state: Option<&Path>,
    target: &Target,
    inputs: &[&Path],
) -> Result<(), Failure> {
    let drawn = args.plot.iter().chain(&args.trace).map(PathBuf::as_path);
    let outputs: Vec<&Path> = drawn.chain(state).collect();
    let read = args.faults.iter().map(PathBuf::as_path);
    let read = read.chain([Path::new(&target.profile.name)]);
    let inputs: Vec<&Path> = read.chain(inputs.iter().copied()).collect();
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

/// Draws the figure and returns the report.
fn finish(
    args: &MeasureArgs,
    target: &Target,
    subject: &Subject<'_>,
    before: Before,
    measured: &Measured,
    cut: Option<&Cut>,
) -> Output {
    let report = BenchReport::new(args, target, subject, before, measured, cut);
    let undrawn = args
        .plot
        .as_ref()
        .and_then(|path| figure::draw(path, report.title(), report.caption(), &measured.outcome));
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    output.with_errors(errors).with_errors(measured.untraced.clone()).with_errors(undrawn)
}
