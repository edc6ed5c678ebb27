//! Redis services: each is of one device, whose reactor accepts its clients. They are dealt to all
//! reactors that may use the device.

use super::arrivals::{MovedConnection, RespArrival, RespService};
use super::certificates::Certificates;
use super::connections::accept_all;
use super::error::ServerError;
use super::movable_connections::{MovableConnection, MovableConnections};
use super::places::ConnectionLimit;
use super::served_resp::{ServedResp, ServedTls};
use super::setup::ServedDevice;
use super::status::{ClientStatus, RedisStatus};
use super::tenants::{Gate, Member, TenantStream, metered};
use base::{BufPool, Nanos};
use clock::{BusyStage, Notify};
use engine::Store;
use net::{MoveRequest, Stream};
use reactor::{TcpListener, TcpStream};
use resp::{
    Account, ArrivingClient, ClientLimits, Door, Ends, Left, Settings, Totals, Users,
    serve_until_moved, turn_away,
};
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

    /// Starts to accept clients of `store`, and passes each to `deal`. Runs inside the reactor.
    pub(super) async fn open(
        self,
        store: Arc<Store>,
        deal: Rc<dyn Fn(RespArrival)>,
    ) -> Result<RespDoor, ServerError> {
        let Self { device, plain, tls, users, settings, places } = self;
        let door = Arc::new(Door::new(store, users, settings, BufPool::new(POOL_BYTES)));
        door.prepare().await.map_err(ServerError::Resp)?;
        let tended = door.clone();
        clock::spawn(async move {
            clock::name_task("expiry");
            tended.tend().await;
        });
        let service = RespService::new(door);
        let mut listeners = Vec::new();
        if let Some(listener) = plain {
            let (listener, places) = (Rc::new(listener), places.clone());
            let (service, deal) = (service.clone(), deal.clone());
            listeners.push(listener.clone());
            clock::spawn(async move {
                accept_all(&listener, |stream, address, host| match places.take() {
                    Some(place) => {
                        let (service, client) = (service.connect(), new_client(host, address));
                        deal(RespArrival { service, stream, place, client, tls: None });
                    }
                    None => turn_away(&stream, &service.door),
                })
                .await;
            });
        }
        if let Some((listener, certificates)) = tls {
            let (listener, service) = (Rc::new(listener), service.clone());
            listeners.push(listener.clone());
            clock::spawn(async move {
                // Without a slot the connection closes: an error reply needs a handshake first.
                accept_all(&listener, |stream, address, host| match places.take() {
                    Some(place) => {
                        let (service, client) = (service.connect(), new_client(host, address));
                        let tls = Some(certificates.get());
                        deal(RespArrival { service, stream, place, client, tls });
                    }
                    None => service.door.counters().count_refused(),
                })
                .await;
            });
        }
        Ok(RespDoor { device, listeners, service })
    }
}

/// A client that has connected from the address `host` to `address`.
fn new_client(host: SocketAddr, address: SocketAddr) -> ArrivingClient {
    ArrivingClient::new(Ends::new(host.to_string(), address.to_string()))
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).map_err(|error| ServerError::Listen { address, error })
}

/// The accepting side of a device's Redis service.
pub(super) struct RespDoor {
    /// The device's index in the server's list.
    pub(super) device: usize,
    listeners: Vec<Rc<TcpListener>>,
    service: Arc<RespService>,
}

impl RespDoor {
    /// Returns the status of its clients.
    pub(super) fn status(&self) -> RedisStatus {
        let totals = self.totals();
        let busiest = self.service.door.census(CLIENTS_TOLD);
        RedisStatus {
            clients: self.service.clients(),
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
        self.service.door.counters().totals()
    }

    /// Returns the commands of its clients that each reactor executed, by its number.
    pub(super) fn commands_by_reactor(&self) -> BTreeMap<u32, u64> {
        self.service.door.commands_by_reactor()
    }

    /// Accepts no more clients.
    pub(super) fn end(&self) {
        for listener in &self.listeners {
            listener.close();
        }
    }

    /// Ends the service, which has no clients left in any reactor.
    pub(super) async fn close(&self) {
        self.service.door.close().await;
    }
}

/// The clients of Redis services that a reactor serves.
#[derive(Default)]
pub(super) struct RespClients {
    /// Functions that close each connection, by number.
    open: RefCell<BTreeMap<u64, Box<dyn Fn()>>>,
    /// Whether new connections are closed at once.
    is_over: Cell<bool>,
    /// Whether the reactor of a device has ended, for whose tasks commands may wait without end.
    is_abandoned: Cell<bool>,
    /// Notified when the last connection closes, or no longer has to.
    is_empty: Notify,
    movable: MovableConnections,
    /// Grants their turns, if the server has tenants.
    gate: Option<Rc<Gate>>,
}

impl RespClients {
    /// Creates a set without clients. It registers open clients without TLS in `movable`. `gate`
    /// grants their turns.
    pub(super) fn new(movable: MovableConnections, gate: Option<Rc<Gate>>) -> Self {
        Self { movable, gate, ..Self::default() }
    }

