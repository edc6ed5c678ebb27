use clap::Subcommand;
use std::path::PathBuf;

/// Show devices: the built-in ones, and what each is made of
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

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
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
    Sensitivity(SensitivityArgs),
    Calibrate(CalibrateArgs),
}

const SENSITIVITY_HELP: &str = "\
Each number of the profile is halved and doubled, each word replaced by the
others it could be, one at a time. Loads run before and after; what moved most
is shown. Large flash is cut first, and the output says how.

Examples:
  kvasir device sensitivity moke
  kvasir device sensitivity mine.toml --plot mine.svg";

/// Show what each number and word of a profile moves
#[derive(Debug, clap::Args)]
#[command(after_help = SENSITIVITY_HELP)]
pub(crate) struct SensitivityArgs {
    /// A name from `kvasir device list`, or the path of a profile
    pub(crate) profile: String,
    /// Print everything measured in JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw what moved most as an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

const CALIBRATE_HELP: &str = "\
Points are CSV with a header: workload, value_bytes, key_bytes, queue_depth, and
ops_per_second or latency_ns; use is fit or check. Each knob moves until the
points are least off in simulation. How far off a size is that was not measured
is found by leaving out each size in turn, or from the points to check. Without
knobs the profile is held against the points as it is.

Examples:
  kvasir device calibrate points.csv --device pm983-kv
  kvasir device calibrate points.csv --device mine.toml \\
    --knob nand.program_us,firmware.t_update_us=10 --output fitted.toml";

/// Fit numbers of a profile to measured points
#[derive(Debug, clap::Args)]
#[command(after_help = CALIBRATE_HELP)]
pub(crate) struct CalibrateArgs {
    /// The points
    #[arg(value_name = "CSV")]
    pub(crate) points: PathBuf,
    /// A name from `kvasir device list`, or the path of a profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) device: String,
    /// Keys whose numbers are fitted, each with where the search begins if that is not its value
    #[arg(long, value_name = "KEY[=START]", value_delimiter = ',')]
    pub(crate) knob: Vec<String>,
    /// Write the profile with what was fitted
    #[arg(long, value_name = "FILE.toml", requires = "knob")]
    pub(crate) output: Option<PathBuf>,
    /// Draw the points and their simulation as an SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// Show points beyond those that are fitted to, marked
    #[arg(long)]
    pub(crate) extrapolate: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
