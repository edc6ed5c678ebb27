//! Connects to machines that users name.

use crate::output::Failure;
use base::Nanos;
use net::HostPort;
use reactor::{Lateness, Reactor, Remote, TcpStream};
use std::net::{SocketAddr, ToSocketAddrs};

/// Timeout of a connection attempt.
const CONNECT_LIMIT: Nanos = Nanos::from_secs(10);

/// Runs `act`, which may connect.
pub(crate) fn with<T>(
    act: impl AsyncFnOnce() -> Result<T, Failure>,
) -> Result<(T, Lateness), Failure> {
    let remote = Remote::new()
        .map_err(|error| Failure::Broken(format!("the event loop cannot start: {error}")))?;
    let served = Reactor::new(None).serve(&remote, act());
    let (done, lateness) =
        served.map_err(|error| Failure::Broken(format!("io_uring is not available: {error}")))?;
    Ok((done?, lateness))
}

/// Returns a connection to the first of `addresses` that accepts one.
pub(crate) async fn dial_any(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), Failure> {
    let mut failure = None;
    for &address in addresses {
        match dial(address).await {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.expect("a name that was resolved has an address"))
}

/// Connects to `address`.
pub(crate) async fn dial(address: SocketAddr) -> Result<TcpStream, Failure> {
    TcpStream::connect(address, CONNECT_LIMIT)
        .await
        .map_err(|error| Failure::Broken(format!("{error}; kvasir serve prints its address")))
}

/// Returns the addresses of `place`, at least one.
pub(crate) fn resolve(place: &HostPort) -> Result<Vec<SocketAddr>, Failure> {
    let HostPort { host, port } = place;
    let found = (host.as_str(), *port).to_socket_addrs();
    let found =
        found.map_err(|error| Failure::Broken(format!("cannot resolve {host}: {error}")))?;
    let addresses: Vec<_> = found.collect();
    if addresses.is_empty() {
        return Err(Failure::Broken(format!("{host} has no address")));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_resolved_without_brackets() {
        let place = HostPort::parse("[::1]:4421", 1).unwrap();
        assert_eq!(resolve(&place).unwrap(), ["[::1]:4421".parse::<SocketAddr>().unwrap()]);
    }
}
