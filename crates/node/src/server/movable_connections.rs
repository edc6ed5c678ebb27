//! The open connections of a reactor that can move to other reactors.

use super::arrivals::MovedConnection;
use balance::ConnectionWork;
use net::MoveRequest;
use reactor::TcpStream;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// See the module. Clones share it.
#[derive(Clone, Default)]
pub(super) struct MovableConnections(Rc<Shared>);

#[derive(Default)]
struct Shared {
    /// By number.
    open: RefCell<BTreeMap<u64, Rc<MovableConnection>>>,
    /// Takes connections that leave for other reactors.
    departures: OnceCell<Departures>,
    migrations: Cell<Migrations>,
}

/// An open connection.
pub(super) struct MovableConnection {
    stream: Rc<TcpStream>,
    /// Returns how many requests it has received.
    requests: Box<dyn Fn() -> u64>,
    moves: Rc<MoveRequest>,
    /// The index of the reactor to which it is asked to move.
    to: Cell<usize>,
    /// What it did up to the end of the last window.
    before: Cell<ConnectionWork>,
}

/// The connections of a reactor that moved.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Migrations {
    /// Those that have come from other reactors.
    pub(super) arrived: u64,
    /// Those that have left for other reactors.
    pub(super) left: u64,
}

/// Sends a connection to the reactor with an index.
type Departures = Box<dyn Fn(usize, MovedConnection)>;

impl MovableConnections {
    /// Adds the connection with this number. `requests` returns how many requests it has received.
    /// With `has_moved`, it has come from another reactor.
    pub(super) fn open(
        &self,
        number: u64,
        stream: Rc<TcpStream>,
        requests: impl Fn() -> u64 + 'static,
        has_moved: bool,
    ) -> Rc<MovableConnection> {
        let Migrations { arrived, left } = self.migrations();
        self.0.migrations.set(Migrations { arrived: arrived + u64::from(has_moved), left });
        let connection = Rc::new(MovableConnection {
            before: Cell::new(ConnectionWork {
                number,
                requests: requests(),
                ..Default::default()
            }),
            stream,
            requests: Box::new(requests),
            moves: Rc::default(),
            to: Cell::new(0),
        });
        self.0.open.borrow_mut().insert(number, connection.clone());
        connection
    }

    /// Removes the connection with this number, if it could move.
    pub(super) fn close(&self, number: u64) {
        self.0.open.borrow_mut().remove(&number);
    }

    /// Sends an open connection to the reactor to which it was asked to move.
    pub(super) fn depart(&self, connection: &MovableConnection, moved: MovedConnection) {
        let Migrations { arrived, left } = self.migrations();
        self.0.migrations.set(Migrations { arrived, left: left + 1 });
        let departures = self.0.departures.get();
        departures.expect("it was asked to move")(connection.to.get(), moved);
    }

    /// Has `send` take connections that are asked to move, with the index of the next reactor.
    pub(super) fn leave_by(&self, send: impl Fn(usize, MovedConnection) + 'static) {
        let is_first = self.0.departures.set(Box::new(send)).is_ok();
        assert!(is_first, "a reactor has one set of links to the others");
    }

    /// Asks the connection with this number to move to the reactor with index `to`. Returns it,
    /// until it has left or ended.
    pub(super) fn ask_to_move(&self, number: u64, to: usize) -> Weak<MovableConnection> {
        let open = self.0.open.borrow();
        let Some(connection) = open.get(&number) else { return Weak::new() };
        connection.to.set(to);
        connection.moves.ask();
        Rc::downgrade(connection)
    }

    /// Returns what each connection did since the last call.
    pub(super) fn work(&self) -> Vec<ConnectionWork> {
        self.0.open.borrow().values().map(|connection| connection.work()).collect()
    }

    /// Returns how many connections moved.
    pub(super) fn migrations(&self) -> Migrations {
        self.0.migrations.get()
    }
}

impl MovableConnection {
    /// Returns the request to move, which the connection shares.
    pub(super) fn moves(&self) -> Rc<MoveRequest> {
        self.moves.clone()
    }

    /// Takes a request to move back, unless the connection has noticed it. Returns its number if it
    /// stays.
    pub(super) fn withdraw_move(&self) -> Option<u64> {
        self.moves.withdraw();
        (!self.moves.is_made()).then(|| self.before.get().number)
    }

    /// Returns its stream for another reactor. `None`: it stays, because there is no free
    /// descriptor.
    pub(super) fn hand_over(&self) -> Option<TcpStream> {
        self.stream.hand_over().ok()
    }

    fn work(&self) -> ConnectionWork {
        let (calls, bytes) = self.stream.traffic();
        let now = ConnectionWork { calls, bytes, requests: (self.requests)(), ..self.before.get() };
        let before = self.before.replace(now);
        ConnectionWork {
            number: now.number,
            calls: now.calls - before.calls,
            requests: now.requests - before.requests,
            bytes: now.bytes - before.bytes,
        }
    }
}
