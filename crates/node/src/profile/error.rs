use crate::profile::builtin_names;
use crate::profile::source::listed;

/// Why there is no such profile. Displays as one sentence in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The name is not that of a built-in profile, and not a path either.
    #[error(
        "there is no profile {name:?}; built in are {}, and the path of a file contains a / or \
         ends in .toml",
        listed(builtin_names(), "and")
    )]
    UnknownName {
        /// As it was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {reason}", file.escape_debug())]
    Unreadable {
        /// Its path.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// The text is no profile.
    #[error("{} line {line}: {problem}", file.escape_debug())]
    Invalid {
        /// The built-in name or the path.
        file: String,
        /// The line of what is wrong, from 1; that of the section's head for what a section lacks.
        line: usize,
        /// What is wrong and what would be right.
        problem: String,
    },
}
