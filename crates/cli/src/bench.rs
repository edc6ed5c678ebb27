//! `kvasir bench`: a device under a load, measured.
//!
//! 1. [`plan`] turns the command line into a plan, [`replay`] reads a trace; [`room`] tells whether
//!    the device and the machine can hold it.
//! 2. `crate::rig` puts the device together, fills it and measures.
//! 3. [`report`] says how that went, [`figure`] draws it.

mod figure;
mod plan;
mod replay;
mod report;
mod room;

use crate::args::{BenchArgs, BenchCommand, MeasureArgs};
use crate::memory;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::progress::Progress;
use crate::rig::{Measured, Rig, Setup};
use crate::target::Target;
use base::human_bytes;
use report::{BenchReport, Subject};
use std::path::{Path, PathBuf};
use workload::Fill;

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
    let plan = plan::of(args, target.payload)?;
    room::check(&plan::stored(&plan), &target.profile, memory::total_bytes())?;
    let mut rig = rig(&args.measure, &target)?;
    let value_bytes_max = rig.device().store().value_bytes_max();
    if plan.values.max() > value_bytes_max {
        return Err(Failure::Refused(format!(
            "{} takes values of at most {}",
            target.profile.name,
            human_bytes(value_bytes_max.into())
        )));
    }
    let fill = plan.needs_fill().then(|| rig.fill(&plan)).transpose()?;
    let measured = rig.measure(&plan)?;
    finish(&args.measure, &target, &Subject::Plan(&plan), fill, &measured)
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
    fill: Option<Fill>,
    measured: &Measured,
) -> Result<Output, Failure> {
    let report = BenchReport::new(args, target, subject, fill, measured);
    if let Some(path) = &args.plot {
        figure::draw(path, report.title(), report.caption(), &measured.outcome)?;
    }
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(errors))
}
