//! A whole device in a file: saved when nothing is under way, and restored by another process.
//!
//! ```text
//! | magic | format | section | section | ... | section "end" |
//! section: | name, 16 | bytes, 8 | XXH3, 8 | content |
//! ```
//! Numbers are little endian. The checksum covers name, length and content, which is in the form of
//! `postcard`. The first section says which device it is of: a state means nothing to another.
//!
//! It is not what a loss of power leaves: that is on the flash, and a device is opened from it. A
//! state holds what was in memory too, so that the device goes on as if it had never stopped.

use crate::profile::Profile;
use base::checksum::hash64;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"KVSRSTAT";
/// Raised whenever the content of a section changes its form.
const FORMAT: u32 = 1;
const NAME_BYTES: usize = 16;
const HEAD_BYTES: usize = NAME_BYTES + 16;

/// Which device a state is of.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its profile.
    pub profile: &'a Profile,
    /// Its seed.
    pub seed: u64,
    /// Whether the seed orders timers that are due at one instant.
    pub shuffle: bool,
}

/// The same in the file.
#[derive(Debug, Serialize, Deserialize)]
struct SavedOrigin {
    profile: String,
    meaning: u128,
    seed: u64,
    shuffle: bool,
}

/// What is wrong with a state, as what is said of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is another kind of file.
    #[error("is no saved device")]
    Foreign,
    /// A newer program wrote it, or an older one whose form is not read any more.
    #[error("has format {0}, but this version of kvasir reads format {FORMAT} only")]
    Format(u32),
    /// It ends too early.
    #[error("is cut off in its section {0:?}")]
    CutOff(String),
    /// It is not what was written.
    #[error("is damaged in its section {0:?}")]
    Damaged(String),
    /// It is of another device.
    #[error("is of the profile {saved}, which is not the same as {wanted} now")]
    OtherProfile {
        /// The profile that it was saved with.
        saved: String,
        /// The one that was asked for.
        wanted: String,
    },
    /// It is of a device with another seed.
    #[error("is of a device with seed {saved}, not {wanted}")]
    OtherSeed {
        /// The seed that it was saved with.
        saved: u64,
        /// The one that was asked for.
        wanted: u64,
    },
    /// It is of a device whose timers are in another order.
    #[error("is of a device with shuffle={}, not {}", u8::from(*saved), u8::from(!*saved))]
    OtherShuffle {
        /// What it was saved with.
        saved: bool,
    },
    /// The device is at work.
    #[error("cannot be written: something on the device has not come to its end")]
    Busy,
    /// Its index cannot be saved.
    #[error("cannot be written: an index of kind {0:?} cannot be saved")]
    Index(&'static str),
    /// The file cannot be read or written.
    #[error("cannot be {done}: {reason}")]
    Io {
        /// What was to be done.
        done: &'static str,
        /// Why it was not.
        reason: String,
    },
}

impl Problem {
    fn io(done: &'static str, error: &io::Error) -> Self {
        Self::Io { done, reason: error.to_string() }
    }
}

/// Writes a file by `write`. It is there as a whole, under its name, or as it was before.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let unwritable = |error: io::Error| Problem::io("written", &error);
    let mut beside: OsString = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    let written = File::create(beside).map_err(unwritable).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        let file = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
        file.sync_all().map_err(unwritable)?;
        fs::rename(beside, path).map_err(unwritable)
    });
    if written.is_err() {
        // What is left of it is in nobody's way.
        let _ = fs::remove_file(beside);
    }
    written
}

/// Opens the file at `path` for [`SavedDevice::read`](crate::SavedDevice::read). `None` when it is
/// not there.
pub fn open_file(path: &Path) -> Result<Option<impl Read + use<>>, Problem> {
    match File::open(path) {
        Ok(file) => Ok(Some(BufReader::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::io("read", &error)),
    }
}

/// Writes sections.
pub(crate) struct Writer<'a>(&'a mut dyn Write);

impl<'a> Writer<'a> {
    pub(crate) fn begin(origin: Origin<'_>, out: &'a mut dyn Write) -> Result<Self, Problem> {
        let mut writer = Self(out);
        writer.put(&MAGIC)?;
        writer.put(&FORMAT.to_le_bytes())?;
        let Origin { profile, seed, shuffle } = origin;
        let (meaning, profile) = (profile.meaning(), profile.name.clone());
        writer.section("device", &SavedOrigin { profile, meaning, seed, shuffle })?;
        Ok(writer)
    }

