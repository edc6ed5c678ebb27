//! Sockets for virtual machines. Each is an entrance to one subsystem, and the reactor that has its
//! device serves it: a PCIe function for one virtual machine at a time.

use super::connections::{ConnectionCensus, PAUSE};
use super::error::ServerError;
use super::no_function::NoFunction;
use super::pace::Pace;
use super::places::{ConnectionLimit, ConnectionPermit};
use super::polled_function::PolledFunction;
use super::served_vfio::Doorbells;
use super::setup::ServedSubsystem;
use base::Nanos;
use clock::{BusyStage, Notify, Stage, Users};
use controller::Entrance;
use pcie::{DoorbellPage, NvmeFunction, PciFunction};
use reactor::{AcceptError, UnixListener, UnixStream};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use vfio_user::{Ended, MappedDoorbells, UnsharedMemory};

/// How long a new connection waits for the end of the one before. Its process may have been killed,
/// and the kernel reports that to another task.
const GRACE: Nanos = Nanos::from_millis(100);

const SECOND: &str = "a second connection was closed: a socket is for one virtual machine";

const NO_CONTROLLER: &str = "a connection was closed: the subsystem has as many controllers as \
                             `associations` in [limits] allows";

/// The listener of a vfio-user socket, bound before its reactor runs.
pub(super) struct VfioListener {
    /// The index of the device in the server's list.
    pub(super) device: usize,
    nqn: String,
    path: PathBuf,
    doorbells: Doorbells,
    listener: UnixListener,
    places: ConnectionLimit,
}

impl VfioListener {
    /// Binds the sockets of all `subsystems`.
    pub(super) fn bind_all(
        subsystems: &[ServedSubsystem],
        places: &ConnectionLimit,
    ) -> Result<Vec<Self>, ServerError> {
        let sockets = subsystems.iter().flat_map(|subsystem| {
            subsystem.vfio_user.iter().map(move |path| (subsystem, path.clone()))
        });
        let bind = |(subsystem, path): (&ServedSubsystem, PathBuf)| {
            let listener = match UnixListener::bind(&path) {
                Ok(listener) => listener,
                Err(error) => return Err(ServerError::VfioUser { path, error }),
            };
            let (nqn, places) = (subsystem.nqn.clone(), places.clone());
            let &ServedSubsystem { device, doorbells, .. } = subsystem;
            Ok(Self { device, nqn, path, doorbells, listener, places })
        };
        sockets.map(bind).collect()
    }

    /// Serves virtual machines by `entrance`, whose queues count as `users`. Runs inside the
    /// reactor.
    pub(super) fn open(
        self,
        entrance: Entrance,
        users: Users,
        tell: Sender<String>,
    ) -> Rc<VfioSocket> {
        let Self { nqn, path, doorbells, listener, places, .. } = self;
        let (session, is_idle) = (RefCell::default(), Notify::new());
        let (connections, is_over) = (Cell::new(0), Cell::new(false));
        let (next, held) = (RefCell::default(), Cell::new(0));
        let socket = Rc::new(VfioSocket {
            nqn,
            path,
            doorbells,
            listener,
            places,
            entrance,
            users,
            tell,
            session,
            next,
            held,
            is_idle,
            connections,
            is_over,
        });
        let accepting = socket.clone();
        clock::spawn(async move { accepting.accept_all().await });
        socket
    }
}

/// A vfio-user socket in the reactor of its device.
pub(super) struct VfioSocket {
    nqn: String,
    path: PathBuf,
    doorbells: Doorbells,
    listener: UnixListener,
    places: ConnectionLimit,
    entrance: Entrance,
    users: Users,
    /// Takes messages for the server's operator.
    tell: Sender<String>,
    session: RefCell<Option<Session>>,
    /// A connection that waits for the end of the session, and its number among such ones.
    next: RefCell<Option<(u64, UnixStream)>>,
    /// How many have waited.
    held: Cell<u64>,
    /// Notified when the session ends.
    is_idle: Notify,
    /// Connections that were served.
    connections: Cell<u64>,
    /// Whether new connections are closed at once.
    is_over: Cell<bool>,
}

/// The connection of a virtual machine.
struct Session {
    stream: Rc<UnixStream>,
    /// Its connection slot, freed when the session ends.
    place: ConnectionPermit,
}

