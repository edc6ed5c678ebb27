use super::disk::Disk;
use super::found::Found;
use super::partitions::partitions;
use super::signature::{SIGNATURES, Signature};
use std::fs::File;
use std::io;

/// Returns the content of a file or a block device.
pub(super) fn content(file: &File) -> io::Result<Found> {
    let disk = Disk::of(file)?;
    let kvasir = Signature { at: &[drive::MAGIC_AT], magic: &drive::MAGIC, what: "" };
    let mut found = disk.find(&kvasir)?.map(|at| (at, Found::Kvasir));
    let mut note = |at: u64, what: Found| {
        if found.as_ref().is_none_or(|(first, _)| at < *first) {
            found = Some((at, what));
        }
    };
    for signature in SIGNATURES {
        if let Some(at) = disk.find(signature)? {
            note(at, Found::Known(signature.what));
        }
    }
    if let Some((at, table)) = partitions(&disk)? {
        note(at, Found::Partitions(table));
    }
    match found {
        Some((_, found)) => Ok(found),
        None if disk.is_blank()? => Ok(Found::Empty),
        None => Ok(Found::Unknown),
    }
}

/// Returns the content of another system on a former drive: the first superblock is missing and a
/// known signature is present. `None` also if no known signature is present.
pub(super) fn foreign(file: &File) -> io::Result<Option<Found>> {
    if Disk::of(file)?.has(drive::MAGIC_AT, &drive::MAGIC)? {
        return Ok(None);
    }
    let found = content(file)?;
    Ok(matches!(found, Found::Known(_) | Found::Partitions(_)).then_some(found))
}
