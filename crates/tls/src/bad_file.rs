use std::io;
use std::path::{Path, PathBuf};

/// A file of certificates or keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct BadFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not there, or not for this user.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is cut off, or was changed.
    #[error("is damaged: what it has between its lines of BEGIN and END is no PEM")]
    Damaged,
    /// It has something else, or nothing.
    #[error("has no certificate in PEM")]
    NoCertificate,
    /// It has something else, or a key that is encrypted.
    #[error("has no private key in PEM that can be read without a password")]
    NoKey,
    /// The key signs for another certificate.
    #[error("has a key that is not the one of the certificate in {}", .0.display())]
    OtherKey(PathBuf),
    /// The certificate has expired; how many seconds ago.
    #[error("has a certificate that has expired ({} ago)", days(*.0))]
    Expired(u64),
    /// The certificate is not valid yet; in how many seconds it will be.
    #[error("has a certificate that is not valid yet (it will be in {})", days(*.0))]
    NotYet(u64),
    /// Of a kind that there is no use for.
    #[error("has what cannot be used: {0}")]
    Unusable(rustls::Error),
}

impl Problem {
    pub(crate) fn of(self, path: &Path) -> BadFile {
        BadFile { path: path.to_owned(), problem: self }
    }
}

fn days(seconds: u64) -> String {
    match seconds / 86_400 {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}
