//! `kvasir device calibrate`: fits chosen numbers of a profile to measured points.
//!
//! 1. [`points`] reads the measured points, [`knobs`] the numbers to fit.
//! 2. [`simulate`] runs each point on the profile, with enough operations for a stable result.
//! 3. [`fit`] moves the knobs until the errors of the points are smallest ([`search`]). It fits
//!    again for each size of values without the points of that size, which gives the error for an
//!    unmeasured size.
//! 4. [`report`] prints the error of each point, [`figure`] draws it, [`written`] writes the
//!    profile.

mod figure;
mod fit;
mod knobs;
pub(crate) mod points;
mod report;
mod search;
mod simulate;
mod written;

use crate::args::CalibrateArgs;
use crate::output::{Failure, Output};
use crate::outputs;
use crate::path::shown;
use crate::progress::{Bar, Progress, Unit};
use fit::{Fitting, LeftOut};
use knobs::FitKnob;
use node::Profile;
use node::profile::{Draft, Fitted, FittedLoad};
use points::Point;
use report::{KnobReport, PointReport, Report, Role};
use simulate::Task;
use std::path::{Path, PathBuf};

/// Most rounds in which the number of operations of each point is chosen.
const CHOICES_MAX: usize = 3;

/// Runs the calibration that `args` describe.
pub(crate) fn run(args: &CalibrateArgs) -> Result<Output, Failure> {
    let text = Profile::text(&args.device).map_err(Failure::refused)?;
    let draft = Draft::new(&args.device, &text).map_err(Failure::refused)?;
    let written: Vec<&Path> = args.output.iter().chain(&args.plot).map(PathBuf::as_path).collect();
    outputs::check(&written, &[&args.points, Path::new(&args.device)])?;
    let points = points::read(&args.points)?;
    let knobs = args.knob.iter().map(|text| FitKnob::parse(text, &draft));
    let knobs: Vec<FitKnob> = knobs.collect::<Result<_, _>>()?;
    check_knobs(&shown(&args.points), &knobs, &points)?;
    let fitted = fitted(args, &draft, &knobs, &points)?;
    let roles = roles(args, &points, !knobs.is_empty(), fitted.as_ref())?;
    let mut bar = Progress::new(args.json).bar("simulating", Unit::Count);
    let (report, values) = calibrate(args, &draft, &knobs, (&points, &roles), fitted, &mut bar)?;
    drop(bar);
    let unwritten = args
        .output
        .as_ref()
        .zip(report.fitted.as_ref())
        .and_then(|(path, fitted)| written::write(path, &draft, &knobs, &values, fitted));
    let undrawn = args.plot.as_ref().and_then(|path| figure::draw(path, &report));
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(unwritten).with_errors(undrawn))
}

fn check_knobs(file: &str, knobs: &[FitKnob], points: &[Point]) -> Result<(), Failure> {
    for (index, knob) in knobs.iter().enumerate() {
        if knobs[..index].iter().any(|other| other.key == knob.key) {
            return Err(Failure::Refused(format!("the knob {} is given twice", knob.key)));
        }
    }
    let count = points.iter().filter(|point| point.is_fit).count();
    if count < knobs.len() {
        let few = crate::number::counted(count as u64, "point");
        let knobs = crate::number::counted(knobs.len() as u64, "knob");
        return Err(Failure::Refused(format!("{file}: {knobs} cannot be fitted to {few}")));
    }
    Ok(())
}

/// Returns the points that the numbers are fitted to; without knobs the earlier fit of the profile.
fn fitted(
    args: &CalibrateArgs,
    draft: &Draft,
    knobs: &[FitKnob],
    points: &[Point],
) -> Result<Option<Fitted>, Failure> {
    if knobs.is_empty() {
        return Ok(draft.profile().map_err(Failure::refused)?.fitted);
    }
    let of_fit: Vec<&Point> = points.iter().filter(|point| point.is_fit).collect();
    let span = |of: fn(&Point) -> u32| {
        let values = of_fit.iter().map(|point| of(point));
        [values.clone().min().unwrap_or(0), values.max().unwrap_or(0)]
    };
    let mut workloads: Vec<String> = Vec::new();
    for name in of_fit.iter().map(|point| point.load.workload.name) {
        if !workloads.iter().any(|known| known == name) {
            workloads.push(name.to_owned());
        }
    }
    Ok(Some(Fitted {
        file: args.points.file_name().map(|name| shown(Path::new(name))).unwrap_or_default(),
        workloads,
        value_bytes: span(|point| point.load.value_bytes),
        key_bytes: span(|point| point.load.key_bytes),
        queue_depth: span(|point| point.load.queue_depth),
    }))
}

