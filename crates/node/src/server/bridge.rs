//! Queues between the connections of one reactor and the devices on another.
//!
//! Connections number their queues. A reused queue number gets a new life count, so a response that
//! arrives after its connection has closed is dropped.
//!
//! All reactors execute the commands of a drive on a disk. The device's reactor sends each I/O
//! queue a lease once, and the connection's reactor executes its commands. The drive closes when no
//! reactor executes commands ([`FarDevice::leave`], [`FarQueues::left`]). All reactors run until it
//! is closed ([`FarDevice::gone`]), because their tasks wait for one another.

use super::connections::{ConnectionInfo, transport_address};
use super::device_set::DeviceSet;
use clock::{Notify, Stage, Users};
use controller::{
    Capsule, Controller, Entrance, FabricQueue, HostQueue, Lease, LeasedQueue, Port, Response,
    Responses, Tenant,
};
use reactor::{Inbox, Outbox};
use spec::Command;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Capacity of an inbox in messages: as many commands as a busy connection has at a time.
pub(super) const MESSAGES: usize = 1_024;

/// A queue's slot in the tables of both sides, and how often the slot was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueId {
    place: u32,
    life: u32,
}

/// A message from a connection's reactor to a device's reactor.
#[derive(Debug)]
pub(super) enum ToDevice {
    /// A host has connected.
    Open(QueueId, ConnectionInfo),
    Submit(QueueId, Capsule),
    /// Answers the oldest unanswered [`FromDevice::Abort`] of the queue: whether the command was
    /// outstanding.
    Aborted(QueueId, bool),
    Close(QueueId),
    /// No command of a lease is in flight, and the sender starts no more.
    Left,
}

/// A message from a device's reactor to a connection's reactor.
#[derive(Debug)]
pub(super) enum FromDevice {
    Respond(QueueId, Response),
    Lease(QueueId, Box<Leased>),
    /// Requests to abort the command with this id on a leased queue.
    Abort(QueueId, u16),
    End(QueueId),
}

/// A lease of a queue, and its device.
#[derive(Debug)]
pub(super) struct Leased {
    lease: Lease,
    device: Arc<Controller>,
}

/// A queue of a connection.
struct Connection {
    responses: Rc<dyn Responses>,
    /// Its lease, if this reactor executes its I/O commands.
    leased: RefCell<Option<Rc<LeasedQueue>>>,
}

impl Connection {
    #[inline]
    fn leased(&self) -> Option<Rc<LeasedQueue>> {
        self.leased.borrow().clone()
    }
}

/// The connections of one reactor by the slots of their queues.
#[derive(Default)]
struct Connected {
    /// The slots, each with its number of earlier uses.
    places: Vec<(u32, Option<Rc<Connection>>)>,
    free: Vec<u32>,
}

impl Connected {
    /// Puts `it` into a free slot.
    fn add(&mut self, it: Rc<Connection>) -> QueueId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).expect("far fewer than 2^32 connections")
        });
        let (life, slot) = &mut self.places[place as usize];
        *slot = Some(it);
        QueueId { place, life: *life }
    }

    #[inline]
    fn get(&self, id: QueueId) -> Option<Rc<Connection>> {
        let (life, it) = self.places.get(id.place as usize)?;
        it.as_ref().filter(|_| *life == id.life).cloned()
    }

    fn all(&self) -> impl Iterator<Item = &Rc<Connection>> {
        self.places.iter().filter_map(|(_, it)| it.as_ref())
    }

    fn remove(&mut self, id: QueueId) {
        let (life, it) = &mut self.places[id.place as usize];
        assert!(*life == id.life && it.take().is_some(), "a queue is closed once");
        *life = life.wrapping_add(1);
        self.free.push(id.place);
    }
}

/// The devices of one reactor, as the connections of another reactor use them.
pub(super) struct FarDevice {
    commands: Outbox<ToDevice>,
    queues: RefCell<Connected>,
    /// Queues that this reactor executes, until their last commands have ended.
    leased: Users,
    is_leaving: Cell<bool>,
    /// Whether the device's reactor has ended, which it does after it has closed its devices.
    is_gone: Cell<bool>,
    gone: Notify,
}