    /// Serves an accepted client, or one that has come from another reactor, in a task of its own.
    pub(super) fn serve(self: &Rc<Self>, arrival: RespArrival) {
        if self.is_over.get() {
            return;
        }
        let RespArrival { service, stream, place, client, tls } = arrival;
        let (number, door) = (place.number, service.door());
        let member = self.gate.as_ref().map(|gate| Member::new(gate, None));
        let of_client = member.clone();
        match tls {
            None => {
                let stream = Rc::new(stream);
                let end = ending(stream.clone(), of_client);
                let (requests, has_moved) = (client.command_counter(), client.has_moved());
                let connection = self.movable.open(number, stream.clone(), requests, has_moved);
                let movable = self.movable.clone();
                self.let_in(end, number, async move {
                    let left = answer_until_moved(&connection, stream, door, client, member).await;
                    if let Some((stream, client)) = left {
                        let moved = RespArrival { service, stream, place, client, tls: None };
                        movable.depart(&connection, MovedConnection::Redis(moved));
                    }
                });
            }
            Some(tls) => {
                let stream = Rc::new(TlsStream::of_server(stream, &tls));
                let end = ending(stream.clone(), of_client);
                self.let_in(end, number, async move {
                    match stream.handshake(HANDSHAKE_LIMIT).await {
                        Ok(()) => {
                            answer(stream.clone(), door, client, Rc::default(), member).await;
                        }
                        Err(_) => stream.shut_down(),
                    }
                    // The slot stays taken until all sent bytes have left.
                    stream.drained().await;
                    drop((place, service));
                });
            }
        }
    }

    fn let_in(
        self: &Rc<Self>,
        end: Box<dyn Fn()>,
        number: u64,
        served: impl Future<Output = ()> + 'static,
    ) {
        let clients = self.clone();
        // Boxed: the waiting future would hold several times its size.
        let served = Box::pin(served);
        self.open.borrow_mut().insert(number, end);
        clock::spawn(async move {
            clock::name_task("redis connection");
            clock::set_busy_stage(BusyStage::Receive);
            served.await;
            clients.movable.close(number);
            let mut open = clients.open.borrow_mut();
            open.remove(&number);
            if open.is_empty() {
                clients.is_empty.notify();
            }
        });
    }

    /// Returns the number of open connections.
    pub(super) fn count(&self) -> u64 {
        self.open.borrow().len() as u64
    }

    /// Closes all connections, and returns when their tasks have ended and executed all requests
    /// received so far. Later ones are closed at once.
    pub(super) async fn end(&self) {
        self.is_over.set(true);
        for end in self.open.borrow().values() {
            end();
        }
        while !self.open.borrow().is_empty() && !self.is_abandoned.get() {
            self.is_empty.wait().await;
        }
    }

    /// Lets [`Self::end`] return: the reactor of a device has ended.
    pub(super) fn abandon(&self) {
        self.is_abandoned.set(true);
        self.is_empty.notify();
    }
}

/// Serves a client until it is over, or leaves for another reactor. Then returns what that one
/// gets.
async fn answer_until_moved(
    connection: &MovableConnection,
    stream: Rc<TcpStream>,
    door: Arc<Door>,
    mut client: ArrivingClient,
    member: Option<Rc<Member>>,
) -> Option<(TcpStream, ArrivingClient)> {
    loop {
        let (stream, door, member) = (stream.clone(), door.clone(), member.clone());
        let left = answer(stream, door, client, connection.moves(), member).await;
        let Left::Moved(moved) = left else { return None };
        match connection.hand_over() {
            Some(stream) => return Some((stream, moved)),
            None => client = moved,
        }
    }
}

async fn answer(
    stream: Rc<impl Stream>,
    door: Arc<Door>,
    client: ArrivingClient,
    moves: Rc<MoveRequest>,
    member: Option<Rc<Member>>,
) -> Left {
    // Boxed: the enclosing futures would hold several times its size for each client.
    let Some(member) = member else {
        return Box::pin(serve_until_moved(stream, door, client, (moves, None))).await;
    };
    let stream = Rc::new(TenantStream::new(stream, member.clone()));
    let account = Some(account(member.clone()));
    Box::pin(metered(member, serve_until_moved(stream, door, client, (moves, account)))).await
}

/// Returns what ends the connection of a client.
fn ending(stream: Rc<impl Stream>, member: Option<Rc<Member>>) -> Box<dyn Fn()> {
    Box::new(move || {
        stream.shut_down();
        if let Some(member) = &member {
            member.end();
        }
    })
}

/// Returns the account of a client: counts its requests, and makes it a member of the tenant of its
/// user from now on. A client belongs to none before it has authenticated.
fn account(member: Rc<Member>) -> Account {
    Rc::new(move |user, commands| {
        member.count_requests(commands);
        if !user.is_empty() {
            member.assign(member.gate().tenants().of_user(user));
        }
    })
}
