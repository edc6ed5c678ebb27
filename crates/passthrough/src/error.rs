use rustix::io::Errno;

/// Why a file cannot be used as a namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The system does not open it.
    #[error("{path} cannot be opened: {reason}")]
    Open {
        /// The file.
        path: String,
        /// The kernel's error.
        reason: String,
    },
    /// It is not an NVMe namespace.
    #[error("{path} is no NVMe namespace; one that the kernel has is named as /dev/ng0n1")]
    NoNamespace {
        /// The file.
        path: String,
    },
}

/// The kernel did not execute a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel does not execute the command: {0}")]
pub struct KernelError(pub Errno);
