use super::fill::fill;
use super::report::DriveReport;
use super::{failure, serve};
use crate::args::FormatArgs;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Progress, Unit};
use base::human_bytes;
use base::limits::BLOCK_BYTES;
use disk::{Access, File, Found, create, probe, resize};
use drive::Format;
use media::{BlocksShape, MemoryBlocks};
use node::DiskDrive;
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Random bytes of Linux.
const RANDOM: &str = "/dev/urandom";

/// Makes the drive that `args` describe.
pub(crate) fn run(args: &FormatArgs) -> Result<Output, Failure> {
    let path = &args.path;
    let found = probe(path).map_err(Failure::refused)?;
    prepare(args, &found)?;
    let made = make(args);
    if made.is_err() && matches!(found, Found::Absent) {
        // This call created the file, and it is not a drive.
        let _ = fs::remove_file(path);
    }
    made
}

fn make(args: &FormatArgs) -> Result<Output, Failure> {
    let path = &args.path;
    let file = File::open(path, Access::Write, None).map(Arc::new).map_err(Failure::refused)?;
    let format = Format { id: random()?, secret: random()?, extent_bytes: None };
    let mut bar = Progress::new(args.json).bar("filling", Unit::Bytes);
    let info = serve(async {
        let possible = DiskDrive::check_size(&*file, format);
        possible.map_err(|error| failure(path, &file, &error))?;
        if args.fill {
            let filled = fill(&file, |done, all| bar.set(done, all)).await;
            filled.map_err(|error| failure(path, &file, &error))?;
        }
        let made = DiskDrive::format(file.clone(), format).await;
        made.map_err(|error| failure(path, &file, &error))
    })?;
    let report = DriveReport::new(path, &info);
    Ok(if args.json { Output::json(&report) } else { Output::new(report.formatted()) })
}

/// Creates the file, or checks that an existing file may be overwritten and has its size.
fn prepare(args: &FormatArgs, found: &Found) -> Result<(), Failure> {
    let path = &args.path;
    match (found, args.size) {
        (_, Some(0)) => {
            Err(Failure::Refused("a drive of 0 bytes is not possible: give a larger --size".into()))
        }
        (Found::NotADisk, _) => Err(refusal(path, found, "name another file or block device")),
        (Found::Used(_), _) => Err(refusal(path, found, "stop that program, or name another")),
        (Found::Absent, Some(bytes)) => create(path, bytes).map_err(Failure::refused),
        (Found::Absent, None) => Err(Failure::Refused(format!(
            "{} does not exist: --size says how large a file to make",
            shown(path)
        ))),
        (Found::Empty, None) if is_empty_file(path) => Err(Failure::Refused(format!(
            "{} is a file of 0 bytes: --size says how large a drive to make",
            shown(path)
        ))),
        (Found::Empty, size) => fit(path, size),
        (_, size) if args.force => fit(path, size),
        (_, Some(_)) => Err(refusal(path, found, "--force overwrites it and gives it --size")),
        (_, None) => Err(refusal(path, found, "--force overwrites it")),
    }
}

fn is_empty_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() == 0)
}

/// Gives the file at `path` the requested size. A block device keeps its own size.
fn fit(path: &Path, size: Option<u64>) -> Result<(), Failure> {
    let Some(bytes) = size else { return Ok(()) };
    let file = fs::File::open(path).map_err(|error| unread(path, &error))?;
    let metadata = file.metadata().map_err(|error| unread(path, &error))?;
    if metadata.is_file() {
        check_size(path, bytes)?;
        return resize(path, bytes).map_err(Failure::refused);
    }
    let has = (&file).seek(SeekFrom::End(0)).map_err(|error| unread(path, &error))?;
    if has == bytes {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{} is a block device of {} ({has} bytes), of which a drive takes all: leave --size out",
        shown(path),
        human_bytes(has)
    )))
}

/// Blocks of 4 GiB, which is large enough for a drive.
const LARGE_BLOCKS: u64 = 1 << 20;

/// Refuses a size that is too small for a drive, before the file's data are deleted.
fn check_size(path: &Path, bytes: u64) -> Result<(), Failure> {
    let blocks = (bytes / u64::from(BLOCK_BYTES)).min(LARGE_BLOCKS);
    let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks, parallelism: 1 };
    let format = Format { id: [0; 16], secret: [0; 16], extent_bytes: None };
    let possible = DiskDrive::check_size(&MemoryBlocks::new(shape), format);
    possible.map_err(|error| Failure::Refused(format!("{}: {error}", shown(path))))
}

fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("cannot open {}: {error}", shown(path)))
}

fn refusal(path: &Path, found: &Found, advice: &str) -> Failure {
    Failure::Refused(format!("{} {found}: {advice}", shown(path)))
}

fn random() -> Result<[u8; 16], Failure> {
    use std::io::Read;
    let mut bytes = [0; 16];
    let read = fs::File::open(RANDOM).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::Broken(format!("{RANDOM} gives no random bytes: {error}")))?;
    Ok(bytes)
}
