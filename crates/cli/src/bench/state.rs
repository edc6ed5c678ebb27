//! Saves a device in a file between runs, or at a pause of one run.

use super::report::Before;
use crate::args::{BenchArgs, Clock};
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::rig::{self, Empty, Measured, PausedRun, Rig, Setup};
use crate::target::Target;
use node::state::{Problem, StateFile};
use node::{Figures, SavedDevice};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Display;
use std::path::Path;
use workload::{Contents, Paused, Plan, Space, Until};

/// What a file keeps beside the device.
#[derive(Debug, Serialize, Deserialize)]
struct Load {
    empty: Empty,
    stopped: Stopped,
}

/// Where a run stopped.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Stopped {
    Paused(Box<PausedLoad>),
    /// At its end, with these contents.
    Finished(Vec<u8>),
}

/// A run that paused.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PausedLoad {
    run: Vec<u8>,
    after: u64,
    /// Whether the keys of its plan existed before.
    is_filled: bool,
    before: Before,
    figures: Figures,
    wall_seconds: f64,
}

/// What a run starts with.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) before: Before,
    /// Contents that an earlier run left on the device.
    contents: Option<Contents>,
    /// The paused run, if this run continues one.
    paused: Option<PausedRun>,
}

impl Start {
    /// For a device that was new `before`.
    pub(super) const fn new(before: Before) -> Self {
        Self { before, contents: None, paused: None }
    }
}

/// The result of a run.
#[derive(Debug)]
pub(super) enum End {
    Measured {
        measured: Box<Measured>,
        /// Why it could not be saved, if saving failed.
        unsaved: Option<String>,
    },
    /// The run paused, and its file holds it.
    Paused(Output),
}

/// The state file, if `--state` names one, and its contents.
#[derive(Debug, Default)]
pub(super) struct Kept {
    file: Option<StateFile>,
    saved: Option<(SavedDevice, Load)>,
}

impl Kept {
    /// Returns the state file that `args` name.
    pub(super) fn open(args: &BenchArgs, setup: Setup<'_>) -> Result<Self, Failure> {
        let Some(path) = args.state.as_deref() else { return Ok(Self::default()) };
        let file = rig::open(path)?;
        let Some(saved) = rig::load(path, &file, setup)? else {
            return Ok(Self { file: Some(file), saved: None });
        };
        let load = postcard::from_bytes(saved.load());
        let load = load.map_err(|_| refused(path, &"was not saved by kvasir bench"))?;
        Ok(Self { file: Some(file), saved: Some((saved, load)) })
    }

    /// Returns the number of keys or blocks that an earlier run left, if one ended here.
    pub(super) fn keys(&self) -> Option<u64> {
        match &self.saved.as_ref()?.1.stopped {
            Stopped::Finished(contents) => Contents::restore(contents)?.keys(),
            Stopped::Paused(_) => None,
        }
    }

    /// Returns the device, if the file has it, and what is known of it.
    pub(super) fn restore<'a>(
        &mut self,
        args: &BenchArgs,
        setup: Setup<'a>,
    ) -> Result<Option<(Rig<'a>, Stopped)>, Failure> {
        let (Some(path), Some((saved, load))) = (args.state.as_deref(), self.saved.take()) else {
            return Ok(None);
        };
        let Load { empty, stopped } = load;
        if args.precondition.is_some() && matches!(stopped, Stopped::Finished(_)) {
            return Err(is_for_new(path, "--precondition"));
        }
        check_faults(path, &saved, setup)?;
        Ok(Some((Rig::restored(setup, saved, empty)?, stopped)))
    }
}

/// Refuses a new device that could not be saved at the end.
pub(super) fn check_savable(args: &BenchArgs, setup: Setup<'_>) -> Result<(), Failure> {
    args.state.as_deref().map_or(Ok(()), |path| rig::check_savable(path, setup))
}

/// Refuses a plan of faults other than the one that `saved` began with.
fn check_faults(path: &Path, saved: &SavedDevice, setup: Setup<'_>) -> Result<(), Failure> {
    let began = saved.fault_plan();
    match setup.faults {
        Some(wanted) if *wanted != began && began.rules.is_empty() => {
            Err(is_for_new(path, "--faults"))
        }
        Some(wanted) if *wanted != began => Err(refused(
            path,
            &"has a device with another plan of faults, which it keeps: leave --faults out",
        )),
        _ => Ok(()),
    }
}

fn is_for_new(path: &Path, option: &str) -> Failure {
    refused(path, &format!("has a device that was used before: {option} is for a new one"))
}

/// Refuses a load that cannot be saved, restored or paused.
pub(super) fn check(args: &BenchArgs, target: &Target) -> Result<(), Failure> {
    let is_asked = args.state.is_some() || args.pause_after.is_some();
    if is_asked && target.clock == Clock::Real {
        return Err(Failure::refused(
            "--state and --pause-after are for virtual time: use a target sim:PROFILE instead of \
             emu:PROFILE",
        ));
    }
    Ok(())
}