/// Returns the use of each point. Refuses a point outside the fitted range, unless `args` allow it.
fn roles(
    args: &CalibrateArgs,
    points: &[Point],
    is_fitting: bool,
    fitted: Option<&Fitted>,
) -> Result<Vec<Role>, Failure> {
    let role = |point: &Point| {
        if is_fitting && point.is_fit {
            return Ok(Role::Fitted);
        }
        let load = FittedLoad {
            workloads: vec![point.load.workload.name],
            value_bytes: [point.load.value_bytes; 2],
            key_bytes: point.load.key_bytes,
            queue_depth: Some(point.load.queue_depth),
        };
        match fitted.and_then(|fitted| fitted.outside(&load)) {
            None => Ok(Role::Checked),
            Some(_) if args.extrapolate => Ok(Role::Extrapolated),
            Some(outside) => Err(Failure::Refused(format!(
                "{}: the point lies beyond what is fitted: {outside}; --extrapolate shows it all \
                 the same",
                point.place
            ))),
        }
    };
    points.iter().map(role).collect()
}

/// Returns the report, and the values of the knobs.
fn calibrate(
    args: &CalibrateArgs,
    draft: &Draft,
    knobs: &[FitKnob],
    (points, roles): (&[Point], &[Role]),
    fitted: Option<Fitted>,
    bar: &mut Bar,
) -> Result<(Report, Vec<f64>), Failure> {
    let start: Vec<f64> = knobs.iter().map(|knob| knob.start).collect();
    let of = |is_seen: bool| {
        let all = points.iter().zip(roles);
        let chosen = all.filter(move |(_, role)| (**role == Role::Fitted) == is_seen);
        chosen.map(|(point, _)| Task { point, operations: 0 }).collect::<Vec<_>>()
    };
    let mut fitting = Fitting { draft, knobs, tasks: of(true), bar, simulations: 0 };
    let values = fit(&mut fitting, &start)?;
    let seen = fitting.figures_here(&values)?;
    let moves = fitting.moves(&values, &seen)?;
    let has_checks = roles.iter().any(|role| *role != Role::Fitted);
    let again = knobs.iter().zip(&values).map(|(knob, &value)| {
        // A count is what the device is made of; how much of what there is, is fitted again.
        if knob.is_whole { value } else { knob.start }
    });
    let again: Vec<f64> = again.collect();
    let left_out = if has_checks { vec![None; seen.len()] } else { fitting.left_out(&again)? };
    let mut operations: u64 = fitting.tasks.iter().map(|task| task.operations).sum();
    let mut seen = seen.into_iter().zip(left_out);
    fitting.tasks = of(false);
    fitting.choose(&values)?;
    operations += fitting.tasks.iter().map(|task| task.operations).sum::<u64>();
    let mut unseen = fitting.figures_here(&values)?.into_iter().map(|figure| (figure, None));
    let all = points.iter().zip(roles).map(|(point, role)| {
        let next = if *role == Role::Fitted { seen.next() } else { unseen.next() };
        let (figure, left_out): (f64, Option<LeftOut>) = next.expect("each point was simulated");
        PointReport::new(point, figure, *role, left_out)
    });
    let all: Vec<PointReport> = all.collect();
    let all_knobs = knobs.iter().zip(&values).zip(moves);
    let report = Report {
        device: args.device.clone(),
        file: shown(&args.points),
        error: report::error(&all).expect("there are points"),
        error_out_of_sample: report::error_out_of_sample(&all),
        points: all,
        knobs: all_knobs
            .map(|((knob, value), moves)| KnobReport::new(knob, *value, moves))
            .collect(),
        fitted,
        simulations: fitting.simulations,
        operations,
    };
    Ok((report, values))
}

/// Returns the values of the knobs with the smallest errors, each point with enough operations.
fn fit(fitting: &mut Fitting<'_>, start: &[f64]) -> Result<Vec<f64>, Failure> {
    fitting.choose(start)?;
    let mut values = start.to_vec();
    if start.is_empty() {
        return Ok(values);
    }
    for _ in 0..CHOICES_MAX {
        let tasks = fitting.tasks.clone();
        values = fitting.fit(&values, &tasks)?;
        if !fitting.choose(&values)? {
            break;
        }
    }
    Ok(values)
}
