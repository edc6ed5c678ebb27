//! `kvasir demo`: stores real files on an emulated device and reads them back.
//!
//! 1. [`walk`] lists the files, in the order of their paths.
//! 2. [`load`] reads each file, stores it in chunks under the keys that [`key`] makes, and keeps a
//!    checksum of the file's bytes.
//! 3. [`verify`] retrieves every pair, in an order that depends on the seed, and compares.
//! 4. [`report`] prints the result; [`treatment`] counts special files, [`fault`] lists errors.

mod command;
mod fault;
mod key;
mod load;
mod pair;
mod phase;
mod report;
mod source;
mod treatment;
mod verify;
mod walk;

use crate::args::{Clock, DemoArgs};
use crate::device;
use crate::flash::{Flash, Window};
use crate::memory;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::Progress;
use crate::rig::{device_failure, flush};
use load::Loader;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use report::{DemoReport, Ran};
use std::time::Instant;
use walk::{Root, walk};

/// Stores the files under the path that `args` name on a device, and reads them back.
pub(crate) fn run(args: &DemoArgs) -> Result<Output, Failure> {
    let started = Instant::now();
    let profile = device::load(&args.device)?;
    let nsid = namespace(&profile)?;
    let root = Root::open(&args.path).map_err(|error| {
        Failure::Refused(format!("{} cannot be read: {error}", shown(&args.path)))
    })?;
    let progress = Progress::new(args.json);
    let walked = walk(&root, args.all, progress);
    let memory_bytes = args.memory.or_else(|| memory::total_bytes().map(|total| total / 2));
    let mut reactor = Reactor::new(None);
    let cells = Device::manufacture(&profile, args.seed);
    let device = reactor
        .run(Device::format(&profile, cells, args.seed, FaultPlan::default()))
        .map_err(device_failure)?;
    let loader = Loader::new(&device, nsid, &root, walked, memory_bytes);
    let trip = there_and_back(&device, loader, args.seed, progress);
    let (ran, lateness) = match args.clock {
        Clock::Virtual => (reactor.run(trip), None),
        Clock::Real => {
            let (ran, lateness) = reactor.run_in_real_time(trip);
            (ran, Some(lateness))
        }
    };
    let mut ran = Ran { lateness, ..ran? };
    let report = DemoReport::new(args, &profile, &mut ran, memory_bytes, started.elapsed());
    let errors = report.errors();
    let output = if args.json { Output::json(&report) } else { Output::new(report.table()) };
    Ok(output.with_errors(errors))
}

/// Returns the first namespace of keys and values.
fn namespace(profile: &Profile) -> Result<u32, Failure> {
    let mut namespaces = (1..).zip(&profile.namespaces);
    let found = namespaces.find(|(_, namespace)| namespace.kind.is_kv());
    found.map(|(nsid, _)| nsid).ok_or_else(|| {
        let name = &profile.name;
        Failure::Refused(format!(
            "a demo is of keys and values, but {name} has no namespace of kind kv"
        ))
    })
}

async fn there_and_back(
    device: &Device,
    loader: Loader<'_>,
    seed: u64,
    progress: Progress,
) -> Result<Ran, Failure> {
    let empty = device.figures();
    let mut loaded = loader.load(progress).await;
    // Buffered data would be read from the buffer, not from flash.
    flush(device).await?;
    let full = device.figures();
    let retrieved = verify::verify(device, &mut loaded, seed, progress).await;
    let read = device.figures();
    let storing = Window { before: empty, after: full };
    let retrieving = Window { before: full, after: read };
    let (pairs, bytes) = (loaded.pairs.len() as u64, loaded.key_bytes() + loaded.value_bytes());
    let mut digest = loaded.digest.clone();
    digest.add(&read.nand.words());
    Ok(Ran {
        write_amplification: storing.write_amplification(),
        flash_reads_per_retrieve: retrieving.flash_reads_per_retrieve(pairs),
        flash: Flash::new(device, &Window { before: empty, after: read }, pairs, bytes),
        digest: digest.value(),
        lateness: None,
        loaded,
        retrieved,
    })
}