/// Refuses a pause at or after the end of `plan`.
pub(super) fn check_pause(args: &BenchArgs, plan: &Plan) -> Result<(), Failure> {
    match (args.pause_after, plan.until) {
        (Some(after), Until::Operations(operations)) if after >= operations => {
            Err(Failure::Refused(format!(
                "the run ends after {operations} operations, so --pause-after {after} is too late"
            )))
        }
        _ => Ok(()),
    }
}

/// Starts `plan`, or continues the run that `stopped` describes.
pub(super) fn start(
    args: &BenchArgs,
    plan: Plan,
    stopped: Stopped,
) -> Result<(Plan, Start), Failure> {
    let path = args.state.as_deref().expect("a run stopped in a file");
    let broken = || refused(path, &"was not saved by kvasir bench");
    match stopped {
        Stopped::Finished(contents) => {
            let plan = Plan { is_filled: true, ..plan };
            let contents = Contents::restore(&contents).ok_or_else(broken)?;
            contents.check(&plan).map_err(|differs| refused(path, &differs))?;
            if !contents.suffice(&plan) {
                let items = if plan.space == Space::Pairs { "keys" } else { "blocks" };
                return Err(refused(
                    path,
                    &format!(
                        "does not tell what all of its {items} hold, because the runs on it \
                         deleted, added or overwrote {items} that they did not read; this workload \
                         is for another"
                    ),
                ));
            }
            let (before, contents) = (Before::Blank, Some(contents));
            Ok((plan, Start { before, contents, paused: None }))
        }
        Stopped::Paused(paused) => {
            let PausedLoad { run, after, is_filled, before, figures, wall_seconds } = *paused;
            let keys = if let Before::Aged(aged) = &before { aged.keys } else { plan.keys };
            let plan = Plan { is_filled, keys, ..plan };
            let run = Paused::restore(&plan, &run).ok_or_else(broken)?;
            let run = run.map_err(|differs| refused(path, &differs))?;
            if args.pause_after.is_some_and(|wanted| wanted != after) {
                return Err(refused(path, &format!("has a run that paused after {after}")));
            }
            let paused = Some(PausedRun { run, before: figures, wall_seconds });
            Ok((plan, Start { before, contents: None, paused }))
        }
    }
}

/// Runs `plan` up to a pause or to its end, and saves the device then.
pub(super) fn carry_out(
    args: &BenchArgs,
    rig: &mut Rig<'_>,
    plan: &Plan,
    start: Start,
    kept: Kept,
) -> Result<End, Failure> {
    let kept = args.state.as_deref().zip(kept.file);
    let Start { before, contents, paused } = start;
    let (measured, contents) = match (paused, args.pause_after) {
        (Some(paused), _) => rig.finish(plan, paused)?,
        (None, None) => rig.measure_on(plan, contents)?,
        (None, Some(after)) => {
            let paused = rig.measure_to_pause(plan, contents, after)?;
            if let Some((path, file)) = kept {
                let stopped = paused_load(plan, &paused, (before, after));
                let saved = save(rig, file, Stopped::Paused(Box::new(stopped)));
                saved.map_err(|problem| Failure::Broken(rig::sentence(path, &problem)))?;
                return Ok(End::Paused(say_paused(args, path, after)));
            }
            rig.finish(plan, paused)?
        }
    };
    let unsaved = kept.and_then(|(path, file)| {
        let saved = save(rig, file, Stopped::Finished(contents.save()));
        saved.err().map(|problem| rig::sentence(path, &problem))
    });
    Ok(End::Measured { measured: Box::new(measured), unsaved })
}

fn paused_load(plan: &Plan, paused: &PausedRun, (before, after): (Before, u64)) -> PausedLoad {
    PausedLoad {
        run: paused.run.save(plan),
        after,
        is_filled: plan.is_filled,
        before,
        figures: paused.before,
        wall_seconds: paused.wall_seconds,
    }
}

fn save(rig: &mut Rig<'_>, file: StateFile, stopped: Stopped) -> Result<(), Problem> {
    let load = Load { empty: rig.empty(), stopped };
    let load = postcard::to_stdvec(&load).expect("all of it can be written down");
    rig.save(file, &load)
}

fn say_paused(args: &BenchArgs, path: &Path, after: u64) -> Output {
    if args.measure.json {
        return Output::json(&json!({"paused_after": after, "state": path.to_string_lossy()}));
    }
    Output::new(format!(
        "paused after {after} operations, saved in {}; the same command continues\n",
        shown(path)
    ))
}

fn refused(path: &Path, problem: &dyn Display) -> Failure {
    Failure::Refused(rig::sentence(path, problem))
}
