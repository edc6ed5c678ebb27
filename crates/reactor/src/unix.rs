mod listener;
mod passed_fds;
mod stream;

pub use listener::UnixListener;
pub use passed_fds::PassedFds;
pub use stream::UnixStream;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::OwnedFd;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Returns a stream socket that does not block.
fn socket() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)
}
