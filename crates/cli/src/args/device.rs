use super::figure::figure_path;
use clap::Subcommand;
use std::path::PathBuf;

/// List built-in devices, show, test and fit their profiles
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = false,
    disable_help_subcommand = true,
    after_help = "Example:\n  kvasir device show moke > mine.toml"
)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    pub(crate) command: DeviceCommand,
}

const SHOW_HELP: &str = "\
A profile is a TOML file that describes an emulated device: its flash, firmware
and link to the host. Kvasir checks the keys and values of the profile. If all
are valid, Kvasir prints the TOML text with its comments. Otherwise it prints an
error and ends with status 2.

With --json, \"assumptions\" lists the values that have no published source. The
profile marks such a value by a comment that begins with \"assumption:\".

Examples:
  kvasir device show moke
  kvasir device show mine.toml --json";

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    /// List the built-in devices
    #[command(after_help = "Example:\n  kvasir device list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the profile of an emulated device and print it
    #[command(after_help = SHOW_HELP)]
    Show {
        /// Name from `kvasir device list`, or path of a profile
        profile: String,
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    Sensitivity(SensitivityArgs),
    Calibrate(CalibrateArgs),
}

const SENSITIVITY_HELP: &str = "\
Halves and doubles each number of the profile, and replaces each word by each
alternative, one at a time, on all cores. Measures loads before and after, and
shows what moved most. A change that another seed causes as well is marked
\"within spread\". Reduces large flash first, and says how.

Examples:
  kvasir device sensitivity moke
  kvasir device sensitivity mine.toml --plot mine.svg";

/// Show how each value of a profile changes performance
#[derive(Debug, clap::Args)]
#[command(after_help = SENSITIVITY_HELP)]
pub(crate) struct SensitivityArgs {
    /// Name from `kvasir device list`, or path of a profile
    pub(crate) profile: String,
    /// Print all measurements as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the largest changes as an SVG file
    #[arg(long, value_name = "FILE.svg", value_parser = figure_path())]
    pub(crate) plot: Option<PathBuf>,
}

const CALIBRATE_HELP: &str = "\
Points are CSV with a header: workload, value_bytes, key_bytes, queue_depth, and
ops_per_second or latency_ns; a column use holds fit or check. Kvasir moves each
knob until the simulation is closest to the points. It estimates the error for
unmeasured sizes by leaving out each size in turn, or by the points to check.
Without --knob it compares the profile with the points.

Examples:
  kvasir device calibrate points.csv --device pm983-kv
  kvasir device calibrate points.csv --device mine.toml \\
    --knob nand.program_us,firmware.t_update_us=10 --output fitted.toml";

/// Fit numbers of a profile to measured points
#[derive(Debug, clap::Args)]
#[command(after_help = CALIBRATE_HELP)]
pub(crate) struct CalibrateArgs {
    /// CSV file of measured points
    #[arg(value_name = "CSV")]
    pub(crate) points: PathBuf,
    /// Name from `kvasir device list`, or path of a profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) device: String,
    /// Keys to fit, each with a start [default: the profile's value]
    #[arg(long, value_name = "KEY[=START]", value_delimiter = ',')]
    pub(crate) knob: Vec<String>,
    /// Write the fitted profile to this file
    #[arg(long, value_name = "FILE.toml", requires = "knob")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the points and their simulation as an SVG file
    #[arg(long, value_name = "FILE.svg", value_parser = figure_path())]
    pub(crate) plot: Option<PathBuf>,
    /// Also show points outside the fitted range, marked
    #[arg(long)]
    pub(crate) extrapolate: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
