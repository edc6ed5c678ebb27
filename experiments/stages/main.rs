//! How much CPU time of one reactor each stage of a request takes.
//!
//! `cargo run --profile dist -p experiments --bin stages -- [--write] [ROUNDS [FOLDER]]`, on an
//! idle machine of two cores. With `--write` it writes `experiments/stages/costs.toml`. `FOLDER` is
//! on the disk of the drive [the folder for temporary files].
//!
//! A bare echo, `mem:` and a drive on a file serve the same client in turn, and two drives execute
//! the same load without sockets. The differences of their CPU times are the stages.

mod costs;
mod disk_bytes;
mod file_drive;
mod local_drive;
mod operation;
mod processor;
mod stages;
mod subject;

use experiments::loopback::core;
use experiments::loopback::target::{Kept, Target};
use file_drive::FileDrive;
use operation::Operation;
use processor::Processor;
use stages::{Round, Rounds, Stages};
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use subject::Subject;

const ROUNDS: usize = 9;

/// Drives on files: one for each user.
struct Drives {
    /// Over TCP.
    served: FileDrive,
    /// Without sockets.
    local: FileDrive,
}

impl Drives {
    fn new(folder: &Path) -> Result<Self, String> {
        let [served, local] = ["served", "local"].map(|name| FileDrive::new(folder, name));
        Ok(Self { served: served?, local: local? })
    }
}

fn main() -> ExitCode {
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    let writes = arguments.first().is_some_and(|first| first == "--write");
    arguments.drain(..usize::from(writes));
    let rounds = arguments.first().map_or(Some(ROUNDS), |text| text.to_str()?.parse().ok());
    let Some(rounds @ 1..) = rounds else {
        eprintln!("stages: ROUNDS is a whole number above 0, as in `stages --write 9 /mnt/disk`");
        return ExitCode::from(2);
    };
    let folder = arguments.get(1).map_or_else(env::temp_dir, PathBuf::from);
    core::pin(core::CLIENT);
    let measured = Processor::of_this_machine().and_then(|processor| {
        let all = measure_all(&processor, rounds, &Drives::new(&folder)?)?;
        if writes { costs::write(&processor, &all) } else { Ok(()) }
    });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("stages: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table line by line, and returns its stages.
fn measure_all(
    processor: &Processor,
    rounds: usize,
    drives: &Drives,
) -> Result<Vec<(&'static str, Stages)>, String> {
    let Processor { name, mhz } = processor;
    println!("{name}, {mhz} MHz by /proc/cpuinfo; CPU time in us a request, medians of {rounds}");
    let [receive, kv, submit, complete, reply] = Stages::NAMES;
    println!(
        "{:<8} {receive:>8} {kv:>8} {submit:>8} {complete:>8} {reply:>8} {:>8} {:>13} {:>10} \
         {:>10}",
        "", "all", "file over TCP", "mem: busy", "file busy"
    );
    let mut all = Vec::new();
    for operation in &Operation::ALL {
        let rounds = measure(operation, rounds, drives);
        let stages = rounds.stages(operation.exchange.value_bytes).map_err(|sentence| {
            format!("this measurement of {} does not count: {sentence}", operation.name)
        })?;
        print_line(operation.name, &stages, &rounds);
        all.push((operation.name, stages));
    }
    println!(
        "submit and complete are halves of what a drive on a file takes more than one in memory"
    );
    Ok(all)
}

/// Measures the servers and the drives in turn.
fn measure(operation: &Operation, rounds: usize, drives: &Drives) -> Rounds {
    let memory = Target::start(Kept::InMemory, operation.exchange.kind);
    let mut memory = Subject::new(memory, operation);
    let mut file = Subject::new(Target::serve(drives.served.served()), operation);
    let mut measured = Rounds::default();
    for _ in 0..rounds {
        measured.push(&Round {
            echo: subject::measure_echo(operation),
            memory: memory.measure(operation),
            file: file.measure(operation),
            local_memory: local_drive::measure_memory(operation),
            local_file: local_drive::measure_file(&drives.local, operation),
        });
    }
    memory.stop();
    file.stop();
    measured
}

fn print_line(name: &str, stages: &Stages, rounds: &Rounds) {
    let [memory_busy, file_busy] = rounds.busy_shares();
    let [file, with_idle] = rounds.on_file();
    print!("{name:<8}");
    for time in stages.values() {
        print!(" {:>8.2}", time / 1e3);
    }
    println!(
        " {:>8.2} {:>13} {:>8.0} % {:>8.0} %",
        stages.values().iter().sum::<f64>() / 1e3,
        format!("{:.2}-{:.2}", file / 1e3, with_idle / 1e3),
        memory_busy * 100.0,
        file_busy * 100.0
    );
}