impl FarDevice {
    /// Returns a device that sends to `commands`. Spawns a task that handles messages from
    /// `responses` until the device is gone.
    pub(super) fn new(commands: Outbox<ToDevice>, responses: Inbox<FromDevice>) -> Rc<Self> {
        let device = Rc::new(Self {
            commands,
            queues: RefCell::default(),
            leased: Users::default(),
            is_leaving: Cell::new(false),
            is_gone: Cell::new(false),
            gone: Notify::new(),
        });
        let it = device.clone();
        clock::spawn(async move {
            while let Some(message) = responses.receive().await {
                it.hear(message);
            }
            it.is_gone.set(true);
            // Commands may wait for the device's reactor without end.
            it.leased.abandon();
            it.gone.notify();
        });
        device
    }

    fn hear(&self, message: FromDevice) {
        let connection = |id| self.queues.borrow().get(id);
        match message {
            FromDevice::Respond(id, response) => {
                let Some(connection) = connection(id) else { return };
                match connection.leased() {
                    Some(queue) => queue.relay(response),
                    None => connection.responses.respond(response),
                }
            }
            FromDevice::Lease(id, leased) => {
                if let Some(connection) = connection(id).filter(|_| !self.is_leaving.get()) {
                    let queue = self.take(*leased, connection.responses.clone());
                    *connection.leased.borrow_mut() = Some(Rc::new(queue));
                }
            }
            FromDevice::Abort(id, command_id) => {
                // If the queue is closed, a `Close` message is already on its way.
                if let Some(connection) = connection(id) {
                    let was_there =
                        connection.leased().is_some_and(|queue| queue.abort(command_id));
                    self.commands.send(ToDevice::Aborted(id, was_there));
                }
            }
            FromDevice::End(id) => {
                let Some(connection) = connection(id) else { return };
                match connection.leased() {
                    Some(queue) => queue.end(),
                    None => connection.responses.end(),
                }
            }
        }
    }

    fn take(&self, leased: Leased, responses: Rc<dyn Responses>) -> LeasedQueue {
        LeasedQueue::new(leased.lease, leased.device, responses, self.leased.add())
    }

    /// Returns the port for a host that connected by `way`.
    pub(super) fn port(self: &Rc<Self>, way: ConnectionInfo) -> Rc<dyn Port> {
        Rc::new(FarPort { device: self.clone(), way })
    }

    /// Stops starting commands and closes the connections: a connection that waits for a response
    /// would wait for ever.
    pub(super) fn end(&self) {
        self.is_leaving.set(true);
        let connections: Vec<_> = self.queues.borrow().all().cloned().collect();
        for connection in connections {
            if let Some(queue) = connection.leased.take() {
                queue.close();
            }
            connection.responses.end();
        }
    }

    /// Waits for commands in flight to end, then tells the device's reactor that this one has left.
    pub(super) async fn leave(&self) {
        self.leased.end(Stage::Queue).await;
        self.commands.send(ToDevice::Left);
    }

    /// Returns when the device's reactor has closed its devices or has ended otherwise.
    pub(super) async fn gone(&self) {
        while !self.is_gone.get() {
            self.gone.wait().await;
        }
    }
}

struct FarPort {
    device: Rc<FarDevice>,
    way: ConnectionInfo,
}

impl Port for FarPort {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let device = self.device.clone();
        let connection = Rc::new(Connection { responses, leased: RefCell::default() });
        let id = device.queues.borrow_mut().add(connection.clone());
        device.commands.send(ToDevice::Open(id, self.way));
        Rc::new(FarQueue { device, id, connection })
    }
}

struct FarQueue {
    device: Rc<FarDevice>,
    id: QueueId,
    connection: Rc<Connection>,
}

impl HostQueue for FarQueue {
    fn submit(&self, capsule: Capsule) {
        let left = match &*self.connection.leased.borrow() {
            Some(queue) => queue.submit(capsule),
            // The device's reactor may not know of the stop yet, and would answer that it does not
            // execute commands of this queue.
            None if self.device.is_leaving.get() => None,
            None => Some(capsule),
        };
        if let Some(capsule) = left {
            self.device.commands.send(ToDevice::Submit(self.id, capsule));
        }
    }

    fn execute_held(&self) {
        if let Some(queue) = &*self.connection.leased.borrow() {
            queue.execute_held();
        }
    }

