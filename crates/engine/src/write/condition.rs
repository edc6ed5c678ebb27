use crate::error::Error;
use crate::format::record::Sequence;
use clock::UnixMillis;

/// The version of a key's value: any later store of the key has another version. Cleaning and
/// opening the store again keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    pub(crate) const fn of(sequence: Sequence) -> Self {
        Self(sequence.0)
    }
}

/// The condition that a key must meet for a write to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Always,
    /// The key exists.
    MustExist,
    /// The key does not exist.
    MustNotExist,
    /// The key exists and still has this version: no write has changed it since the caller read it.
    Unchanged(Version),
}

impl Condition {
    /// Returns whether it is met by a key of this version, or by none.
    pub(crate) fn check(self, now: Option<Version>) -> Result<(), Error> {
        match (self, now) {
            (Self::MustExist, None) => Err(Error::KeyNotFound),
            (Self::MustNotExist, Some(_)) => Err(Error::KeyExists),
            (Self::Unchanged(version), now) if now != Some(version) => Err(Error::KeyChanged),
            _ => Ok(()),
        }
    }
}

/// How to store a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// What must be true of the key.
    pub condition: Condition,
    /// The date from which on the key does not exist, on the clock that [`clock::unix_now`] reads.
    pub expires: Option<UnixMillis>,
}

impl From<Condition> for Write {
    /// Makes a write of a value that does not expire.
    fn from(condition: Condition) -> Self {
        Self { condition, expires: None }
    }
}

/// What a successful store replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The key had no value.
    Anew,
    /// The key had one, which is gone.
    Overwrote,
}
