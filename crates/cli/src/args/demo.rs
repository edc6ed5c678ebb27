use crate::number::parse_count;
use base::parse_size;
use clap::ValueEnum;
use std::path::PathBuf;

const DEMO_HELP: &str = "\
Each regular file becomes a pair, or several if it is longer than 1 MiB. Files
that cannot be stored are counted with the reason. The device is emulated in
memory. Kvasir only reads the folder.

Example:
  kvasir demo ~/Pictures --device moke";

/// Store a folder's files on a device, read and compare them
#[derive(Debug, clap::Args)]
#[command(after_help = DEMO_HELP)]
pub(crate) struct DemoArgs {
    /// Folder, or a single file
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,
    /// Name from `kvasir device list`, or path of a profile
    #[arg(long, value_name = "DEVICE", default_value = "moke")]
    pub(crate) device: String,
    /// Clock of the device: virtual (as fast as possible), or real
    #[arg(long, value_name = "CLOCK", default_value = "virtual")]
    pub(crate) clock: Clock,
    /// Random seed of the device and of the order of reads
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count)]
    pub(crate) seed: u64,
    /// Memory limit for values [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
    /// Include .git and Cargo build folders
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The clock that a device keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// Virtual time: the clock jumps from event to event.
    Virtual,
    /// An event happens when the wall clock has reached its time.
    Real,
}

impl Clock {
    /// Returns the name on the command line and in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Real => "real",
        }
    }
}
