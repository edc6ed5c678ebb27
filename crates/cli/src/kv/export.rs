//! `kvasir kv export`: copies a database of a Redis server into a file.

use super::archive::{ArchiveError, Reader, Record, Totals, Writer};
use super::database::database;
use super::moved::Moved;
use super::source::Source;
use crate::args::ExportArgs;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Bar, Progress, Unit};
use crate::redis;
use resp_client::Uri;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::Path;

/// Runs the export that `args` describe.
pub(super) fn run(args: &ExportArgs) -> Result<Output, Failure> {
    let uri = database(&args.target)?;
    let was_there = args.file.exists();
    let moved = export(args, &uri);
    if moved.is_err() && !was_there && args.file.metadata().is_ok_and(|found| found.len() == 0) {
        // This call created the file, and it has no cursor at which to continue.
        let _ = std::fs::remove_file(&args.file);
    }
    moved
}

fn export(args: &ExportArgs, uri: &Uri) -> Result<Output, Failure> {
    let file = open(&args.file)?;
    let mut bar = Progress::new(args.json).bar("exporting", Unit::Count);
    let (totals, left_out, is_resumed, size) = redis::with(uri, async |connections| {
        let server = &connections[0];
        let info = redis::info(uri, server).await?;
        let started = Started::of(uri, &info, file, &args.file)?;
        let mut source = Source::new(uri, server, args.skip);
        let is_resumed = started.cursor.is_some();
        let totals = copy(&mut source, started, &mut bar, &args.file).await?;
        let size = source.size().await?;
        Ok((totals, source.left_out, is_resumed, size))
    })?;
    drop(bar);
    let moved = Moved {
        target: uri.to_string(),
        file: shown(&args.file),
        totals,
        left_out: left_out.count,
        expired: 0,
        is_resumed,
    };
    let facts = difference(&moved, args.skip, size).into_iter().chain(left_out.fact()).collect();
    Ok(moved.output("exported from", args.json, facts))
}

/// Opens the file, which is empty or from an interrupted export.
fn open(path: &Path) -> Result<File, Failure> {
    let failure =
        |error: io::Error| Failure::Refused(format!("{} cannot be written: {error}", shown(path)));
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(failure)?;
    if !file.metadata().map_err(failure)?.is_file() {
        return Err(failure(ErrorKind::InvalidInput.into()));
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| Failure::Refused(format!("another export is writing {}", shown(path))))?;
    Ok(file)
}

/// An open archive, and the cursor at which the listing continues.
struct Started {
    writer: Writer,
    cursor: Option<u64>,
}

impl Started {
    fn of(uri: &Uri, info: &str, mut file: File, path: &Path) -> Result<Self, Failure> {
        let target = Uri { connections: 1, ..uri.clone() }.to_string();
        // Cursors of a Kvasir server are positions in a fixed order, so they stay valid.
        let is_ours = redis::fact(info, "kvasir_version:").is_some();
        let run = redis::fact(info, "run_id:").filter(|_| !is_ours).unwrap_or_default();
        let refused = |why: String| {
            Failure::Refused(format!("{} {why}; remove it, or name another file", shown(path)))
        };
        let unreadable = |error| refused(format!("is not empty, and {error}"));
        let len = file.metadata().map_err(|error| unreadable(error.into()))?.len();
        if len > 0 {
            let left = Left::read(file, &target, run);
            match left.map_err(|why| match why {
                NotLeft::Archive(error) => unreadable(error),
                NotLeft::Whole => refused("holds a complete export".to_owned()),
                NotLeft::Other(from) => refused(format!("holds an export from {from}")),
                NotLeft::Restarted => refused(
                    "was begun before the server was restarted, which now lists keys in another \
                     order"
                        .to_owned(),
                ),
            })? {
                Ok(started) => return Ok(started),
                // The file has no cursor: start again.
                Err(empty) => file = empty,
            }
        }
        let source = Record::Source { target: &target, run };
        let begun = file.set_len(0).and_then(|()| file.rewind());
        let writer = begun.and_then(|()| Writer::begin(file, &source));
        let writer = writer.map_err(|error| unwritable(path, &error))?;
        Ok(Self { writer, cursor: None })
    }
}

/// The state of an interrupted export.
struct Left;

/// Why an export cannot continue in a file.
enum NotLeft {
    Archive(ArchiveError),
    Whole,
    Other(String),
    Restarted,
}

impl From<ArchiveError> for NotLeft {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}

impl Left {
    /// Reads `file` up to the last cursor at which the listing can be continued, and truncates it
    /// there. Returns the file if there is no such cursor.
    fn read(file: File, target: &str, run: &str) -> Result<Result<Started, File>, NotLeft> {
        let mut reader = Reader::open(file.try_clone().map_err(ArchiveError::Read)?)?;
        // A complete archive with damage must not be overwritten.
        if reader.has_footer() {
            reader.totals()?;
            return Err(NotLeft::Whole);
        }
        let (mut totals, mut last) = (Totals::default(), None);
        loop {
            let records = match reader.next() {
                Ok(Some(records)) => records,
                Ok(None) => return Err(NotLeft::Whole),
                // The export was interrupted while it wrote this block.
                Err(ArchiveError::Unfinished | ArchiveError::Damaged { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            let mut cursor = None;
            for record in &records {
                match record {
                    Record::Source { target: from, .. } if *from != target => {
                        return Err(NotLeft::Other((*from).to_owned()));
                    }
                    Record::Source { run: of, .. } if *of != run => return Err(NotLeft::Restarted),
                    Record::Entry(entry) => totals.add(entry),
                    Record::Cursor(at) => cursor = Some(*at),
                    Record::Source { .. } | Record::End(_) => {}
                }
            }
            if let Some(cursor) = cursor {
                last = Some((cursor, reader.place(), totals));
            }
        }
        let Some((cursor, (number, at), totals)) = last else { return Ok(Err(file)) };
        let cut = file.set_len(at).and_then(|()| (&file).seek(SeekFrom::End(0)));
        cut.map_err(ArchiveError::Read)?;
        Ok(Ok(Started { writer: Writer::go_on(file, number, at, totals), cursor: Some(cursor) }))
    }
}

async fn copy(
    source: &mut Source<'_>,
    started: Started,
    bar: &mut Bar,
    path: &Path,
) -> Result<Totals, Failure> {
    let Started { mut writer, cursor } = started;
    let size = source.size().await?;
    let mut at = cursor.unwrap_or(0);
    // The listing was complete, only the footer is missing.
    let mut is_over = cursor == Some(0);
    while !is_over {
        at = source.step(at, &mut writer).await?;
        writer.cursor(at).map_err(|error| unwritable(path, &error))?;
        bar.set(writer.totals().keys(), size);
        is_over = at == 0;
    }
    writer.end().map_err(|error| unwritable(path, &error))
}

/// Returns the fact to print if the server has another number of keys.
fn difference(moved: &Moved, skips: bool, size: u64) -> Option<(&'static str, String)> {
    let found = moved.totals.keys() + moved.left_out;
    // The difference may be keys that an earlier run skipped; the file does not record them.
    let may_be_left_out = moved.is_resumed && skips && size > found;
    (found != size && !may_be_left_out).then(|| {
        ("server changed", format!("the server has {size} keys now, and {found} were listed"))
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Broken(format!("{} cannot be written: {error}", shown(path)))
}
