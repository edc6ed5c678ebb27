//! `kvasir`, the program: parses the command line, runs the command in this process, prints the
//! result.
//!
//! Each command has a file: [`demo`], [`bench`], [`reproduce`], [`device`]; shared modules are
//! named after what they make. Bad input ends with status 2, a run that found errors with status 1,
//! each with one sentence on standard error.

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

use std::process::ExitCode;

fn main() -> ExitCode {
    match args::run(std::env::args_os()) {
        Ok(output) => output.print(),
        Err(failure) => failure.print(),
    }
}
