//! Doors of the Redis protocol: each is of one device, and its clients are served in the reactor
//! that has the device.

use super::connections::accept_all;
use super::places::{Place, Places};
use super::status::RedisStatus;
use super::{ServedDevice, ServedResp, ServerError};
use base::BufPool;
use clock::{Bell, Monitor};
use engine::Store;
use net::Stream;
use reactor::{TcpListener, TcpStream};
use resp::{Door, Settings, Users, serve};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// What a client is told for which there is no place.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// Memory of buffers that a door keeps of each size.
const POOL_BYTES: usize = 16 << 20;

/// Where clients of a device come in, before there is a reactor for them.
pub(super) struct RespGate {
    /// The device, by its place in the server's list.
    pub(super) device: usize,
    listener: TcpListener,
    users: Users,
    places: Places,
}

impl RespGate {
    /// Listens for each of `devices` that has a door.
    pub(super) fn bind_all(
        devices: &[ServedDevice],
        places: &Places,
    ) -> Result<Vec<Self>, ServerError> {
        let doors = devices.iter().enumerate();
        let doors = doors.filter_map(|(place, device)| Some((place, device.resp.as_ref()?)));
        let bind = |(device, served): (usize, &ServedResp)| {
            let (address, users) = (served.address, served.users.clone());
            let listener = TcpListener::bind(address);
            let listener = listener.map_err(|error| ServerError::Listen { address, error })?;
            Ok(Self { device, listener, users, places: places.clone() })
        };
        doors.map(bind).collect()
    }

    /// The device, and where its clients connect.
    pub(super) fn address(&self) -> Result<(usize, SocketAddr), ServerError> {
        Ok((self.device, self.listener.local_address()?))
    }

    /// Lets clients in, to `store`, which is used inside of `monitor`. Runs inside the reactor.
    pub(super) async fn open(
        self,
        store: Arc<Store>,
        monitor: Option<Arc<Monitor>>,
    ) -> Result<RespDoor, ServerError> {
        let Self { device, listener, users, places } = self;
        let door = Rc::new(Door::new(store, users, Settings::default(), BufPool::new(POOL_BYTES)));
        let prepared = within(monitor.as_ref(), door.prepare()).await;
        prepared.map_err(ServerError::Resp)?;
        let (tended, inside) = (door.clone(), monitor.clone());
        clock::spawn(async move { within(inside.as_ref(), tended.tend()).await });
        let clients = Rc::new(Clients {
            door,
            monitor,
            open: RefCell::default(),
            is_over: Cell::new(false),
            is_empty: Bell::new(),
        });
        let listener = Rc::new(listener);
        let (accepting, serving) = (listener.clone(), clients.clone());
        clock::spawn(async move {
            accept_all(&accepting, |stream, _, _| {
                match places.take() {
                    Some(place) => serving.clone().serve(stream, place),
                    // It fits what the kernel keeps for any connection.
                    None => drop(stream.try_write(&[IoSlice::new(FULL)])),
                }
            })
            .await;
        });
        Ok(RespDoor { device, listener, clients })
    }
}

/// Does something inside of `monitor`, if the store has one.
async fn within<T>(monitor: Option<&Arc<Monitor>>, does: impl Future<Output = T>) -> T {
    match monitor {
        Some(monitor) => monitor.enter(does).await,
        None => does.await,
    }
}

/// The door of a device, while it is open.
pub(super) struct RespDoor {
    /// The device, by its place in the server's list.
    pub(super) device: usize,
    listener: Rc<TcpListener>,
    clients: Rc<Clients>,
}

/// Who has come in.
struct Clients {
    door: Rc<Door>,
    monitor: Option<Arc<Monitor>>,
    /// By number.
    open: RefCell<BTreeMap<u64, Rc<TcpStream>>>,
    /// Whether those that come are closed at once.
    is_over: Cell<bool>,
    /// Rings when there are none any more.
    is_empty: Bell,
}

impl Clients {
    /// Serves one, in a task of its own.
    fn serve(self: Rc<Self>, stream: TcpStream, place: Place) {
        if self.is_over.get() {
            return;
        }
        let (stream, number) = (Rc::new(stream), place.number);
        self.open.borrow_mut().insert(number, stream.clone());
        clock::spawn(async move {
            within(self.monitor.as_ref(), serve(stream, self.door.clone())).await;
            drop(place);
            let mut open = self.open.borrow_mut();
            open.remove(&number);
            if open.is_empty() {
                self.is_empty.ring();
            }
        });
    }
}

impl RespDoor {
    /// What its clients have done.
    pub(super) fn status(&self) -> RedisStatus {
        let counters = self.clients.door.counters();
        RedisStatus {
            clients: self.clients.open.borrow().len() as u64,
            connections: counters.connections(),
            commands: counters.commands(),
            bytes_received: counters.read_bytes(),
            bytes_sent: counters.written_bytes(),
        }
    }

    /// Ends all connections, and returns when they are over: what was asked is done by then.
    pub(super) async fn close(&self) {
        self.listener.close();
        self.clients.is_over.set(true);
        for stream in self.clients.open.borrow().values() {
            stream.shut_down();
        }
        while !self.clients.open.borrow().is_empty() {
            self.clients.is_empty.wait().await;
        }
        self.clients.door.close().await;
    }
}
