use base::{Buf, Key};
use spec::Command;

/// A command with the host memory that it names.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The submission queue entry.
    pub command: Command,
    /// The key, where it has more than the 16 bytes that fit the command.
    pub long_key: Option<Key>,
    /// The value of a Store; empty otherwise.
    pub data: Buf,
}

impl Submission {
    /// A command whose key is `key` and which brings no data.
    pub fn new(command: Command, key: &Key) -> Self {
        Self::with_data(command, key, Buf::phantom(0, 0))
    }

    /// A command whose key is `key` and which brings `data`.
    pub fn with_data(command: Command, key: &Key, data: Buf) -> Self {
        Self { command, long_key: key.is_long().then(|| key.clone()), data }
    }
}
