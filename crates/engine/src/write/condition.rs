use crate::error::Error;
use crate::format::record::Sequence;
use clock::UnixMillis;

/// What a key holds at one instant: any later store of it has another version. Cleaning keeps it,
/// and so does opening the store again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    pub(crate) const fn of(sequence: Sequence) -> Self {
        Self(sequence.0)
    }
}

/// What must be true of the key for a write to go through.
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
    /// Whether it is met by a key of this version, or by none.
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
    /// A value that stays.
    fn from(condition: Condition) -> Self {
        Self { condition, expires: None }
    }
}

/// What a store that went through found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The key had no value.
    Anew,
    /// The key had one, which is gone.
    Overwrote,
}
