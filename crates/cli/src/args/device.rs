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
