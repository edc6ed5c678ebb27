//! The command line: what can be asked, and one sentence for whatever else is.

use crate::bench;
use crate::demo;
use crate::device;
use crate::number::{parse_count, parse_size};
use crate::output::{Failure, Output};
use clap::{ArgAction, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// A key-value SSD that runs anywhere, in virtual time.
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

const DEMO_HELP: &str = "\
Every regular file becomes a pair, or several if it is longer than 1 MiB. What
cannot be stored as it is gets counted, with the reason. The device is in
memory; the folder is only read.

Example:
  kvasir demo ~/Pictures --device moke";

const BENCH_HELP: &str = "\
All but store have their keys stored first, which is not measured. Values are
checked as they come back: a wrong or missing one is an error.

Options of a target, after a ? and joined by &:
  payload=full|checksum|none  What is kept of values [default: none]
  seed=N                      The device's own seed [default: as --seed]
  shuffle=0|1                 Whether the seed orders timers due at one
                              instant [default: 0]
  index=hash                  Where records lie [default: as in the profile]

Examples:
  kvasir bench retrieve --queue-depth 1
  kvasir bench mixed --target 'sim:moke?payload=full' --read-percent 95";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(DemoArgs),
    Bench(BenchArgs),
    Device(DeviceArgs),
}

/// Store the files of a folder on a device, read all back, compare
#[derive(Debug, clap::Args)]
#[command(after_help = DEMO_HELP)]
pub(crate) struct DemoArgs {
    /// The folder, or a single file
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// A device: a name from `kvasir device list`, or the path of a profile
    #[arg(long, value_name = "DEVICE", default_value = "moke")]
    pub(crate) device: String,
    /// Names the order of reading back, and the device's random choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Most memory that values may take [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Take .git and build folders too: those named target with a CACHEDIR.TAG
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure a device under a load
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true, after_help = BENCH_HELP)]
pub(crate) struct BenchArgs {
    /// What is measured
    pub(crate) workload: Workload,
    /// sim:PROFILE, a device in virtual time, and options as below
    #[arg(long, value_name = "URI", default_value = "sim:moke")]
    pub(crate) target: String,
    /// Operations that are measured
    #[arg(long, value_name = "N", default_value = "100000", value_parser = parse_count)]
    pub(crate) ops: u64,
    /// Operations outstanding at a time, 1 to 65535 [default: 64]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "rate",
        value_parser = clap::value_parser!(u32).range(1..=65_535)
    )]
    pub(crate) queue_depth: Option<u32>,
    /// Operations due in a second, however many are outstanding; latency counts from when each was
    /// due
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) rate: Option<u64>,
    /// Bytes of each key, 1 to 255
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = parse_size)]
    pub(crate) key_size: u64,
    /// Bytes of each value, up to 2MiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = parse_size)]
    pub(crate) value_size: u64,
    /// How many keys there are [default: as many as --ops for store and delete, else 100000]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) keys: Option<u64>,
    /// Names the order of operations and the values
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// How often each key is asked for
    #[arg(long, value_name = "LAW", default_value = "uniform")]
    pub(crate) distribution: Distribution,
    /// Of 100 operations of mixed, how many are retrieves [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) read_percent: Option<u8>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Store each key once, then overwrite
    Store,
    /// Retrieve keys
    Retrieve,
    /// Retrieve or overwrite keys
    Mixed,
    /// Delete each key at most once
    Delete,
    /// Ask whether keys are there
    Exist,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Distribution {
    Uniform,
    Zipfian,
}

/// Show devices: the built-in ones, and what each is made of
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = false,
    disable_help_subcommand = true,
    after_help = "Example:\n  kvasir device show moke > mine.toml"
)]
struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Debug, Subcommand)]
enum DeviceCommand {
    /// List the built-in devices
    #[command(after_help = "Example:\n  kvasir device list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a device's profile, checked
    #[command(after_help = "Example:\n  kvasir device show mine.toml --json")]
    Show {
        /// A name from `kvasir device list`, or the path of a profile
        profile: String,
        /// Print its values in JSON, and which of them are assumptions
        #[arg(long)]
        json: bool,
    },
}

/// Does what `arguments`, the first of which is the program's name, ask.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<Output, Failure> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let args = match Args::try_parse_from(&arguments) {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            let command = command_of(&arguments);
            return Err(Failure::Refused(format!("{}; see {command} --help", reason(&error))));
        }
        Err(help) => return Ok(Output::new(help.to_string())),
    };
    match args.command {
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Device(DeviceArgs { command }) => match command {
            DeviceCommand::List { json } => device::list(json),
            DeviceCommand::Show { profile, json } => device::show(&profile, json),
        },
    }
}

/// What is wrong, without the usage and the rest that a parser's error has.
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

/// The command that `arguments` are for, as far as they name one.
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

    #[test]
    fn help_fits_a_terminal_of_80_columns() {
        for arguments in ["", "demo", "bench", "device", "device list", "device show"] {
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
