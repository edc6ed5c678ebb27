use crate::profile::builtin::builtin_names;
use crate::profile::quote::listed;

/// Why a profile cannot be loaded. Displays as one sentence in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The name is neither a built-in profile nor a path.
    #[error(
        "there is no profile {name:?}; built in are {}, and the path of a file contains a / or \
         ends in .toml",
        listed(builtin_names(), "and")
    )]
    UnknownName {
        /// The requested name.
        name: String,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {reason}", file.escape_debug())]
    Unreadable {
        /// Its path.
        file: String,
        /// The system's error.
        reason: String,
    },
    /// The text is no profile.
    #[error("{} line {line}: {problem}", file.escape_debug())]
    Invalid {
        /// The built-in name or the path.
        file: String,
        /// The line of the error, from 1; for a missing key that of the section's head.
        line: usize,
        /// The error, and what is allowed.
        problem: String,
    },
}
