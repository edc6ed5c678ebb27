use super::pace::Pace;
use super::places::Place;
use super::report::Moved;
use base::{BufPool, Nanos};
use clock::{Bell, Stage};
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

/// Memory of buffers that a reactor keeps of each size.
const POOL_BYTES: usize = 16 << 20;

/// How long a reactor that can take no more connections waits before it tries again.
const PAUSE: Nanos = Nanos::from_millis(10);

/// A connection that has come in.
pub(super) struct Arrival {
    pub(super) stream: TcpStream,
    /// The address of this end that the host used.
    pub(super) address: SocketAddr,
    /// Free for another when it is over.
    pub(super) place: Place,
}

/// Serves the connections of a reactor.
#[derive(Clone)]
pub(super) struct Connections(Rc<Shared>);

struct Shared {
    pool: BufPool,
    counters: Rc<Counters>,
    connections: Cell<u64>,
    /// Those that are there, in the order in which they came.
    open: RefCell<BTreeMap<u64, Rc<TcpStream>>>,
    /// Rings when there are none any more.
    is_empty: Bell,
}

impl Connections {
    pub(super) fn new() -> Self {
        Self(Rc::new(Shared {
            pool: BufPool::new(POOL_BYTES),
            counters: Rc::default(),
            connections: Cell::new(0),
            open: RefCell::default(),
            is_empty: Bell::new(),
        }))
    }

    /// Serves the host that has come, from `port`, in a task of its own.
    pub(super) fn serve(&self, arrival: Arrival, port: Rc<dyn Port>) {
        let number = self.0.connections.get();
        self.0.connections.set(number + 1);
        let stream = Rc::new(arrival.stream);
        self.0.open.borrow_mut().insert(number, stream.clone());
        let (shared, place) = (self.0.clone(), arrival.place);
        let config = Config { pool: shared.pool.clone(), counters: shared.counters.clone() };
        let budget = Rc::new(Budget::new(place.memory_bytes));
        clock::spawn(async move {
            serve(stream, port, config, budget).await;
            drop(place);
            let mut open = shared.open.borrow_mut();
            open.remove(&number);
            if open.is_empty() {
                shared.is_empty.ring();
            }
        });
    }

    /// Ends all, and returns when they are over.
    pub(super) async fn end(&self) {
        for stream in self.0.open.borrow().values() {
            stream.shut_down();
        }
        while !self.0.open.borrow().is_empty() {
            self.0.is_empty.wait().await;
        }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.0.connections.get()
    }

    pub(super) fn moved(&self) -> Moved {
        Moved::of(&self.0.counters)
    }
}

/// Hands each connection that comes in to `take`, with the address of this end that the host used,
/// and not faster than the hosts can bear that are there. Returns when `listener` is closed.
pub(super) async fn accept_all(listener: &TcpListener, take: impl Fn(TcpStream, SocketAddr)) {
    let mut pace = Pace::default();
    loop {
        pace.wait().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                // Of a connection that is gone already nobody will ask.
                if let Ok(address) = stream.local_address() {
                    take(stream, address);
                }
            }
            Err(AcceptError::Closed) => return,
            Err(AcceptError::Failed(_)) => clock::sleep(PAUSE, Stage::Queue).await,
        }
    }
}

/// `address` as hosts are told of it.
pub(super) fn transport_address(address: SocketAddr) -> TransportAddress {
    TransportAddress {
        family: match address.ip() {
            IpAddr::V4(_) => AddressFamily::IPV4,
            IpAddr::V6(_) => AddressFamily::IPV6,
        },
        address: Text::new(&address.ip().to_string()),
        port: address.port(),
    }
}
