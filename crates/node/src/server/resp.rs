//! Redis services: each is of one device, and the device's reactor serves its clients.

use super::certificates::Certificates;
use super::connections::accept_all;
use super::error::ServerError;
use super::places::{ConnectionLimit, ConnectionPermit};
use super::served_resp::{ServedResp, ServedTls};
use super::setup::ServedDevice;
use super::status::{ClientStatus, RedisStatus};
use base::{BufPool, Nanos};
use clock::Notify;
use engine::Store;
use net::Stream;
use reactor::{TcpListener, TcpStream};
use resp::{ClientLimits, Door, Ends, Settings, Totals, Users, serve_from, turn_away};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tls::TlsStream;

/// Timeout of a client's TLS handshake, because the client occupies a connection slot.
const HANDSHAKE_LIMIT: Nanos = Nanos::from_secs(10);

/// Memory of pooled buffers of each size, in bytes, for each Redis service.
const POOL_BYTES: usize = 16 << 20;

/// Clients of a Redis service that the status lists one by one: more than a reader looks at.
const CLIENTS_TOLD: usize = 100;

/// The Redis listeners of a device, bound before its reactor runs.
pub(super) struct RespListeners {
    /// The device's index in the server's list.
    pub(super) device: usize,
    plain: Option<TcpListener>,
    tls: Option<(TcpListener, Certificates)>,
    users: Users,
    settings: Settings,
    places: ConnectionLimit,
}

/// The addresses of a device's Redis service, for other threads.
#[derive(Clone, Debug)]
pub(super) struct RespAddrs {
    /// The device's index in the server's list.
    pub(super) device: usize,
    pub(super) plain: Option<SocketAddr>,
    pub(super) tls: Option<SocketAddr>,
    /// Its TLS certificate.
    pub(super) certificates: Option<Certificates>,
}

impl RespListeners {
    /// Binds the listeners of each of `devices` with a Redis service.
    pub(super) fn bind_all(
        devices: &[ServedDevice],
        places: &ConnectionLimit,
    ) -> Result<Vec<Self>, ServerError> {
        let doors = devices.iter().enumerate();
        let doors = doors.filter_map(|(place, device)| Some((place, device.resp.as_ref()?)));
        let bind = |(device, served): (usize, &ServedResp)| {
            let users = served.users.clone().unwrap_or_default();
            let tls = |ServedTls { address, server, .. }: &ServedTls| {
                Ok::<_, ServerError>((listen(*address)?, Certificates::new(server.clone())))
            };
            let tls = served.tls.as_ref().map(tls).transpose()?;
            let plain = served.address.map(listen).transpose()?;
            // The connection limit may be lower than the client limit.
            let clients = served.limits.clients.min(places.most());
            let settings = Settings {
                clients: ClientLimits { clients, ..served.limits },
                durability: devices[device].served.durability(),
                process: Some(super::process::read),
                ..Settings::default()
            };
            Ok(Self { device, plain, tls, users, settings, places: places.clone() })
        };
        doors.map(bind).collect()
    }

    /// Returns the addresses of the listeners.
    pub(super) fn sign(&self) -> Result<RespAddrs, ServerError> {
        let tls = self.tls.as_ref();
        Ok(RespAddrs {
            device: self.device,
            plain: self.plain.as_ref().map(TcpListener::local_address).transpose()?,
            tls: tls.map(|(listener, _)| listener.local_address()).transpose()?,
            certificates: tls.map(|(_, certificates)| certificates.clone()),
        })
    }

    /// Starts to accept clients of `store`. Runs inside the reactor.
    pub(super) async fn open(self, store: Arc<Store>) -> Result<RespDoor, ServerError> {
        let Self { device, plain, tls, users, settings, places } = self;
        let door = Arc::new(Door::new(store, users, settings, BufPool::new(POOL_BYTES)));
        door.prepare().await.map_err(ServerError::Resp)?;
        let tended = door.clone();
        clock::spawn(async move {
            clock::name_task("expiry");
            tended.tend().await;
        });
        let clients = Rc::new(Clients {
            door,
            open: RefCell::default(),
            is_over: Cell::new(false),
            is_empty: Notify::new(),
        });
        let mut listeners = Vec::new();
        if let Some(listener) = plain {
            let (listener, places, clients) = (Rc::new(listener), places.clone(), clients.clone());
            listeners.push(listener.clone());
            clock::spawn(async move {
                accept_all(&listener, |stream, address, host| {
                    let ends = Ends::new(host.to_string(), address.to_string());
                    match places.take() {
                        Some(place) => clients.clone().serve(stream, place, ends),
                        None => turn_away(&stream, &clients.door),
                    }
                })
                .await;
            });
        }
        if let Some((listener, certificates)) = tls {
            let (listener, clients) = (Rc::new(listener), clients.clone());
            listeners.push(listener.clone());
            clock::spawn(async move {
                accept_all(&listener, |stream, address, host| {
                    let ends = Ends::new(host.to_string(), address.to_string());
                    // Without a slot the connection closes: an error reply needs a handshake first.
                    match places.take() {
                        Some(place) => {
                            let stream = TlsStream::of_server(stream, &certificates.get());
                            clients.clone().serve_over_tls(stream, place, ends);
                        }
                        None => clients.door.counters().count_refused(),
                    }
                })
                .await;
            });
        }
        Ok(RespDoor { device, listeners, clients })
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).map_err(|error| ServerError::Listen { address, error })
}