    fn close(&self) {
        if let Some(queue) = self.connection.leased.take() {
            queue.close();
        }
        self.device.commands.send(ToDevice::Close(self.id));
        self.device.queues.borrow_mut().remove(self.id);
    }
}

/// A connection of another reactor, as the device's reactor sees it.
struct FarConnection {
    id: QueueId,
    queues: Rc<FarQueues>,
}

impl Responses for FarConnection {
    fn respond(&self, response: Response) {
        self.queues.responses.send(FromDevice::Respond(self.id, response));
    }

    fn end(&self) {
        self.queues.responses.send(FromDevice::End(self.id));
    }

    /// Returns `None`: the other reactor would have to be asked. Base 2.1, Abort command: a
    /// controller need not abort.
    fn withdraw(&self, _: u16) -> Option<Command> {
        None
    }
}

impl Tenant for FarConnection {
    fn number(&self) -> u32 {
        self.queues.reactor
    }

    fn lease(&self, device: &Arc<Controller>, lease: Lease) -> bool {
        if !self.queues.device_set.is_shared(device) {
            return false;
        }
        let leased = Box::new(Leased { lease, device: device.clone() });
        self.queues.responses.send(FromDevice::Lease(self.id, leased));
        true
    }

    fn abort(&self, command_id: u16) {
        self.queues.responses.send(FromDevice::Abort(self.id, command_id));
    }
}

/// The queues of another reactor's connections, in the reactor of the devices.
pub(super) struct FarQueues {
    device_set: Rc<DeviceSet>,
    /// The number of the other reactor.
    reactor: u32,
    responses: Outbox<FromDevice>,
    /// By slot, without the number of uses: the messages of a queue arrive in order.
    queues: RefCell<Vec<Option<FabricQueue>>>,
    is_over: Cell<bool>,
    /// Whether the other reactor has stopped executing commands.
    has_left: Cell<bool>,
    left: Notify,
}

impl FarQueues {
    /// Creates the queues of the reactor `reactor`, which receives from `responses`.
    pub(super) fn new(
        device_set: Rc<DeviceSet>,
        reactor: u32,
        responses: Outbox<FromDevice>,
    ) -> Rc<Self> {
        Rc::new(Self {
            device_set,
            reactor,
            responses,
            queues: RefCell::default(),
            is_over: Cell::new(false),
            has_left: Cell::new(false),
            left: Notify::new(),
        })
    }

    /// Handles messages from `commands` until the other reactor has left or is gone.
    pub(super) async fn serve(self: Rc<Self>, commands: Inbox<ToDevice>) {
        while let Some(message) = commands.receive().await {
            match message {
                ToDevice::Left => break,
                _ if self.is_over.get() => {}
                ToDevice::Open(id, way) => self.open(id, way),
                ToDevice::Submit(id, capsule) => self.with(id, |queue| {
                    queue.submit(capsule);
                    queue.execute_held();
                }),
                ToDevice::Aborted(id, was_there) => self.with(id, |queue| queue.aborted(was_there)),
                ToDevice::Close(id) => {
                    let queue = self.queues.borrow_mut()[id.place as usize].take();
                    queue.expect("a queue is closed once").close();
                }
            }
        }
        self.end();
        self.has_left.set(true);
        self.left.notify();
    }

    fn with(&self, id: QueueId, does: impl FnOnce(&FabricQueue)) {
        let queues = self.queues.borrow();
        does(queues[id.place as usize].as_ref().expect("a queue is open until it is closed"));
    }

    fn open(self: &Rc<Self>, id: QueueId, way: ConnectionInfo) {
        let subsystems = self.device_set.subsystems.clone();
        let entrance = Entrance::new(subsystems, transport_address(way.address));
        let entrance = entrance.of_connection(way.number);
        let connection = Rc::new(FarConnection { id, queues: self.clone() });
        let queue = entrance.queue_of(connection.clone(), connection);
        let place = id.place as usize;
        let mut queues = self.queues.borrow_mut();
        let places = queues.len().max(place + 1);
        queues.resize_with(places, || None);
        queues[place] = Some(queue);
    }

    /// Closes all queues and ignores later messages of the other reactor.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        for queue in self.queues.take().into_iter().flatten() {
            queue.close();
        }
    }

    /// Returns when the other reactor has stopped executing commands.
    pub(super) async fn left(&self) {
        while !self.has_left.get() {
            self.left.wait().await;
        }
    }
}
