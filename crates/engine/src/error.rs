/// Why the store did not execute a command. The command has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key space has no such key.
    #[error("the key does not exist")]
    KeyNotFound,
    /// A store was to create the key, and it exists.
    #[error("the key exists")]
    KeyExists,
    /// The key changed since the caller read it, and the write required that it had not.
    #[error("the key has changed")]
    KeyChanged,
    /// The value is longer than the store takes.
    #[error("the value has more than {max} bytes")]
    ValueTooLong {
        /// The longest value in bytes.
        max: u32,
    },
    /// A batch has more members, or more bytes, than the store takes at once.
    #[error("the batch has more than {max_records} members or {max_bytes} bytes")]
    BatchTooLong {
        /// The most bytes: those of values, and for each member 32 bytes and the key, and 8 if it
        /// expires, rounded up to 8.
        max_bytes: u64,
        /// The most members.
        max_records: u32,
    },
    /// A batch names a key of a key space twice.
    #[error("the batch names a key twice")]
    BatchRepeatsKey,
    /// Live records would be more than the capacity, or cleaning can win no more space.
    #[error("no space is left")]
    CapacityExceeded,
    /// The index has nothing that a checkpoint could keep.
    #[error("the index cannot be saved")]
    NoCheckpoint,
    /// The medium did not return the bytes that were stored.
    #[error("the medium could not return the record")]
    Unrecovered,
    /// The medium did not accept the write.
    #[error("the medium could not keep the record")]
    Unwritten,
    /// There is no such key space.
    #[error("the key space does not exist")]
    NoKeySpace,
    /// There is such a key space already, or another task creates or deletes it.
    #[error("the key space exists")]
    KeySpaceExists,
    /// Each opening has a number, and there are no more of them.
    #[error("it was opened 65,535 times, which is as often as a store can be")]
    OpenedTooOften,
    /// A reactor ended within a part of the work.
    #[error("a thread that did a part of this work has ended")]
    ReactorEnded,
    /// The id is kept for the store's own records.
    #[error("key space 0 is reserved")]
    KeySpaceReserved,
}

impl Error {
    /// Returns whether the error means that a reader met a record that did not land, which its
    /// writer undoes.
    pub(crate) const fn is_of_writing(&self) -> bool {
        matches!(self, Self::Unwritten | Self::CapacityExceeded)
    }
}

impl From<media::Error> for Error {
    fn from(error: media::Error) -> Self {
        match error {
            media::Error::Unrecovered(_) | media::Error::UnrecoveredBlock(_) => Self::Unrecovered,
            media::Error::NoFreeExtent
            | media::Error::NoSpace
            | media::Error::ReadOnly
            | media::Error::PowerLost => Self::CapacityExceeded,
            media::Error::UnwrittenBlock(_) | media::Error::NotFlushed => Self::Unwritten,
        }
    }
}
