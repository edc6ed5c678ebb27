//! Connections on their way to the reactor that serves them.

use super::places::ConnectionPermit;
use nvme_tcp::target::ParkedConnection;
use reactor::TcpStream;
use resp::{ArrivingClient, Door};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An accepted NVMe/TCP connection.
pub(super) struct Arrival {
    pub(super) stream: TcpStream,
    /// The local address that the host used.
    pub(super) address: SocketAddr,
    /// The host's address.
    pub(super) host: SocketAddr,
    /// Its connection slot, freed when the connection ends.
    pub(super) place: ConnectionPermit,
    /// The tenant of its host, if another reactor has served it and the server has tenants.
    pub(super) tenant: Option<usize>,
    /// Set if another reactor has served it.
    pub(super) parked: Option<ParkedConnection>,
}

/// The identity of a connection in the reactor of its device.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionInfo {
    /// The number of its slot.
    pub(super) number: u64,
    /// The address of this end that the host used.
    pub(super) address: SocketAddr,
}

/// A Redis service, as all reactors that serve its clients use it.
pub(super) struct RespService {
    pub(super) door: Arc<Door>,
    /// The connected clients of all reactors.
    open: AtomicU64,
}

/// Counts a client of a Redis service as connected until it is dropped.
pub(super) struct ConnectedClient(Arc<RespService>);

/// An accepted Redis client.
pub(super) struct RespArrival {
    pub(super) service: ConnectedClient,
    pub(super) stream: TcpStream,
    /// Its connection slot, freed when the connection ends.
    pub(super) place: ConnectionPermit,
    pub(super) client: ArrivingClient,
    /// The certificate and key, if it speaks TLS.
    pub(super) tls: Option<tls::Server>,
}

/// A connection that leaves a reactor for another one.
pub(super) enum MovedConnection {
    Nvme(Arrival),
    Redis(RespArrival),
}

impl Arrival {
    pub(super) fn way(&self) -> ConnectionInfo {
        ConnectionInfo { number: self.place.number, address: self.address }
    }
}

impl RespService {
    /// Creates the service of `door`, without clients.
    pub(super) fn new(door: Arc<Door>) -> Arc<Self> {
        Arc::new(Self { door, open: AtomicU64::new(0) })
    }

    /// Returns the number of connected clients.
    pub(super) fn clients(&self) -> u64 {
        self.open.load(Relaxed)
    }

    /// Counts a client.
    pub(super) fn connect(self: &Arc<Self>) -> ConnectedClient {
        self.open.fetch_add(1, Relaxed);
        ConnectedClient(self.clone())
    }
}

impl ConnectedClient {
    /// Returns what the client connects to.
    pub(super) fn door(&self) -> Arc<Door> {
        self.0.door.clone()
    }
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl MovedConnection {
    /// Returns its connection slot.
    pub(super) fn permit(&mut self) -> &mut ConnectionPermit {
        match self {
            Self::Nvme(arrival) => &mut arrival.place,
            Self::Redis(arrival) => &mut arrival.place,
        }
    }
}
