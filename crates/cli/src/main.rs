//! `kvasir`, the program: parses the command line, runs the command in this process, prints the
//! result.
//!
//! Each command has a file: [`demo`], [`bench`], [`reproduce`], [`device`]; shared modules are
//! named after what they make. Bad input ends with status 2, a run that found errors with status 1,
//! each with one sentence on standard error.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a measurement | `args/bench`, `target`, `bench/plan`, `rig`, `bench/report`, `bench/figure` |
//! | a replay | `bench/replay`, `bench/report` |
//! | the spans of a trace | `perfetto` |
//! | an experiment | `reproduce`, `reproduce/catalogue`, `reproduce/criteria`, `rig` |
//! | an experiment in real time | `reproduce/polled_drive` |
//! | `kvasir top` | `top`, `top/sample`, `top/view` |

mod args;
mod bench;
mod breakdown;
mod calibrate;
mod demo;
mod device;
mod dial;
mod drive;
mod flash;
mod kv;
mod lateness;
mod memory;
mod number;
mod output;
mod outputs;
mod parallel;
mod path;
mod perfetto;
mod plot;
mod progress;
mod redis;
mod remote;
mod reproduce;
mod rig;
mod sensitivity;
mod serve;
mod table;
mod target;
mod top;

use args::{Command, DeviceArgs, DeviceCommand, Parsed};
use output::{Failure, Output};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args_os()).and_then(|parsed| match parsed {
        Parsed::Command(command) => run(command),
        Parsed::Text(text) => Ok(Output::new(text)),
    });
    match outcome {
        Ok(output) => output.print(),
        Err(failure) => failure.print(),
    }
}

fn run(command: Command) -> Result<Output, Failure> {
    match command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Kv(args) => kv::run(&args.command),
        Command::Bench(args) => bench::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Format(args) => drive::format(&args),
        Command::Inspect(args) => drive::inspect(&args),
        Command::Check(args) => drive::check(&args),
        Command::Device(DeviceArgs { command }) => match command {
            DeviceCommand::List { json } => device::list(json),
            DeviceCommand::Show { profile, json } => device::show(&profile, json),
            DeviceCommand::Sensitivity(args) => sensitivity::run(&args),
            DeviceCommand::Calibrate(args) => calibrate::run(&args),
        },
    }
}
