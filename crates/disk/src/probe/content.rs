use super::Found;
use super::partitions::partitions;
use super::signature::{SIGNATURES, Signature};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes at the start and at the end that are zeros if a disk is empty, and places in between that
/// are, with so many bytes each: to read all of a disk would take hours.
const FRONT_BYTES: u64 = 1 << 20;
const SAMPLES: u64 = 1_024;
const SAMPLE_BYTES: u64 = 4_096;

/// Returns the content of a file or a block device.
pub(super) fn content(mut file: &File) -> io::Result<Found> {
    let len = file.seek(SeekFrom::End(0))?;
    let disk = Disk { file, len };
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
pub(super) fn foreign(mut file: &File) -> io::Result<Option<Found>> {
    let len = file.seek(SeekFrom::End(0))?;
    if (Disk { file, len }).has(drive::MAGIC_AT, &drive::MAGIC)? {
        return Ok(None);
    }
    let found = content(file)?;
    Ok(matches!(found, Found::Known(_) | Found::Partitions(_)).then_some(found))
}

/// A file or a block device, read at selected places.
pub(super) struct Disk<'a> {
    file: &'a File,
    pub(super) len: u64,
}

impl Disk<'_> {
    /// Returns the bytes from `at` on, unless the disk ends before.
    pub(super) fn bytes<const LEN: usize>(&self, at: u64) -> io::Result<Option<[u8; LEN]>> {
        if at.checked_add(LEN as u64).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let mut bytes = [0; LEN];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(Some(bytes))
    }

    pub(super) fn has(&self, at: u64, magic: &[u8]) -> io::Result<bool> {
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..magic.len()];
        if at.checked_add(magic.len() as u64).is_none_or(|end| end > self.len) {
            return Ok(false);
        }
        self.file.read_exact_at(bytes, at)?;
        Ok(bytes == magic)
    }

    /// Returns the first place that has the signature.
    fn find(&self, signature: &Signature) -> io::Result<Option<u64>> {
        for at in signature.places(self.len) {
            if self.has(at, signature.magic)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// True when all sampled places are zeros: both ends, and places in between.
    fn is_blank(&self) -> io::Result<bool> {
        let ends = [0..FRONT_BYTES, self.len.saturating_sub(FRONT_BYTES)..self.len];
        for end in ends {
            if !self.is_zero(end)? {
                return Ok(false);
            }
        }
        for sample in 1..SAMPLES {
            let at = (self.len / SAMPLES * sample) & !(SAMPLE_BYTES - 1);
            if !self.is_zero(at..at + SAMPLE_BYTES)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True when these bytes are zeros, as far as the disk has them.
    fn is_zero(&self, range: Range<u64>) -> io::Result<bool> {
        const STEP: u64 = 64 << 10;
        let mut bytes = vec![0; usize::try_from(STEP).expect("it is small")];
        for at in (range.start..range.end.min(self.len)).step_by(bytes.len()) {
            let here = (range.end.min(self.len) - at).min(STEP);
            let here = usize::try_from(here).expect("it is small");
            self.file.read_exact_at(&mut bytes[..here], at)?;
            if bytes[..here].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
