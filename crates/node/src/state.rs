//! Saves a whole idle device to a file, from which another process restores it.
//!
//! ```text
//! | magic | format | section | section | ... | section "end" |
//! section: | name, 16 | bytes, 8 | XXH3, 8 | content |
//! ```
//! Numbers are little endian. The checksum covers name, length and content, which is in `postcard`
//! format. The first section names the device: a state is valid for that device only.
//!
//! After a loss of power only the flash is left, and the device is opened from that. A saved state
//! also holds the device's memory, so that the device continues as if it had never stopped.
//!
//! One run at a time opens a [`StateFile`]. While a run with a new device is in progress, and after
//! it was interrupted, the file holds only the magic: it has no state yet. A device that answers
//! hosts makes its saved state out of date. So its file is marked as in use, and a later run that
//! finds the mark reports the device as lost.
//!
//! ```text
//! mark: | magic "KVSRUSED" | incarnation, 8 | XXH3 of these 16 bytes, 8 |
//! ```
//! The *incarnation* of a device is how often its content was lost. Format 6 has it in a section
//! behind the first one; a device of incarnation 0 is written in format 5, which has none.

use crate::profile::Profile;
use base::checksum::hash64;
use engine::IndexConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const MAGIC: [u8; 8] = *b"KVSRSTAT";
/// The beginning of the file of a device in use. Earlier versions wrote nothing more.
const IN_USE: [u8; 8] = *b"KVSRUSED";
/// Bytes of the mark, which all lie in one sector of a disk.
const MARK_BYTES: usize = IN_USE.len() + 16;
/// Format version: raise it when a section changes its format, and keep reading this one. The test
/// `black_box/old.rs` has files of it.
const FORMAT: u32 = 5;
/// The same with the section "incarnation".
const FORMAT_WITH_INCARNATION: u32 = 6;
/// Many times what a check needs to look at a lock.
const CHECK_MAX: Duration = Duration::from_millis(50);
const NAME_BYTES: usize = 16;
const HEAD_BYTES: usize = NAME_BYTES + 16;

/// The device of a state.
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
    /// The description of its index, if any.
    index: String,
    meaning: u128,
    seed: u64,
    shuffle: bool,
}

/// The error of a state. Displays as a predicate of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is of another kind.
    #[error("is not a saved device")]
    Foreign,
    /// A newer program wrote it, or an older one in a format that this version does not read.
    #[error(
        "has format {0}, but this version of kvasir reads formats {FORMAT} and \
         {FORMAT_WITH_INCARNATION} only"
    )]
    Format(u32),
    /// The file ends too early.
    #[error("ends in the middle of its section {0:?}")]
    CutOff(String),
    /// A checksum is wrong.
    #[error("is damaged in its section {0:?}")]
    Damaged(String),
    /// It is of another device.
    #[error("is of the profile {saved}, which is not the same as {wanted} now")]
    OtherProfile {
        /// The profile that it was saved with.
        saved: String,
        /// The requested one.
        wanted: String,
    },
    /// It is of a device with another index.
    #[error("is of a device whose index is {saved}, not {wanted}")]
    OtherIndex {
        /// The index that it was saved with, in words.
        saved: String,
        /// The requested one.
        wanted: String,
    },
    /// It is of a device with another seed.
    #[error("is of a device with seed {saved}, not {wanted}")]
    OtherSeed {
        /// The seed that it was saved with.
        saved: u64,
        /// The requested one.
        wanted: u64,
    },
    /// It is of a device whose timers are in another order.
    #[error("is of a device with shuffle={}, not {}", u8::from(*saved), u8::from(!*saved))]
    OtherShuffle {
        /// What it was saved with.
        saved: bool,
    },
    /// An operation of the device is in flight.
    #[error("cannot be written: an operation of the device has not ended")]
    Busy,
    /// Its index cannot be saved.
    #[error("cannot be written: an index of kind {0:?} cannot be saved")]
    Index(&'static str),
    /// The server of the device was killed while hosts used it.
    #[error("was in use when its server was killed, so its content is lost: remove the file")]
    Lost,
    /// Its parts do not form a device.
    #[error("has parts of different devices")]
    Mixed,
    /// Another process has locked it.
    #[error("is in use by another run")]
    InUse,
    /// The path is a folder, a pipe or a device.
    #[error("is not a regular file")]
    NoFile,
    /// The file cannot be read or written.
    #[error("cannot be {done}: {reason}")]
    Io {
        /// The operation.
        done: &'static str,
        /// The system's error.
        reason: String,
    },
}