    pub(crate) fn section<T: Serialize>(&mut self, name: &str, content: &T) -> Result<(), Problem> {
        let content = postcard::to_stdvec(content).expect("all that is saved can be written down");
        let mut head = head(name, content.len() as u64);
        head.extend_from_slice(&checksum(&head, &content).to_le_bytes());
        self.put(&head)?;
        self.put(&content)
    }

    pub(crate) fn end(mut self) -> Result<(), Problem> {
        self.section("end", &())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        self.0.write_all(bytes).map_err(|error| Problem::io("written", &error))
    }
}

/// Reads sections, in the order in which they were written.
pub(crate) struct Reader<'a>(&'a mut dyn Read);

impl<'a> Reader<'a> {
    pub(crate) fn begin(origin: Origin<'_>, input: &'a mut dyn Read) -> Result<Self, Problem> {
        let mut reader = Self(input);
        if reader.take(MAGIC.len() as u64)? != MAGIC {
            return Err(Problem::Foreign);
        }
        let format = reader.take(4)?;
        let format = <[u8; 4]>::try_from(format).map_err(|_| Problem::Foreign)?;
        if format != FORMAT.to_le_bytes() {
            return Err(Problem::Format(u32::from_le_bytes(format)));
        }
        let saved: SavedOrigin = reader.section("device")?;
        if saved.meaning != origin.profile.meaning() {
            let wanted = origin.profile.name.clone();
            return Err(Problem::OtherProfile { saved: saved.profile, wanted });
        }
        if saved.seed != origin.seed {
            return Err(Problem::OtherSeed { saved: saved.seed, wanted: origin.seed });
        }
        if saved.shuffle != origin.shuffle {
            return Err(Problem::OtherShuffle { saved: saved.shuffle });
        }
        Ok(reader)
    }

    pub(crate) fn section<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Problem> {
        let damaged = || Problem::Damaged(name.to_owned());
        let found = self.take(HEAD_BYTES as u64)?;
        let (described, sum) = found.split_at_checked(NAME_BYTES + 8).unwrap_or_default();
        let Ok(sum) = <[u8; 8]>::try_from(sum) else {
            return Err(Problem::CutOff(name.to_owned()));
        };
        let len = described[NAME_BYTES..].try_into().map(u64::from_le_bytes);
        let len = len.map_err(|_| damaged())?;
        if described != head(name, len) {
            return Err(damaged());
        }
        let content = self.take(len)?;
        if content.len() as u64 != len {
            return Err(Problem::CutOff(name.to_owned()));
        }
        if checksum(described, &content).to_le_bytes() != sum {
            return Err(damaged());
        }
        postcard::from_bytes(&content).map_err(|_| damaged())
    }

    pub(crate) fn end(mut self) -> Result<(), Problem> {
        self.section::<()>("end")?;
        let rest = self.take(1)?;
        if rest.is_empty() { Ok(()) } else { Err(Problem::Damaged("end".to_owned())) }
    }

    /// The next `len` bytes, or as many as there are.
    fn take(&mut self, len: u64) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        let read = (&mut *self.0).take(len).read_to_end(&mut bytes);
        read.map_err(|error| Problem::io("read", &error))?;
        Ok(bytes)
    }
}

/// The name and length of a section.
fn head(name: &str, len: u64) -> Vec<u8> {
    let mut head = name.as_bytes().to_vec();
    assert!(head.len() <= NAME_BYTES, "names of sections are short");
    head.resize(NAME_BYTES, 0);
    head.extend_from_slice(&len.to_le_bytes());
    head
}

fn checksum(head: &[u8], content: &[u8]) -> u64 {
    hash64(&[head, &hash64(content).to_le_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert!(open_file(&path).unwrap().is_none());
        let put = |bytes: &'static [u8], end: Result<(), Problem>| {
            write_file(&path, |out| {
                out.write_all(bytes).unwrap();
                end
            })
        };
        put(b"the first", Ok(())).unwrap();
        assert_eq!(put(b"the seco", Err(Problem::Busy)), Err(Problem::Busy));
        assert_eq!(fs::read(&path).unwrap(), b"the first");
        put(b"the third", Ok(())).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the third");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        let nowhere = write_file(&path.join("x"), |_| Ok(())).unwrap_err().to_string();
        assert!(nowhere.starts_with("cannot be written: "), "{nowhere}");
    }
}
