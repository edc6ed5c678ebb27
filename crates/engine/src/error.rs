/// Why the store did not do what it was asked. Nothing has changed when one of these is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key space has no such key.
    #[error("the key does not exist")]
    KeyNotFound,
    /// A store was to create the key, and it exists.
    #[error("the key exists")]
    KeyExists,
    /// The value is longer than the store takes.
    #[error("the value has more than {max} bytes")]
    ValueTooLong {
        /// The longest value in bytes.
        max: u32,
    },
    /// Live records would be more than the capacity, or cleaning can win no more space.
    #[error("no space is left")]
    CapacityExceeded,
    /// What the medium returned is not what was stored.
    #[error("the medium could not return the record")]
    Unrecovered,
    /// There is no such key space.
    #[error("the key space does not exist")]
    NoKeySpace,
    /// There is such a key space already.
    #[error("the key space exists")]
    KeySpaceExists,
    /// The id is kept for the store's own records.
    #[error("key space 0 is reserved")]
    KeySpaceReserved,
}

impl From<media::Error> for Error {
    fn from(error: media::Error) -> Self {
        match error {
            media::Error::Unrecovered(_) => Self::Unrecovered,
            media::Error::NoFreeExtent => Self::CapacityExceeded,
        }
    }
}
