use super::fill::fill;
use super::report::DriveReport;
use super::{failure, serve};
use crate::args::FormatArgs;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Progress, Unit};
use disk::{Access, File, Found, create, probe};
use media::Format;
use node::DiskDrive;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Where Linux has random bytes.
const RANDOM: &str = "/dev/urandom";

/// Makes the drive that `args` describe.
pub(crate) fn run(args: &FormatArgs) -> Result<Output, Failure> {
    let path = &args.path;
    let found = probe(path).map_err(Failure::refused)?;
    prepare(args, &found)?;
    let made = make(args);
    if made.is_err() && matches!(found, Found::Absent) {
        // It is ours, and no drive.
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

/// Makes the file, or sees to it that what is there may be overwritten.
fn prepare(args: &FormatArgs, found: &Found) -> Result<(), Failure> {
    let path = &args.path;
    match (found, args.size) {
        (Found::Absent, Some(0)) => {
            Err(Failure::Refused("a file of 0 bytes is no drive: make it larger".into()))
        }
        (Found::NotADisk, _) | (Found::Used(_), None) => {
            Err(refusal(path, found, "name another file or block device"))
        }
        (Found::Absent, Some(bytes)) => create(path, bytes).map_err(Failure::refused),
        (Found::Absent, None) => Err(Failure::Refused(format!(
            "{} does not exist: --size says how large a file to make",
            shown(path)
        ))),
        (Found::Empty, _) if fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() == 0) => {
            Err(Failure::Refused(format!(
                "{} is a file of 0 bytes: remove it, and --size says how large a one to make",
                shown(path)
            )))
        }
        (_, Some(_)) => Err(Failure::Refused(format!(
            "{} is there and has a size: leave --size out",
            shown(path)
        ))),
        (Found::Empty, None) => Ok(()),
        (_, None) if args.force => Ok(()),
        (_, None) => Err(refusal(path, found, "--force overwrites it")),
    }
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
