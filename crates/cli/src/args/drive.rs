use base::parse_size;
use std::path::PathBuf;

const FORMAT_HELP: &str = "\
A drive is a file or a whole block device. format creates the file if it does
not exist. It refuses a path that holds data, unless --force is given. With
--force, --size also resizes an existing file. format always refuses a path that
is mounted or in use.

Examples:
  kvasir format drive.kv --size 10GiB
  kvasir format drive.kv --size 20GiB --force
  kvasir format drive.kv --size 10GiB --fill
  kvasir format /dev/nvme1n1
  kvasir serve --device ./drive.kv --nvme-tcp :4420";

/// Create a key-value drive on a file or block device
#[derive(Debug, clap::Args)]
#[command(after_help = FORMAT_HELP)]
pub(crate) struct FormatArgs {
    /// File or block device
    pub(crate) path: PathBuf,
    /// Size of the file, as 10GiB; leave out for a block device
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Overwrite existing data of the file or device
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the whole drive once; first stores are then faster
    #[arg(long)]
    pub(crate) fill: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const INSPECT_HELP: &str = "\
A drive is a file or block device that kvasir format prepared. It is divided
into extents, numbered from 0. Kvasir fills an extent page by page, and frees it
as a whole. A record is one stored value or one deletion, with its key.

Without --extent, inspect prints the size of the drive, the number of keys, the
amplification factors and the use of the extents.

inspect does not change the drive. While inspect runs, no other process can
open the drive for writing. If a server uses the drive, inspect ends with an
error. Use kvasir top to see what that server does.

Examples:
  kvasir inspect drive.kv
  kvasir inspect drive.kv --extent 12";

/// Show how much a drive stores and how its space is used
#[derive(Debug, clap::Args)]
#[command(after_help = INSPECT_HELP)]
pub(crate) struct InspectArgs {
    /// File or block device
    pub(crate) path: PathBuf,
    /// List the records of extent N, page by page
    #[arg(long, value_name = "N")]
    pub(crate) extent: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const CHECK_HELP: &str = "\
Reads and verifies the whole drive: records, values, index entries, counters,
checkpoint and superblocks. Prints each error with its position in the drive. If
there are errors, check ends with status 1. It never writes to the drive, and
repairs nothing. Stop a server that uses the drive first.

Example:
  kvasir check drive.kv";

/// Verify all data of a drive, read-only
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct CheckArgs {
    /// File or block device
    pub(crate) path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