impl Problem {
    fn io(done: &'static str, error: &io::Error) -> Self {
        Self::Io { done, reason: error.to_string() }
    }
}

/// The locked file of a state.
#[derive(Debug)]
pub struct StateFile {
    /// Its path with symbolic links resolved.
    path: PathBuf,
    /// Holds the lock.
    file: File,
    /// Whether there is no state in it yet.
    is_new: bool,
    /// The incarnation of the device that was lost, if the file was in use.
    lost: Option<u64>,
}

impl StateFile {
    /// Opens and locks the file at `path`. Creates a missing file, which is removed again if this
    /// is dropped without a state in it.
    ///
    /// Fails with [`Problem::InUse`] if another process has locked it, and with [`Problem::NoFile`]
    /// if it is not a regular file.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        loop {
            if let Some(opened) = Self::try_open(path)? {
                return Ok(opened);
            }
        }
    }

    /// Returns `None` if another process replaced the file between the open and the lock.
    fn try_open(path: &Path) -> Result<Option<Self>, Problem> {
        let unreadable = |error: io::Error| Problem::io("read", &error);
        match fs::metadata(path) {
            Ok(found) if !found.is_file() => return Err(Problem::NoFile),
            Err(error) if error.kind() == ErrorKind::NotFound => match begin(path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(Problem::io("written", &error));
                }
                _ => {}
            },
            _ => {}
        }
        let path = path.canonicalize().map_err(unreadable)?;
        let file = File::open(&path).map_err(unreadable)?;
        lock(&file)?;
        let held = file.metadata().map_err(unreadable)?;
        let is_there =
            fs::metadata(&path).is_ok_and(|it| (it.dev(), it.ino()) == (held.dev(), held.ino()));
        let mut begins = Vec::new();
        let is_short = held.len() == MAGIC.len() as u64;
        // A file that cannot be read has no known beginning: its reader fails too.
        let read = (&file).take(MARK_BYTES as u64).read_to_end(&mut begins);
        let _ = read.and_then(|_| (&file).rewind());
        let (is_new, lost) = (is_short && begins == MAGIC, incarnation_of(&begins));
        Ok(is_there.then_some(Self { path, file, is_new, lost }))
    }

    /// Returns the incarnation of its device, if that was lost: see [`Self::mark_in_use`].
    pub fn lost(&self) -> Option<u64> {
        self.lost
    }

    /// Returns the incarnation in which a server would start the device of `origin` from the file
    /// at `path`, and changes nothing. If a server uses the file, it is the incarnation that the
    /// server saves when it stops.
    pub fn next_incarnation(path: &Path, origin: Origin<'_>) -> Result<u64, Problem> {
        let unreadable = |error: io::Error| Problem::io("read", &error);
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Ok(found) if !found.is_file() => return Err(Problem::NoFile),
            _ => {}
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let is_used = is_locked(&file)?;
        let mut begins = Vec::new();
        (&file).take(MARK_BYTES as u64).read_to_end(&mut begins).map_err(unreadable)?;
        if begins == MAGIC {
            return Ok(0);
        }
        if let Some(marked) = incarnation_of(&begins) {
            return Ok(if is_used { marked } else { marked.saturating_add(1) });
        }
        file.rewind().map_err(unreadable)?;
        Ok(Reader::begin(origin, &mut BufReader::new(file))?.incarnation)
    }

    /// Marks the file as in use until the next save, because hosts are about to change the device,
    /// which is of this incarnation. A run that finds the mark knows that the device was lost.
    pub fn mark_in_use(&mut self, incarnation: u64) -> Result<(), Problem> {
        let unwritable = |error: io::Error| Problem::io("written", &error);
        let mark = || {
            let mut file = OpenOptions::new().write(true).open(&self.path)?;
            file.write_all(&mark_of(incarnation))?;
            // Write the mark first: it is valid whatever follows it in the file.
            file.sync_all()?;
            file.set_len(MARK_BYTES as u64)?;
            let folder = self.path.parent().unwrap_or(Path::new("/"));
            File::open(folder)?.sync_all()
        };
        mark().map_err(unwritable)?;
        self.is_new = false;
        Ok(())
    }

    /// Returns a reader for [`SavedDevice::read`](crate::SavedDevice::read) and its length in
    /// bytes. Returns `None` if the file has no state yet, and [`Problem::Lost`] if it is marked as
    /// in use.
    pub fn reader(&self) -> Result<Option<(impl Read + use<>, u64)>, Problem> {
        if self.is_new {
            return Ok(None);
        }
        if self.lost.is_some() {
            return Err(Problem::Lost);
        }
        let unreadable = |error: io::Error| Problem::io("read", &error);
        let bytes = self.file.metadata().map_err(unreadable)?.len();
        let file = self.file.try_clone().map_err(unreadable)?;
        Ok(Some((BufReader::new(file), bytes)))
    }

    /// Replaces the content with that of `write`, atomically: a failure leaves the old content.
    pub fn replace(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let unwritable = |error: io::Error| Problem::io("written", &error);
        let (beside, file) = create_beside(&self.path).map_err(unwritable)?;
        let written = self.file.metadata().map_err(unwritable).and_then(|before| {
            file.set_permissions(before.permissions()).map_err(unwritable)?;
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            let file = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
            file.sync_all().map_err(unwritable)?;
            fs::rename(&beside, &self.path).map_err(unwritable)
        });
        match written {
            Ok(()) => self.is_new = false,
            // Best effort: a leftover temporary file does no harm.
            Err(_) => drop(fs::remove_file(beside)),
        }
        written
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if self.is_new {
            // Best effort: a leftover file has no state and is treated as new.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates the file of a new state.
fn begin(path: &Path) -> io::Result<()> {
    File::create_new(path)?.write_all(&MAGIC)
}

/// Returns the mark of a device in use.
fn mark_of(incarnation: u64) -> Vec<u8> {
    let mut mark = IN_USE.to_vec();
    mark.extend(incarnation.to_le_bytes());
    mark.extend(hash64(&mark).to_le_bytes());
    assert_eq!(mark.len(), MARK_BYTES);
    mark
}

/// Locks the file of a device for this process. Tries again for [`CHECK_MAX`]: a check may look at
/// the lock.
fn lock(file: &File) -> Result<(), Problem> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < CHECK_MAX => {
                sleep(Duration::from_millis(1));
            }
            Err(TryLockError::WouldBlock) => return Err(Problem::InUse),
            Err(TryLockError::Error(error)) => return Err(Problem::io("locked", &error)),
        }
    }
}

