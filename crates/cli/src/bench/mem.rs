//! `kvasir bench` on a drive in memory, made in this process for the measurement.

use super::long_polls;
use super::outside::{self, Asked, More};
use super::plan::{self, Place};
use super::spread::{self, Crew};
use crate::args::BenchArgs;
use crate::drive;
use crate::memory;
use crate::number::grouped;
use crate::output::{Failure, Output};
use crate::target::name_and_options;
use base::{human_bytes, parse_size};
use node::server::LongPollStatus;
use node::{MEMORY_DRIVE_BYTES_MIN, MemoryDrive, MemoryKind};
use serde::Serialize;
use workload::{DeviceFigures, Payload, Plan, Space};

/// Prefix of a target in memory.
const SCHEME: &str = "mem:";

const NSID: u32 = 1;

/// A drive in memory, as a target's URI names it.
struct Target {
    size_bytes: u64,
    reactors: u8,
}

/// True if `uri` names a drive in memory.
pub(super) fn is_meant(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

impl Target {
    fn parse(uri: &str) -> Result<Self, Failure> {
        let rest = uri.strip_prefix(SCHEME).expect("it is of this scheme");
        let (size, options) = name_and_options(rest)?;
        let refused = |why: String| {
            let form = "a target in memory is mem:SIZE, as mem:1GiB or mem:1GiB?reactors=2";
            Failure::Refused(format!("{form}: {why}"))
        };
        let size_bytes = parse_size(size).map_err(|error| refused(error.to_string()))?;
        if size_bytes < MEMORY_DRIVE_BYTES_MIN {
            let least = human_bytes(MEMORY_DRIVE_BYTES_MIN);
            return Err(refused(format!("SIZE is at least {least}")));
        }
        let mut target = Self { size_bytes, reactors: 1 };
        for (key, value) in options {
            match key {
                "reactors" => target.reactors = spread::reactors(value)?,
                _ => return Err(refused(format!("it has no option {key:?}"))),
            }
        }
        Ok(target)
    }
}

/// Measures what `args` ask for.
pub(super) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let Target { size_bytes, reactors } = Target::parse(&args.measure.target)?;
    outside::check(args, "in memory")?;
    if args.overwrite {
        return Err(Failure::refused("--overwrite is not for a drive that begins empty"));
    }
    let operation = plan::operation(args)?;
    let place = Place { nsid: NSID, space: Space::Pairs, keys: None };
    let plan = plan::of(args, operation, place, Payload::Full)?;
    spread::check_keys(&plan)?;
    check_machine(size_bytes)?;
    let (measured, figures) = drive::serve_among(reactors, async |remotes, others| {
        let broken = |error: engine::Error| Failure::Broken(error.to_string());
        clock::name_task("load");
        let (kind, seed) = (MemoryKind::Kv, args.measure.seed);
        let crew = Crew::start(others)?;
        let drive =
            MemoryDrive::format_among(crew.pool(), kind, size_bytes, reactors.into(), seed).await;
        let drive = drive.map_err(broken)?;
        check_room(&plan, size_bytes)?;
        let measured = spread::measure(args, &plan, drive.controller(), &crew, || {}).await?;
        let long_polls = long_polls::of(remotes);
        let store = drive.kv().expect("it has pairs");
        store.flush().await.map_err(broken)?;
        store.end_cleaning().await;
        crew.end()?;
        Ok((measured, Figures { reactors, long_polls }))
    })?;
    let device = format!("memory, {}", human_bytes(size_bytes));
    let asked = Asked { args, plan: &plan, target: &args.measure.target, device };
    Ok(outside::report(asked, &measured, &DeviceFigures::default(), figures))
}

/// Refuses a drive that this machine has no memory for.
fn check_machine(size_bytes: u64) -> Result<(), Failure> {
    let Some(total) = memory::total_bytes().filter(|total| size_bytes > *total) else {
        return Ok(());
    };
    let (size, total) = (human_bytes(size_bytes), human_bytes(total));
    Err(Failure::Refused(format!("mem:{size} is more than the memory of this machine, {total}")))
}

/// Refuses pairs for which the drive has no room.
fn check_room(plan: &Plan, size_bytes: u64) -> Result<(), Failure> {
    let stored = plan::stored(plan, None);
    if stored.items <= stored.items_in(size_bytes) {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{} pairs do not fit mem:{}: fewer are --keys or --ops",
        grouped(stored.items),
        human_bytes(size_bytes)
    )))
}

/// What is known of the reactors.
#[derive(Debug, Serialize)]
struct Figures {
    reactors: u8,
    /// Polls that took more than 100 us of CPU time since the drive was made.
    long_polls: Vec<LongPollStatus>,
}

impl More for Figures {
    const TELLS_STAGES: bool = true;
    const IS_SHARED: bool = false;

    fn facts(&self) -> Vec<(&'static str, String)> {
        let reactors = [("reactors", self.reactors.to_string())];
        reactors.into_iter().chain(long_polls::facts(&self.long_polls)).collect()
    }
}
