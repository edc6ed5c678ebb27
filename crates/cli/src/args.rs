//! The command line: its commands, and one sentence for input that it refuses.

use crate::output::Failure;
use clap::{ArgAction, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;

mod bench;
mod demo;
mod device;
mod drive;
mod figure;
mod kv;
mod reproduce;
mod serve;
mod top;

pub(crate) use bench::{
    BenchArgs, BenchCommand, Distribution, MeasureArgs, ReplayArgs, TraceFormat, Workload,
};
pub(crate) use demo::{Clock, DemoArgs};
pub(crate) use device::{CalibrateArgs, DeviceArgs, DeviceCommand, SensitivityArgs};
pub(crate) use drive::{CheckArgs, FormatArgs, InspectArgs};
pub(crate) use kv::{ExportArgs, ImportArgs, KvArgs, KvCommand, StoreArgs};
pub(crate) use reproduce::ReproduceArgs;
pub(crate) use serve::{ServeArgs, ServeBalance, ServeClock, ServeDoorbells};
pub(crate) use top::TopArgs;

/// A key-value SSD in software: on flash, disk or memory.
#[derive(Debug, Parser)]
#[command(
    name = "kvasir",
    version,
    max_term_width = 80,
    arg_required_else_help = false,
    disable_help_subcommand = true,
    disable_help_flag = true,
    after_help = "Example:\n  kvasir demo ~/Pictures"
)]
struct Args {
    /// Print help
    // Always the short form, which has a line for each option.
    #[arg(short, long, global = true, display_order = 999, action = ArgAction::HelpShort)]
    help: Option<bool>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Serve(Box<ServeArgs>),
    Top(TopArgs),
    Kv(KvArgs),
    Bench(Box<BenchArgs>),
    Reproduce(ReproduceArgs),
    Device(DeviceArgs),
    Format(FormatArgs),
    Inspect(InspectArgs),
    Check(CheckArgs),
}

/// The meaning of a command line.
pub(crate) enum Parsed {
    Command(Command),
    /// The text of `--help` or `--version`.
    Text(String),
}

/// Parses `arguments`, of which the first is the program's name.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match Args::try_parse_from(&arguments) {
        Ok(args) => Ok(Parsed::Command(args.command)),
        Err(error) if error.use_stderr() => {
            let command = command_of(&arguments);
            Err(Failure::Refused(format!("{}; see {command} --help", reason(&error))))
        }
        Err(text) => Ok(Parsed::Text(text.to_string())),
    }
}

/// Returns what is wrong, without the usage and the other text of a parser's error.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let is_reason =
        |line: &&str| !line.starts_with("Usage: ") && !line.starts_with("For more information");
    let mut reason = String::new();
    for line in text.lines().map(str::trim).take_while(is_reason) {
        match line.strip_prefix("tip: ") {
            Some(tip) => reason.extend(["; ", tip]),
            None if reason.is_empty() || line.is_empty() => reason.push_str(line),
            None => reason.extend([" ", line]),
        }
    }
    reason.strip_prefix("error: ").map_or(reason.clone(), str::to_owned)
}

/// Returns the command that `arguments` name, or its deepest prefix that is a command.
fn command_of(arguments: &[OsString]) -> String {
    let mut command = Args::command();
    let mut name = command.get_name().to_owned();
    for word in arguments.iter().skip(1) {
        let Some(next) = command.find_subcommand(word).cloned() else { break };
        name.extend([" ", next.get_name()]);
        command = next;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    /// Panics if the help of an argument of `command` is longer than the limit of one line.
    fn check_arguments(command: &clap::Command) {
        let Some(about) = command.get_about() else { panic!("{} has no help", command.get_name()) };
        assert!(about.to_string().len() <= 60, "{}: {about}", command.get_name());
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let point = help.split(" [default: ").next().unwrap_or_default();
            let is_short = (1..=60).contains(&point.len()) && !point.contains('\n');
            assert!(is_short, "{} {}: {help:?}", command.get_name(), argument.get_id());
        }
        command.get_subcommands().for_each(check_arguments);
    }

    #[test]
    fn each_argument_is_explained_in_60_characters() {
        let mut command = Args::command();
        command.build();
        check_arguments(&command);
    }

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        for arguments in [
            "",
            "demo",
            "serve",
            "top",
            "kv",
            "kv store",
            "kv retrieve",
            "kv delete",
            "kv exist",
            "kv list",
            "kv info",
            "bench",
            "bench replay",
            "reproduce",
            "device",
            "device list",
            "device show",
            "device sensitivity",
            "device calibrate",
            "format",
            "inspect",
            "check",
        ] {
            let arguments = format!("kvasir {arguments} --help");
            let words = arguments.split_whitespace().map(OsString::from);
            let help = Args::try_parse_from(words).unwrap_err().to_string();
            assert!(
                help.contains("Example") && help.lines().all(|line| line.len() <= 80),
                "{help}"
            );
        }
    }
}
