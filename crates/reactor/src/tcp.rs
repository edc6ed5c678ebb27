mod connect;
mod listener;
mod stream;

pub use connect::ConnectError;
pub use listener::TcpListener;
pub use stream::TcpStream;

use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, ipproto, socket_with};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A socket of the family of `address`.
fn socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    Ok(socket_with(family, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?)
}

fn ip_address(address: SocketAddrAny) -> io::Result<SocketAddr> {
    address.try_into().map_err(io::Error::from)
}