/// Returns whether another process has locked the file.
fn is_locked(file: &File) -> Result<bool, Problem> {
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false).map_err(|error| Problem::io("unlocked", &error)),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(Problem::io("locked", &error)),
    }
}

/// Returns the incarnation in the mark of a file that begins with these bytes, or `None` without a
/// mark. It is 0 in the mark of an earlier version, which other bytes may follow.
fn incarnation_of(begins: &[u8]) -> Option<u64> {
    let number = begins.strip_prefix(&IN_USE)?.first_chunk();
    let incarnation = number.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    Some(if begins == mark_of(incarnation) { incarnation } else { 0 })
}

/// Creates a temporary file in the folder of `path`.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    let mut number = 0_u64;
    loop {
        let beside = path.with_file_name(format!(".kvasir-{process}-{number}.new"));
        match File::create_new(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Writes sections.
pub(crate) struct Writer<'a>(&'a mut dyn Write);

impl<'a> Writer<'a> {
    pub(crate) fn begin(
        origin: Origin<'_>,
        incarnation: u64,
        out: &'a mut dyn Write,
    ) -> Result<Self, Problem> {
        let mut writer = Self(out);
        writer.put(&MAGIC)?;
        let format = if incarnation == 0 { FORMAT } else { FORMAT_WITH_INCARNATION };
        writer.put(&format.to_le_bytes())?;
        let Origin { profile, seed, shuffle } = origin;
        let (meaning, index) = (profile.meaning(), index_of(profile));
        let profile = profile.name.clone();
        writer.section("device", &SavedOrigin { profile, index, meaning, seed, shuffle })?;
        if incarnation > 0 {
            writer.section("incarnation", &incarnation)?;
        }
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
pub(crate) struct Reader<'a> {
    input: &'a mut dyn Read,
    /// The incarnation of the device.
    pub(crate) incarnation: u64,
}

impl<'a> Reader<'a> {
    pub(crate) fn begin(origin: Origin<'_>, input: &'a mut dyn Read) -> Result<Self, Problem> {
        let mut reader = Self { input, incarnation: 0 };
        if reader.take(MAGIC.len() as u64)? != MAGIC {
            return Err(Problem::Foreign);
        }
        let format = reader.take(4)?;
        let format = <[u8; 4]>::try_from(format).map_err(|_| Problem::Foreign)?;
        let format = u32::from_le_bytes(format);
        if ![FORMAT, FORMAT_WITH_INCARNATION].contains(&format) {
            return Err(Problem::Format(format));
        }
        let saved: SavedOrigin = reader.section("device")?;
        if saved.meaning != origin.profile.meaning() {
            let (wanted, index) = (origin.profile.name.clone(), index_of(origin.profile));
            if saved.profile == wanted && saved.index != index {
                return Err(Problem::OtherIndex { saved: saved.index, wanted: index });
            }
            return Err(Problem::OtherProfile { saved: saved.profile, wanted });
        }
        if saved.seed != origin.seed {
            return Err(Problem::OtherSeed { saved: saved.seed, wanted: origin.seed });
        }
        if saved.shuffle != origin.shuffle {
            return Err(Problem::OtherShuffle { saved: saved.shuffle });
        }
        if format == FORMAT_WITH_INCARNATION {
            reader.incarnation = reader.section("incarnation")?;
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

    /// Returns the next `len` bytes, or fewer at the end of the file.
    fn take(&mut self, len: u64) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        let read = (&mut *self.input).take(len).read_to_end(&mut bytes);
        read.map_err(|error| Problem::io("read", &error))?;
        Ok(bytes)
    }
}

/// Returns the name of the index of `profile`, as a target names it.
fn index_of(profile: &Profile) -> String {
    let Some(index) = &profile.index else { return "none".to_owned() };
    if !index.has_budget() {
        return index.kind.to_owned();
    }
    let IndexConfig { dram_bytes, keys_max } = index.config(profile.kv_bytes());
    format!("{} with dram={dram_bytes} and keys={keys_max}", index.kind)
}

/// Returns the encoded name and length of a section.
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
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn put(path: &Path, bytes: &[u8], end: Result<(), Problem>) -> Result<(), Problem> {
        StateFile::open(path)?.replace(|out| {
            out.write_all(bytes).unwrap();
            end
        })
    }

    #[test]
    fn a_device_in_use_is_lost_unless_it_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        // A new one, and one that is there.
        for incarnation in [0, 7] {
            let mut file = StateFile::open(&path).unwrap();
            assert_eq!(file.lost(), None);
            file.mark_in_use(incarnation).unwrap();
            drop(file);
            let file = StateFile::open(&path).unwrap();
            assert_eq!(file.lost(), Some(incarnation));
            assert!(matches!(file.reader(), Err(Problem::Lost)));
            file.replace(|out| out.write_all(b"a state").map_err(|_| Problem::Busy)).unwrap();
        }
        // The machine stopped before the rest was cut off.
        fs::write(&path, [&mark_of(7)[..], b"the rest"].concat()).unwrap();
        assert_eq!(StateFile::open(&path).unwrap().lost(), Some(7));
        let mut file = StateFile::open(&path).unwrap();
        file.mark_in_use(8).unwrap();
        assert_eq!(fs::read(&path).unwrap(), mark_of(8));
        assert_eq!(StateFile::open(&path).unwrap_err(), Problem::InUse, "the lock is kept");
        assert_eq!(file.replace(|_| Err(Problem::Busy)), Err(Problem::Busy));
        assert_eq!(StateFile::open(&path).unwrap().lost(), Some(8), "it could not be saved");
    }

    /// Its mark was the magic alone, over the beginning of the state.
    #[test]
    fn mark_of_an_earlier_version_is_of_the_first_incarnation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for rest in [&b""[..], &[5, 0, 0, 0, b'd'], &[1; 15], &[1; 100]] {
            fs::write(&path, [&IN_USE[..], rest].concat()).unwrap();
            assert_eq!(StateFile::open(&path).unwrap().lost(), Some(0));
        }
        fs::write(&path, &IN_USE[..7]).unwrap();
        assert_eq!(StateFile::open(&path).unwrap().lost(), None);
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let file = StateFile::open(&path).unwrap();
        assert!(file.reader().unwrap().is_none());
        drop(file);
        assert_eq!(files(folder.path()), 0, "nothing is left of a state that was not written");
        put(&path, b"the first", Ok(())).unwrap();
        assert_eq!(put(&path, b"the seco", Err(Problem::Busy)), Err(Problem::Busy));
        assert_eq!(fs::read(&path).unwrap(), b"the first");
        put(&path, b"the third", Ok(())).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"the third");
        let (mut input, bytes) = StateFile::open(&path).unwrap().reader().unwrap().unwrap();
        let mut content = String::new();
        input.read_to_string(&mut content).unwrap();
        assert_eq!((content.as_str(), bytes), ("the third", 9));
        assert_eq!(files(folder.path()), 1, "nothing is left beside it");
        let nowhere = put(&path.join("x"), b"", Ok(())).unwrap_err().to_string();
        assert!(nowhere.starts_with("cannot be "), "{nowhere}");
    }

    #[test]
    fn a_new_file_that_was_never_saved_has_no_state() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        std::mem::forget(StateFile::open(&path).unwrap());
        assert_eq!(StateFile::open(&path).unwrap_err(), Problem::InUse);
        let interrupted = folder.path().join("interrupted");
        fs::copy(&path, &interrupted).unwrap();
        assert!(StateFile::open(&interrupted).unwrap().reader().unwrap().is_none());
        fs::write(&interrupted, "").unwrap();
        assert!(StateFile::open(&interrupted).unwrap().reader().unwrap().is_some());
    }

    #[test]
    fn no_other_file_is_touched_and_links_and_modes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("state"), "old").unwrap();
        fs::set_permissions(path("state"), Permissions::from_mode(0o640)).unwrap();
        let process = std::process::id();
        let others = ["state.new".to_owned(), format!(".kvasir-{process}-0.new")];
        for other in &others {
            fs::write(path(other), "kept").unwrap();
        }
        fs::create_dir(path("far")).unwrap();
        symlink(path("state"), path("far/link")).unwrap();
        put(&path("far/link"), b"new", Ok(())).unwrap();
        assert!(path("far/link").is_symlink());
        assert_eq!(fs::read(path("state")).unwrap(), b"new");
        assert_eq!(fs::metadata(path("state")).unwrap().permissions().mode() & 0o777, 0o640);
        for other in &others {
            assert_eq!(fs::read(path(other)).unwrap(), b"kept");
        }
        assert_eq!(StateFile::open(Path::new("/dev/null")).unwrap_err(), Problem::NoFile);
        assert_eq!(StateFile::open(&path("far")).unwrap_err(), Problem::NoFile);
    }

    #[test]
    fn a_state_file_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let first = StateFile::open(&path).unwrap();
        assert_eq!(StateFile::open(&path).unwrap_err(), Problem::InUse);
        first.replace(|_| Ok(())).unwrap();
        assert!(StateFile::open(&path).is_ok());
    }
}
