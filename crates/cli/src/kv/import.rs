//! `kvasir kv import`: stores the pairs of a file in a database of a Redis server.

use super::archive::{ArchiveError, Reader, Record};
use super::database::database;
use super::destination::Destination;
use super::journal::Journal;
use super::moved::{LeftOut, Moved};
use super::verify;
use crate::args::ImportArgs;
use crate::output::{Failure, Output};
use crate::path::shown;
use crate::progress::{Bar, Progress, Unit};
use crate::redis;
use std::fs::File;
use std::path::Path;

/// Runs the import that `args` describe.
pub(super) fn run(args: &ImportArgs) -> Result<Output, Failure> {
    let uri = database(&args.target)?;
    let path = &args.file;
    let file = File::open(path);
    let file = file.map_err(|error| unreadable(path, &ArchiveError::Read(error)))?;
    let size = file.metadata().map_or(0, |found| found.len());
    let mut reader = Reader::open(file).map_err(|error| unreadable(path, &error))?;
    let totals = reader.totals().map_err(|error| unreadable(path, &error))?;
    let target = uri.to_string();
    let mut journal = Journal::open(path, &target, &totals);
    let mut is_resumed = false;
    let progress = Progress::new(args.json);
    let mut bar = progress.bar("importing", Unit::Bytes);
    let ((expired, left_out), differing) = redis::with(&uri, async |connections| {
        let mut destination = Destination::new(&uri, &connections[0], args.skip);
        // Start again if the skipped keys are unknown. Otherwise the comparison would report them
        // as missing, and later parts of a skipped hash would be stored.
        if !journal.knows_left_out() || !destination.has_all(journal.sample()).await? {
            journal.forget();
        }
        if let Some((number, at)) = journal.place() {
            reader.go_on(number, at).map_err(|error| unreadable(path, &error))?;
            journal.tell(&mut destination);
            is_resumed = true;
        }
        copy(&mut reader, &mut destination, &mut journal, |at| bar.set(at, size), path).await?;
        if !args.verify {
            return Ok(((destination.expired, destination.left_out), None));
        }
        let mut bar = progress.bar("verifying", Unit::Bytes);
        let differing = compare(&mut reader, &destination, &mut bar, size, path).await?;
        Ok(((destination.expired, destination.left_out), Some(differing)))
    })?;
    drop(bar);
    journal.remove();
    let moved =
        Moved { target, file: shown(path), totals, left_out: left_out.count, expired, is_resumed };
    let mut facts: Vec<_> = left_out.fact().into_iter().collect();
    facts.extend(journal.problem().map(|problem| ("progress", problem)));
    if differing.as_ref().is_some_and(|differing| differing.count == 0) {
        let what = if left_out.count > 0 { "all else" } else { "all" };
        facts.push(("verified", format!("{what} matches the file")));
    }
    let errors = differing.filter(|differing| differing.count > 0).map(|differing| {
        format!("{} keys differ from the file: {}", differing.count, differing.listed())
    });
    Ok(moved.output("imported into", args.json, facts).with_errors(errors))
}

/// Stores all entries that `reader` has left.
async fn copy(
    reader: &mut Reader,
    destination: &mut Destination<'_>,
    journal: &mut Journal,
    mut is_at: impl FnMut(u64),
    path: &Path,
) -> Result<(), Failure> {
    loop {
        let records = match reader.next() {
            Ok(Some(records)) => records,
            Ok(None) => return Ok(()),
            Err(error) => return Err(unreadable(path, &error)),
        };
        let entries: Vec<_> = records.iter().filter_map(Record::entry).collect();
        destination.store(&entries).await?;
        let stays = entries.iter().find(|entry| {
            entry.expires.is_none() && entry.is_last && !destination.lacks(entry.key.0)
        });
        let stays = stays.map(|entry| entry.key.0.to_vec());
        let place = reader.place();
        journal.keep(place, stays.as_deref(), destination);
        is_at(place.1);
    }
}

/// Compares the database with all entries of `reader`.
async fn compare(
    reader: &mut Reader,
    destination: &Destination<'_>,
    bar: &mut Bar,
    size: u64,
    path: &Path,
) -> Result<LeftOut, Failure> {
    let said = |error| unreadable(path, &error);
    reader.restart().map_err(said)?;
    let mut differing = LeftOut::default();
    while let Some(records) = reader.next().map_err(said)? {
        let entries: Vec<_> = records.iter().filter_map(Record::entry).collect();
        verify::compare(destination, &entries, &mut differing).await?;
        bar.set(reader.place().1, size);
    }
    Ok(differing)
}

fn unreadable(path: &Path, error: &ArchiveError) -> Failure {
    let hint = match error {
        ArchiveError::Unfinished => {
            "; run the same kvasir kv export again to complete it".to_owned()
        }
        ArchiveError::Damaged { .. } | ArchiveError::DamagedEnd { .. } => {
            "; export again, into another file".to_owned()
        }
        ArchiveError::Longer { len } => format!("; truncate -s {len} cuts that off"),
        _ => String::new(),
    };
    Failure::Refused(format!("{} cannot be imported: {error}{hint}", shown(path)))
}
