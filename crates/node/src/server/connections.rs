use super::pace::Pace;
use super::places::ConnectionPermit;
use super::report::Moved;
use super::tenants::{Gate, Member, TenantPort, TenantStream, metered};
use base::{BufPool, Nanos};
use clock::{BusyStage, Notify, Stage};
use controller::{Port, TransportAddress};
use net::Stream;
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{Budget, Config, serve};
use reactor::{AcceptError, TcpListener, TcpStream};
use spec::{AddressFamily, Text};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Memory of pooled buffers of each size, in bytes, for each reactor.
const POOL_BYTES: usize = 16 << 20;

/// Pause before the next accept after the machine had no resources for a connection.
pub(super) const PAUSE: Nanos = Nanos::from_millis(10);

/// An accepted connection.
pub(super) struct Arrival {
    pub(super) stream: TcpStream,
    /// The local address that the host used.
    pub(super) address: SocketAddr,
    /// The host's address.
    pub(super) host: SocketAddr,
    /// Its connection slot, freed when the connection ends.
    pub(super) place: ConnectionPermit,
}

/// The identity of a connection in the reactor of its device.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionInfo {
    /// The number of its slot.
    pub(super) number: u64,
    /// The address of this end that the host used.
    pub(super) address: SocketAddr,
}

impl Arrival {
    pub(super) fn way(&self) -> ConnectionInfo {
        ConnectionInfo { number: self.place.number, address: self.address }
    }
}

/// A connection at an instant.
#[derive(Debug)]
pub(super) struct ConnectionCensus {
    pub(super) number: u64,
    /// The host's address, or the path of the socket that a virtual machine uses.
    pub(super) host: String,
    /// Bytes in flight that count for its budget.
    pub(super) memory_bytes: u64,
}

/// Serves the connections of a reactor.
#[derive(Clone)]
pub(super) struct Connections(Rc<Shared>);

struct Shared {
    pool: BufPool,
    counters: Rc<Counters>,
    connections: Cell<u64>,
    /// The open connections, by number.
    open: RefCell<BTreeMap<u64, Open>>,
    /// Whether new connections are closed at once.
    is_over: Cell<bool>,
    /// Notified when the last connection closes.
    is_empty: Notify,
    /// Grants their turns, if the server has tenants.
    gate: Option<Rc<Gate>>,
}

struct Open {
    stream: Rc<TcpStream>,
    host: SocketAddr,
    budget: Rc<Budget>,
    member: Option<Rc<Member>>,
}

impl Connections {
    /// Creates a set without connections, whose turns `gate` grants.
    pub(super) fn new(gate: Option<Rc<Gate>>) -> Self {
        Self(Rc::new(Shared {
            pool: BufPool::new(POOL_BYTES),
            counters: Rc::default(),
            connections: Cell::new(0),
            open: RefCell::default(),
            is_over: Cell::new(false),
            is_empty: Notify::new(),
            gate,
        }))
    }

    /// Serves an accepted connection from `port` in a task of its own.
    pub(super) fn serve(&self, arrival: Arrival, port: Rc<dyn Port>) {
        if self.0.is_over.get() {
            return;
        }
        self.0.connections.set(self.0.connections.get() + 1);
        let Arrival { stream, host, place, .. } = arrival;
        let (stream, number) = (Rc::new(stream), place.number);
        let budget = Rc::new(Budget::new(place.memory_bytes));
        let member = self.0.gate.as_ref().map(Member::new);
        let open =
            Open { stream: stream.clone(), host, budget: budget.clone(), member: member.clone() };
        self.0.open.borrow_mut().insert(number, open);
        let shared = self.0.clone();
        let config = Config { pool: shared.pool.clone(), counters: shared.counters.clone() };
        clock::spawn(async move {
            clock::name_task("nvme connection");
            clock::set_busy_stage(BusyStage::Receive);
            match member {
                None => _ = serve(stream, port, config, budget).await,
                Some(member) => serve_member(member, stream, port, config, budget).await,
            }
            drop(place);
            let mut open = shared.open.borrow_mut();
            open.remove(&number);
            if open.is_empty() {
                shared.is_empty.notify();
            }
        });
    }

    /// Closes all connections and returns when their tasks have ended. Later connections are closed
    /// at once.
    pub(super) async fn end(&self) {
        self.0.is_over.set(true);
        for open in self.0.open.borrow().values() {
            open.stream.shut_down();
            if let Some(member) = &open.member {
                member.end();
            }
        }
        while !self.0.open.borrow().is_empty() {
            self.0.is_empty.wait().await;
        }
    }

    /// Returns the number of connections served so far.
    pub(super) fn count(&self) -> u64 {
        self.0.connections.get()
    }

    /// Returns the open connections.
    pub(super) fn census(&self) -> Vec<ConnectionCensus> {
        let open = self.0.open.borrow();
        let each = open.iter().map(|(&number, open)| ConnectionCensus {
            number,
            host: open.host.to_string(),
            memory_bytes: open.budget.in_flight(),
        });
        each.collect()
    }

    pub(super) fn moved(&self) -> Moved {
        Moved::of(&self.0.counters)
    }
}

/// Serves the connection of a tenant's host.
async fn serve_member(
    member: Rc<Member>,
    stream: Rc<TcpStream>,
    port: Rc<dyn Port>,
    config: Config,
    budget: Rc<Budget>,
) {
    let stream = Rc::new(TenantStream::new(stream, member.clone()));
    let port = Rc::new(TenantPort::new(port, member.clone()));
    // Boxed: the task of a connection without a tenant keeps no room for it.
    Box::pin(metered(member, async move {
        serve(stream, port, config, budget).await;
    }))
    .await;
}

/// Passes each accepted connection to `take`, with the local and the host's address. [`Pace`]
/// limits the rate, to protect the open connections. Returns when `listener` is closed.
pub(super) async fn accept_all(
    listener: &TcpListener,
    take: impl Fn(TcpStream, SocketAddr, SocketAddr),
) {
    let mut pace = Pace::default();
    loop {
        pace.wait().await;
        match listener.accept().await {
            Ok((stream, host)) => {
                // The call fails if the peer has closed the connection: drop it.
                if let Ok(address) = stream.local_address() {
                    take(stream, address, host);
                }
            }
            Err(AcceptError::Closed) => return,
            Err(AcceptError::Failed(_)) => clock::sleep(PAUSE, Stage::Queue).await,
        }
    }
}

/// Returns `address` as discovery reports it. A host that connects by IPv4 to an IPv6 listener gets
/// an IPv4 address.
pub(super) fn transport_address(address: SocketAddr) -> TransportAddress {
    let ip = address.ip().to_canonical();
    TransportAddress {
        family: match ip {
            IpAddr::V4(_) => AddressFamily::IPV4,
            IpAddr::V6(_) => AddressFamily::IPV6,
        },
        address: Text::new(&ip.to_string()),
        port: address.port(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_that_comes_by_ipv4_is_told_of_an_ipv4_address() {
        for (came_by, family, text) in [
            ("192.0.2.7:4420", AddressFamily::IPV4, "192.0.2.7"),
            ("[::ffff:192.0.2.7]:4420", AddressFamily::IPV4, "192.0.2.7"),
            ("[2001:db8::7]:4420", AddressFamily::IPV6, "2001:db8::7"),
        ] {
            let told = transport_address(came_by.parse().unwrap());
            assert_eq!((told.family, told.address.as_str()), (family, Some(text)), "{came_by}");
            assert_eq!(told.port, 4420);
        }
    }
}
