use super::archive::Totals;
use super::destination::Destination;
use crate::path::shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Progress of an import, in a file beside the archive. An interrupted import continues from there.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    kept: Kept,
    /// Why the journal cannot be saved.
    problem: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Identity of the archive and the target.
    checksum: String,
    target: String,
    /// Number and offset of the next block, after the first block.
    place: Option<(u64, u64)>,
    expired: u64,
    left_out: u64,
    /// Hashes of the skipped keys, unless they are too many.
    #[serde(default)]
    refused: BTreeSet<u64>,
    /// Some stored keys, to check whether the target still has them.
    sample: Vec<Vec<u8>>,
}

/// Keys of the sample from the start of the import; as many again are the latest.
const SAMPLE_HALF: usize = 16;

/// Most hashes of skipped keys to save: the whole journal is written after each block.
const REFUSED_MAX: usize = 1024;

impl Journal {
    /// Returns the journal of the archive at `archive`. Ignores a journal of another archive or
    /// another target.
    pub(super) fn open(archive: &Path, target: &str, totals: &Totals) -> Self {
        let mut path = archive.as_os_str().to_owned();
        path.push(".progress");
        let path = PathBuf::from(path);
        let checksum = format!("{:032x}", totals.checksum);
        let kept = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let kept = kept.filter(|kept: &Kept| kept.checksum == checksum && kept.target == target);
        let new = || Kept {
            checksum,
            target: target.to_owned(),
            place: None,
            expired: 0,
            left_out: 0,
            refused: BTreeSet::new(),
            sample: Vec::new(),
        };
        Self { path, kept: kept.unwrap_or_else(new), problem: None }
    }

    /// Returns the block at which the import continues, if it was started.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        self.kept.place
    }

    /// Tells `destination` which keys were skipped before.
    pub(super) fn tell(&self, destination: &mut Destination<'_>) {
        destination.expired = self.kept.expired;
        destination.left_out.count = self.kept.left_out;
        destination.refused.clone_from(&self.kept.refused);
    }

    /// True if it is known which keys were skipped before.
    pub(super) fn knows_left_out(&self) -> bool {
        self.kept.left_out == self.kept.refused.len() as u64
    }

    /// Returns some keys that were stored.
    pub(super) fn sample(&self) -> &[Vec<u8>] {
        &self.kept.sample
    }

    /// Forgets all progress: the target no longer has the stored keys.
    pub(super) fn forget(&mut self) {
        self.kept.place = None;
        self.kept.sample.clear();
        self.kept.refused.clear();
        (self.kept.expired, self.kept.left_out) = (0, 0);
    }

    /// Records that all blocks before `place` are stored, except what `destination` skipped; and
    /// `key`, a stored key without an expiry, if there is one.
    pub(super) fn keep(
        &mut self,
        place: (u64, u64),
        key: Option<&[u8]>,
        destination: &Destination<'_>,
    ) {
        self.kept.place = Some(place);
        self.kept.sample.extend(key.map(<[u8]>::to_vec));
        if self.kept.sample.len() > 2 * SAMPLE_HALF {
            self.kept.sample.remove(SAMPLE_HALF);
        }
        self.kept.expired = destination.expired;
        self.kept.left_out = destination.left_out.count;
        self.kept.refused.clear();
        if destination.refused.len() <= REFUSED_MAX {
            self.kept.refused.clone_from(&destination.refused);
        }
        let text = serde_json::to_vec(&self.kept).expect("it has only names as keys");
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        if let Err(error) = written {
            self.problem = Some(format!(
                "{} cannot be written ({error}), so that an import which is ended begins again",
                shown(&self.path)
            ));
        }
    }

    /// Returns why the journal could not be saved, if that failed.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    /// Deletes the journal at the end of the import.
    pub(super) fn remove(&self) {
        // The file may not exist.
        let _ = fs::remove_file(&self.path);
    }
}