impl VfioSocket {
    async fn accept_all(self: Rc<Self>) {
        let mut pace = Pace::default();
        loop {
            pace.wait().await;
            match self.listener.accept().await {
                Ok(stream) => self.let_in(stream),
                Err(AcceptError::Closed) => return,
                Err(AcceptError::Failed(_)) => clock::sleep(PAUSE, Stage::Queue).await,
            }
        }
    }

    fn let_in(self: &Rc<Self>, stream: UnixStream) {
        if self.is_over.get() {
            return;
        }
        if self.session.borrow().is_some() {
            return self.hold(stream);
        }
        let Some(place) = self.places.take() else {
            return self.say("a connection was closed: the limit of connections is reached");
        };
        self.connections.set(self.connections.get() + 1);
        let (socket, stream, number) = (self.clone(), Rc::new(stream), place.number);
        *self.session.borrow_mut() = Some(Session { stream: stream.clone(), place });
        clock::spawn(async move {
            clock::name_task("vfio-user connection");
            clock::set_busy_stage(BusyStage::Receive);
            // Boxed: the enclosing future would hold several times its size.
            if let Some(sentence) = Box::pin(socket.serve(&stream, number)).await {
                socket.say(&sentence);
            }
            socket.session.take();
            socket.is_idle.notify();
            if let Some((_, next)) = socket.next.take() {
                socket.let_in(next);
            }
        });
    }

    /// Holds a connection for [`GRACE`]: until then the session may end, and it is the next.
    fn hold(self: &Rc<Self>, stream: UnixStream) {
        let number = self.held.get() + 1;
        self.held.set(number);
        if self.next.replace(Some((number, stream))).is_some() {
            self.say(SECOND);
        }
        let socket = self.clone();
        clock::spawn(async move {
            clock::sleep(GRACE, Stage::Queue).await;
            let late = socket.next.borrow_mut().take_if(|(held, _)| *held == number);
            if late.is_some() {
                socket.say(SECOND);
            }
        });
    }

    /// Serves a virtual machine until it leaves. Returns a sentence if that has another reason.
    async fn serve(self: &Rc<Self>, stream: &UnixStream, connection: u64) -> Option<String> {
        let entrance = self.entrance.clone().of_connection(connection);
        let polled = OnceCell::new();
        let doorbells = match self.doorbells {
            Doorbells::Trapped => None,
            Doorbells::Mapped => match MappedDoorbells::new() {
                Ok(doorbells) => Some(Rc::new(doorbells)),
                Err(error) => {
                    return Some(format!("a connection was closed: no page of doorbells: {error}"));
                }
            },
        };
        let page = doorbells.clone().map(|doorbells| doorbells as Rc<dyn DoorbellPage>);
        let socket = self.clone();
        let tell = move |unshared: UnsharedMemory| socket.say(&unshared.to_string());
        let make = |memory, interrupts| -> Rc<dyn PciFunction> {
            let function = NvmeFunction::new(&entrance, &self.nqn, memory, interrupts, page);
            let Some(function) = function else {
                stream.shut_down();
                return Rc::new(NoFunction);
            };
            polled.get_or_init(|| PolledFunction::new(function.clone()));
            Rc::new(function)
        };
        match vfio_user::serve(stream, doorbells, tell, make).await {
            _ if polled.get().is_none() => Some(NO_CONTROLLER.to_owned()),
            Ended::ClientLeft | Ended::ShutDown => None,
            ended => Some(ended.to_string()),
        }
    }

    fn say(&self, sentence: &str) {
        // The receiver is gone if the operator does not listen.
        drop(self.tell.send(format!("{}: {sentence}", self.path.display())));
    }

    /// Returns the connection of a virtual machine, if any.
    pub(super) fn census(&self) -> Option<ConnectionCensus> {
        self.session.borrow().as_ref().map(|session| ConnectionCensus {
            number: session.place.number,
            host: self.path.display().to_string(),
            memory_bytes: 0,
        })
    }

    /// Returns the number of connections that it served.
    pub(super) fn count(&self) -> u64 {
        self.connections.get()
    }

    /// Closes the socket and the connection, and returns when the commands of the virtual machine
    /// have ended.
    pub(super) async fn close(&self) {
        self.is_over.set(true);
        self.listener.close();
        self.next.take();
        if let Some(session) = &*self.session.borrow() {
            session.stream.shut_down();
        }
        while self.session.borrow().is_some() {
            self.is_idle.wait().await;
        }
        self.users.end(Stage::Queue).await;
    }
}
