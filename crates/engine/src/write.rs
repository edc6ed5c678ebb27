use crate::error::Error;
use clock::UnixMillis;

/// What must be true of the key for a store to go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Always,
    /// The key exists.
    MustExist,
    /// The key does not exist.
    MustNotExist,
}

impl Condition {
    pub(crate) fn check(self, exists: bool) -> Result<(), Error> {
        match (self, exists) {
            (Self::MustExist, false) => Err(Error::KeyNotFound),
            (Self::MustNotExist, true) => Err(Error::KeyExists),
            _ => Ok(()),
        }
    }
}

/// How a value is to be stored.
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
