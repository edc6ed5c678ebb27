use super::signature::Signature;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes at the start and at the end that are zeros if a disk is empty, and places in between that
/// are, with so many bytes each: to read all of a disk would take hours.
const FRONT_BYTES: u64 = 1 << 20;
const SAMPLES: u64 = 1_024;
const SAMPLE_BYTES: u64 = 4_096;

/// A file or a block device, read at selected places.
pub(super) struct Disk<'a> {
    file: &'a File,
    pub(super) len: u64,
}

impl<'a> Disk<'a> {
    /// Returns the disk in this file.
    pub(super) fn of(mut file: &'a File) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, len })
    }

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
    pub(super) fn find(&self, signature: &Signature) -> io::Result<Option<u64>> {
        for at in signature.places(self.len) {
            if self.has(at, signature.magic)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// True when all sampled places are zeros: both ends, and places in between.
    pub(super) fn is_blank(&self) -> io::Result<bool> {
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
