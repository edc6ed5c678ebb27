use super::report::Moved;
use base::{BufPool, Nanos};
use clock::Stage;
use controller::{Port, TransportAddress};
use nvme_tcp::framing::Counters;
use nvme_tcp::target::{Config, serve};
use reactor::{AcceptError, TcpListener, TcpStream};
use spec::{AddressFamily, Text};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

/// Memory of buffers that a reactor keeps of each size.
const POOL_BYTES: usize = 16 << 20;

/// How long a reactor that can take no more connections waits before it tries again.
const PAUSE: Nanos = Nanos::from_millis(10);

/// Serves the connections of a reactor.
#[derive(Clone)]
pub(super) struct Connections(Rc<Shared>);

struct Shared {
    config: Config,
    connections: Cell<u64>,
}

impl Connections {
    pub(super) fn new() -> Self {
        let config =
            Config { pool: BufPool::new(POOL_BYTES), counters: Rc::new(Counters::default()) };
        Self(Rc::new(Shared { config, connections: Cell::new(0) }))
    }

    /// Serves the host behind `stream` from `port`, in a task of its own.
    pub(super) fn serve(&self, stream: TcpStream, port: Rc<dyn Port>) {
        self.0.connections.set(self.0.connections.get() + 1);
        let config = self.0.config.clone();
        clock::spawn(async move {
            serve(Rc::new(stream), port, config).await;
        });
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.0.connections.get()
    }

    pub(super) fn moved(&self) -> Moved {
        Moved::of(&self.0.config.counters)
    }
}

/// Hands each connection that comes in to `take`, with the address of this end that the host used.
/// Returns when `listener` is closed.
pub(super) async fn accept_all(
    listener: &TcpListener,
    mut take: impl FnMut(TcpStream, SocketAddr),
) {
    loop {
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
        family: match address {
            SocketAddr::V4(_) => AddressFamily::IPV4,
            SocketAddr::V6(_) => AddressFamily::IPV6,
        },
        address: Text::new(&address.ip().to_string()),
        port: address.port(),
    }
}
