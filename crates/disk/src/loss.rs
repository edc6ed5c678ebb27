use base::human_bytes;
use std::fmt;

/// What another program did to the file or device of an open drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It has fewer bytes than when it was opened.
    Shortened {
        /// Bytes of the drive.
        from: u64,
        /// Bytes that it has now.
        to: u64,
    },
    /// Its name was removed: the kernel frees its content when the last process closes it.
    Removed,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shortened { from, to } => {
                let [from, to] = [*from, *to].map(human_bytes);
                write!(f, "was cut from {from} to {to} while it was in use")
            }
            Self::Removed => f.write_str("was removed while it was in use"),
        }
    }
}
