use rustix::io::Errno;
use std::io;

/// Why there is no next connection.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The listener was closed by its `close`.
    #[error("the listener is closed")]
    Closed,
    /// Out of file descriptors or memory, as a rule: worth another try after a while.
    #[error("the machine takes no more connections for now ({0})")]
    Failed(#[source] io::Error),
}

/// Connections that the kernel accepts before they are taken: hosts open dozens at once.
pub(crate) const BACKLOG: i32 = 1_024;

/// Errors of one connection that did not come about: the next may (accept(2)).
const PASSING: [Errno; 10] = [
    Errno::INTR,
    Errno::CONNABORTED,
    Errno::PROTO,
    Errno::NOPROTOOPT,
    Errno::OPNOTSUPP,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::HOSTDOWN,
    Errno::HOSTUNREACH,
    Errno::PERM,
];

/// Returns `Ok` if `error` concerns one connection only, and the next may succeed.
pub(crate) fn ignore_passing(error: Errno) -> Result<(), AcceptError> {
    if PASSING.contains(&error) { Ok(()) } else { Err(AcceptError::Failed(error.into())) }
}