/// A running Redis service of a device.
pub(super) struct RespDoor {
    /// The device's index in the server's list.
    pub(super) device: usize,
    listeners: Vec<Rc<TcpListener>>,
    clients: Rc<Clients>,
}

/// The connected clients.
struct Clients {
    door: Arc<Door>,
    /// Functions that close each connection, by number.
    open: RefCell<BTreeMap<u64, Box<dyn Fn()>>>,
    /// Whether new connections are closed at once.
    is_over: Cell<bool>,
    /// Notified when the last connection closes.
    is_empty: Notify,
}

impl Clients {
    fn serve(self: Rc<Self>, stream: TcpStream, place: ConnectionPermit, ends: Ends) {
        let (stream, clients) = (Rc::new(stream), self.clone());
        self.let_in(stream.clone(), place, async move { clients.answer(stream, ends).await });
    }

    fn serve_over_tls(
        self: Rc<Self>,
        stream: TlsStream<TcpStream>,
        place: ConnectionPermit,
        ends: Ends,
    ) {
        let (stream, clients) = (Rc::new(stream), self.clone());
        self.let_in(stream.clone(), place, async move {
            match stream.handshake(HANDSHAKE_LIMIT).await {
                Ok(()) => clients.answer(stream.clone(), ends).await,
                Err(_) => stream.shut_down(),
            }
            // The slot stays taken until all sent bytes have left.
            stream.drained().await;
        });
    }

    async fn answer(&self, stream: Rc<impl Stream + 'static>, ends: Ends) {
        // Boxed: the enclosing futures would hold several times its size for each client.
        Box::pin(serve_from(stream, self.door.clone(), ends)).await;
    }

    /// Serves a client in a task of its own.
    fn let_in(
        self: Rc<Self>,
        stream: Rc<impl Stream>,
        place: ConnectionPermit,
        served: impl Future<Output = ()> + 'static,
    ) {
        if self.is_over.get() {
            return;
        }
        let number = place.number;
        // Boxed: the waiting future would hold several times its size.
        let served = Box::pin(served);
        self.open.borrow_mut().insert(number, Box::new(move || stream.shut_down()));
        clock::spawn(async move {
            clock::name_task("redis connection");
            served.await;
            drop(place);
            let mut open = self.open.borrow_mut();
            open.remove(&number);
            if open.is_empty() {
                self.is_empty.notify();
            }
        });
    }
}

impl RespDoor {
    /// Returns the status of its clients.
    pub(super) fn status(&self) -> RedisStatus {
        let totals = self.totals();
        let busiest = self.clients.door.census(CLIENTS_TOLD);
        RedisStatus {
            clients: self.clients.open.borrow().len() as u64,
            connections: totals.connections,
            commands: totals.commands,
            bytes_received: totals.read_bytes,
            bytes_sent: totals.written_bytes,
            refused: totals.refused,
            query_overruns: totals.query_overruns,
            output_overruns: totals.output_overruns,
            busiest: busiest.into_iter().map(ClientStatus::from).collect(),
        }
    }

    /// Returns the totals of its clients.
    pub(super) fn totals(&self) -> Totals {
        self.clients.door.counters().totals()
    }

    /// Closes all connections and returns when their tasks have ended and executed all requests
    /// received so far.
    pub(super) async fn close(&self) {
        for listener in &self.listeners {
            listener.close();
        }
        self.clients.is_over.set(true);
        for end in self.clients.open.borrow().values() {
            end();
        }
        while !self.clients.open.borrow().is_empty() {
            self.clients.is_empty.wait().await;
        }
        self.clients.door.close().await;
    }
}
