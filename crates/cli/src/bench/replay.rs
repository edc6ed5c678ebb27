//! `kvasir bench replay`: the operations of a trace on a device.

use super::plan::QUEUE_DEPTH;
use super::report::{Before, Subject};
use super::room::{self, Stored};
use super::{check_outputs, faults, finish, setup, space};
use crate::args::{ReplayArgs, TraceFormat};
use crate::memory;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Progress, Unit};
use crate::rig::Rig;
use crate::target::Target;
use client::Uri;
use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use workload::{Format, Kind, Pace, Payload, Replay, ReplayPlan, Trace};

/// Replays the trace that `args` name.
pub(super) fn run(args: &ReplayArgs) -> Result<Output, Failure> {
    if Uri::is_meant(&args.measure.target) {
        return Err(Failure::refused(
            "replay is for a device in this program, sim:PROFILE or emu:PROFILE, and not for one \
             over NVMe/TCP",
        ));
    }
    let target = Target::parse(&args.measure.target)?;
    check_outputs(&args.measure, None, &target, &[&args.file])?;
    let pace: Pace = args.pace.parse().map_err(Failure::refused)?;
    if args.queue_depth.is_some() && pace != Pace::Full {
        return Err(Failure::refused("--queue-depth is for --pace full only"));
    }
    let nsid = space::choose_for_trace(&target)?;
    let queue_depth = args.queue_depth.unwrap_or(QUEUE_DEPTH);
    let trace = Arc::new(read(args)?);
    let stored = stored(&trace, target.payload);
    room::check(&stored, &target.profile, nsid, memory::total_bytes())?;
    let faults = faults::load(&args.measure, &target)?;
    let mut rig = Rig::new(setup(&args.measure, &target, faults.as_ref()))?;
    let plan = ReplayPlan {
        replay: Replay::new(trace.clone(), pace),
        queue_depth,
        nsid,
        seed: args.measure.seed,
        payload: target.payload,
    };
    let fill = rig.fill_by(async |queue, bar| {
        workload::fill_replay(queue, &plan, |done, total| bar.set(done, total)).await
    })?;
    let measured = rig.measure_by(async |queue, bar| {
        workload::replay(queue, &plan, |done, total| bar.set(done, total)).await
    })?;
    let file = shown(&args.file);
    let subject = Subject::Replay { file: &file, trace: &trace, pace, queue_depth };
    Ok(finish(&args.measure, &target, &subject, Before::Filled(fill), &measured, None))
}

fn read(args: &ReplayArgs) -> Result<Trace, Failure> {
    let name = shown(&args.file);
    let unreadable = |error| Failure::Refused(format!("{name} cannot be read: {error}"));
    let file = File::open(&args.file).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    let format = args.format.map(|format| match format {
        TraceFormat::Csv => Format::Csv,
        TraceFormat::Twitter => Format::Twitter,
    });
    let mut bar = Progress::new(args.measure.json).bar("reading", Unit::Bytes);
    let source = BufReader::with_capacity(1 << 20, file);
    Trace::parse(&name, source, format, |done| bar.set(done, bytes)).map_err(Failure::refused)
}

/// Returns what the trace stores, as far as it is known in advance.
#[expect(clippy::cast_precision_loss, reason = "for an estimate, where 53 bits are plenty")]
fn stored(trace: &Trace, payload: Payload) -> Stored {
    let pairs = u64::from(trace.keys());
    Stored {
        is_pairs: true,
        items: pairs,
        stores: pairs + trace.count(Kind::Store),
        key_bytes: 0.0,
        value_bytes: trace.live_bytes_max() as f64 / pairs as f64,
        has_bytes: payload == Payload::Full,
    }
}
