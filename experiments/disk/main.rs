//! Compares one reactor with fio on a disk: random reads and writes of 8 KiB, 64 outstanding,
//! alternating with fio on the same file.
//!
//! `cargo run --profile dist -p experiments --bin disk -- FILE [ROUNDS]`, on an idle machine with
//! fio. The file is made and removed.

mod load;

use base::Rng;
use clock::Class;
use disk::{Access, File, create};
use experiments::fio;
use load::Load;
use media::Blocks;
use reactor::{Reactor, Remote};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const ROUNDS: usize = 5;

/// Bytes of the file: more than the cache of a disk.
const BYTES: u64 = 4 << 30;

/// Bytes of each write that fills the file.
const FILL_BYTES: u32 = 1 << 20;

/// The time of each measurement.
const TIME: Duration = Duration::from_secs(5);

/// The required share of fio's rate.
const BAR: f64 = 0.9;

/// The result of one run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Operations a second.
    rate: f64,
    /// Processor time of each operation, in microseconds.
    processor: f64,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next();
    let rounds = arguments.next().map_or(Ok(ROUNDS), |text| text.parse());
    let (Some(path), Ok(rounds @ 1..)) = (path, rounds) else {
        eprintln!("disk: name a file to be made, as in `disk /var/tmp/file 5`");
        return ExitCode::from(2);
    };
    let path = Path::new(&path);
    if let Err(error) = create(path, BYTES) {
        eprintln!("disk: {error}");
        return ExitCode::FAILURE;
    }
    let result = measure(path, rounds);
    // This program created the file, so it removes it, even after a failure.
    let removed = std::fs::remove_file(path).map_err(|error| error.to_string());
    match result.and(removed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("disk: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn measure(path: &Path, rounds: usize) -> Result<(), String> {
    fill(path)?;
    println!("of 8 KiB, 64 at a time, medians of {rounds} rounds of {TIME:?}:");
    for load in [Load::Read, Load::Write] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            theirs.push(by_fio(path, load)?);
            ours.push(load::run(path, load, TIME)?);
        }
        let (ours, theirs) = (median(&ours), median(&theirs));
        println!(
            "{}: {:.0} a second, {:.2} us of the processor each; fio {:.0}, {:.2} us; \
             {:.3} of fio's rate (bar: {BAR})",
            load.name(),
            ours.rate,
            ours.processor,
            theirs.rate,
            theirs.processor,
            ours.rate / theirs.rate
        );
    }
    Ok(())
}

fn by_fio(path: &Path, load: Load) -> Result<Measured, String> {
    let (mode, more) = (load.name(), Vec::new());
    let job =
        fio::Job { file: path, mode, bytes: load::BYTES, depth: load::DEPTH, time: TIME, more };
    let figures = job.run()?;
    Ok(Measured { rate: figures.rate, processor: figures.processor })
}

/// Writes every block once, so that reads reach the disk, and writes allocate nothing.
fn fill(path: &Path) -> Result<(), String> {
    let file = File::open(path, Access::Write, Some(base::limits::BLOCK_BYTES));
    let file = Arc::new(file.map_err(|error| error.to_string())?);
    let blocks = u64::from(FILL_BYTES / file.shape().block_bytes);
    let writers = (0..4).map(|number| {
        let file = file.clone();
        async move {
            let mut rng = Rng::new(number);
            for part in (number..BYTES / u64::from(FILL_BYTES)).step_by(4) {
                let data = [load::random(&mut rng, FILL_BYTES)].into_iter().collect();
                file.write(part * blocks, data, Class::HostWrite).await?;
            }
            file.flush().await
        }
    });
    let (ended, _) = Reactor::new(None)
        .serve(&remote()?, async { clock::join_all(writers.collect()).await })
        .map_err(|error| error.to_string())?;
    ended.into_iter().collect::<Result<(), _>>().map_err(|error| error.to_string())
}

fn remote() -> Result<Remote, String> {
    Remote::new().map_err(|error| error.to_string())
}

fn median(of: &[Measured]) -> Measured {
    let middle = |value: fn(&Measured) -> f64| {
        experiments::median(&mut of.iter().map(value).collect::<Vec<_>>())
    };
    Measured { rate: middle(|it| it.rate), processor: middle(|it| it.processor) }
}
