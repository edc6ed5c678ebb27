use super::archive::Totals;
use super::destination::Destination;
use crate::path::shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How far an import has come, in a file beside the archive, so that one that was ended goes on
/// where it stopped.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    kept: Kept,
    /// Why it cannot be kept.
    problem: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Of the archive, and where it goes.
    checksum: String,
    target: String,
    /// The next block and where it begins, once there is one.
    place: Option<(u64, u64)>,
    expired: u64,
    left_out: u64,
    /// Hashes of the keys that were left out, unless they are too many.
    #[serde(default)]
    refused: BTreeSet<u64>,
    /// Some keys that were stored, which tell whether the target still has them.
    sample: Vec<Vec<u8>>,
}

/// Keys of the sample that are from the beginning; as many are the latest.
const SAMPLE_HALF: usize = 16;

/// Hashes of keys that were left out that are kept at most: all of it is written for each block.
const REFUSED_MAX: usize = 1024;

impl Journal {
    /// That of the archive at `archive`. What was kept of another archive or for another target is
    /// forgotten.
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

    /// Where the import goes on, if it was begun.
    pub(super) fn place(&self) -> Option<(u64, u64)> {
        self.kept.place
    }

    /// Tells `destination` what was not stored before that.
    pub(super) fn tell(&self, destination: &mut Destination<'_>) {
        destination.expired = self.kept.expired;
        destination.left_out.count = self.kept.left_out;
        destination.refused.clone_from(&self.kept.refused);
    }

    /// Whether it is known which keys were left out before that.
    pub(super) fn knows_left_out(&self) -> bool {
        self.kept.left_out == self.kept.refused.len() as u64
    }

    /// Some keys that were stored.
    pub(super) fn sample(&self) -> &[Vec<u8>] {
        &self.kept.sample
    }

    /// Nothing is stored any more of what was.
    pub(super) fn forget(&mut self) {
        self.kept.place = None;
        self.kept.sample.clear();
        self.kept.refused.clear();
        (self.kept.expired, self.kept.left_out) = (0, 0);
    }

    /// All before `place` is stored, but for what `destination` says, also `key`, if there is one
    /// that does not expire.
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

    /// Why it could not be kept, if so.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    /// The import has come to its end.
    pub(super) fn remove(&self) {
        // It may not be there.
        let _ = fs::remove_file(&self.path);
    }
}
