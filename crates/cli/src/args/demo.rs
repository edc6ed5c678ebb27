use crate::number::parse_count;
use base::parse_size;
use clap::ValueEnum;
use std::path::PathBuf;

const DEMO_HELP: &str = "\
Every regular file becomes a pair, or several if it is longer than 1 MiB. What
cannot be stored as it is gets counted, with the reason. The device is in
memory; the folder is only read.

Example:
  kvasir demo ~/Pictures --device moke";

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
    /// Which clock the device keeps: virtual, as fast as this machine simulates, or real
    #[arg(long, value_name = "CLOCK", default_value = "virtual")]
    pub(crate) clock: Clock,
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

/// The clock that a device keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// Time passes as the device's events do.
    Virtual,
    /// An event happens when the wall clock has reached it.
    Real,
}

impl Clock {
    /// The name on the command line and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Real => "real",
        }
    }
}
