use super::arrivals::{Arrival, MovedConnection};
use super::movable_connections::{MovableConnection, MovableConnections};
use super::pace::Pace;
use super::report::Moved;
use super::tenants::{Gate, Member, TenantPort, TenantStream, metered};
use base::{BufPool, Nanos};
use clock::{BusyStage, Notify, Stage};
use controller::{Port, TransportAddress};
use net::Stream;
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{Budget, Config, Left, ParkedConnection, serve_until_moved};
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
    /// What the connections that have ended or left moved.
    moved: Cell<Moved>,
    connections: Cell<u64>,
    movable: MovableConnections,
    /// The open connections, by number.
    open: RefCell<BTreeMap<u64, Rc<Open>>>,
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
    counters: Rc<Counters>,
    movable: Rc<MovableConnection>,
}

impl Connections {
    /// Creates a set without connections. It registers open ones in `movable`. `gate` grants their
    /// turns.
    pub(super) fn new(movable: MovableConnections, gate: Option<Rc<Gate>>) -> Self {
        Self(Rc::new(Shared {
            pool: BufPool::new(POOL_BYTES),
            moved: Cell::default(),
            connections: Cell::new(0),
            movable,
            open: RefCell::default(),
            is_over: Cell::new(false),
            is_empty: Notify::new(),
            gate,
        }))
    }

    /// Serves an accepted connection, or one that has come from another reactor, from `port` in a
    /// task of its own.
    pub(super) fn serve(&self, arrival: Arrival, port: Rc<dyn Port>) {
        if self.0.is_over.get() {
            return;
        }
        let Arrival { stream, address, host, place, tenant, parked } = arrival;
        let (stream, counters) = (Rc::new(stream), Rc::<Counters>::default());
        let received = counters.clone();
        let (requests, has_moved) = (move || received.pdus_received(), parked.is_some());
        let movable = self.0.movable.open(place.number, stream.clone(), requests, has_moved);
        self.0.connections.set(self.0.connections.get() + u64::from(!has_moved));
        let open = Rc::new(Open {
            stream,
            host,
            budget: Rc::new(Budget::new(place.memory_bytes)),
            member: self.0.gate.as_ref().map(|gate| Member::new(gate, tenant)),
            counters,
            movable,
        });
        self.0.open.borrow_mut().insert(place.number, open.clone());
        let shared = self.0.clone();
        clock::spawn(async move {
            clock::name_task("nvme connection");
            clock::set_busy_stage(BusyStage::Receive);
            let number = place.number;
            let next = shared.serve(&open, port, parked).await;
            match next {
                None => drop(place),
                Some((stream, parked)) => {
                    let tenant = open.member.as_ref().and_then(|member| member.tenant());
                    let parked = Some(parked);
                    let arrival = Arrival { stream, address, host, place, tenant, parked };
                    shared.movable.depart(&open.movable, MovedConnection::Nvme(arrival));
                }
            }
            shared.close(number);
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
        let open = self.0.open.borrow();
        open.values().fold(self.0.moved.get(), |sum, open| sum.and(Moved::of(&open.counters)))
    }
}

impl Shared {
    /// Serves a connection to its end, or until it leaves for another reactor. Then returns what
    /// that one gets.
    async fn serve(
        &self,
        open: &Open,
        port: Rc<dyn Port>,
        mut parked: Option<ParkedConnection>,
    ) -> Option<(TcpStream, ParkedConnection)> {
        loop {
            let config = Config { pool: self.pool.clone(), counters: open.counters.clone() };
            let Left::Moved(left) = serve(open, port.clone(), config, parked).await else {
                return None;
            };
            match open.movable.hand_over() {
                Some(stream) => return Some((stream, left)),
                None => parked = Some(left),
            }
        }
    }

    /// Removes a connection that has ended or left.
    fn close(&self, number: u64) {
        let mut all = self.open.borrow_mut();
        let open = all.remove(&number).expect("a connection is open until it is closed");
        self.movable.close(number);
        self.moved.set(self.moved.get().and(Moved::of(&open.counters)));
        if all.is_empty() {
            self.is_empty.notify();
        }
    }
}

/// Serves a connection as [`serve_until_moved`] does, in the turns of its tenant if it has one.
async fn serve(
    open: &Open,
    port: Rc<dyn Port>,
    config: Config,
    parked: Option<ParkedConnection>,
) -> Left {
    let (stream, shared) = (open.stream.clone(), (open.budget.clone(), open.movable.moves()));
    let Some(member) = open.member.clone() else {
        return serve_until_moved(stream, port, config, shared, parked).await;
    };
    let stream = Rc::new(TenantStream::new(stream, member.clone()));
    let port = Rc::new(TenantPort::new(port, member.clone()));
    // Boxed: the task of a connection without a tenant keeps no room for it.
    Box::pin(metered(member, serve_until_moved(stream, port, config, shared, parked))).await
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
