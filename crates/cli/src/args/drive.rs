use base::parse_size;
use std::path::PathBuf;

const FORMAT_HELP: &str = "\
A drive is a file, or all of a raw block device. format makes the file if it does
not exist. --force overwrites what a file or device holds, and gives a file the
--size. A path that is mounted or in use is refused, also with --force.

Examples:
  kvasir format drive.kv --size 10GiB
  kvasir format drive.kv --size 20GiB --force
  kvasir format drive.kv --size 10GiB --fill
  kvasir format /dev/nvme1n1
  kvasir serve --device ./drive.kv --nvme-tcp :4420";

/// Make a drive of keys and values on a file or a raw block device
#[derive(Debug, clap::Args)]
#[command(after_help = FORMAT_HELP)]
pub(crate) struct FormatArgs {
    /// The file or block device
    pub(crate) path: PathBuf,
    /// Size of the file, as 10GiB; a block device has its own
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Overwrite what is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Write all of it once, with zeros: takes a while, and the first stores are as fast as later
    /// ones then
    #[arg(long)]
    pub(crate) fill: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const INSPECT_HELP: &str = "\
The drive is only read, and nobody else may write to it meanwhile: a drive that
is served says so, and kvasir top shows what its server is doing.

Examples:
  kvasir inspect drive.kv
  kvasir inspect drive.kv --extent 12";

/// Show what lies where on a drive, without writing to it
#[derive(Debug, clap::Args)]
#[command(after_help = INSPECT_HELP)]
pub(crate) struct InspectArgs {
    /// The file or block device
    pub(crate) path: PathBuf,
    /// List what lies in this extent, page by page
    #[arg(long, value_name = "N")]
    pub(crate) extent: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CHECK_HELP: &str = "\
Reads all of it: every record with its value, every entry of the index, every
count, the checkpoint, and what the drive says of itself. What is wrong is told
with its place, and ends with status 1. Nothing is written or mended.

Example:
  kvasir check drive.kv";

/// Verify all that lies on a drive, without writing to it
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// The file or block device
    pub(crate) path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
