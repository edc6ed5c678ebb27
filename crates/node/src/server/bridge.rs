//! Queues between the connections of one reactor and the emulated devices on another.
//!
//! The model of an emulated device runs in one reactor, and commands for it go there as messages.
//! Connections number their queues. A reused queue number gets a new life count, so a response that
//! arrives after its connection has closed is dropped.
//!
//! A connection without a command in flight can move to another reactor. Its queue stays open in
//! the device's reactor, which responds to the other one after its request ([`ToDevice::Adopt`]).
//! The old slot stays in use until the device's reactor has taken it out ([`FromDevice::Left`]).
//!
//! Each reactor executes the commands of its connections on a drive without emulation itself, or
//! has another one do it ([`PeerDevices::near_port`]). The drive closes when no reactor executes
//! commands ([`PeerDevices::leave`], [`FarQueues::left`]). All reactors run until it is closed
//! ([`PeerDevices::gone`]), because their tasks wait for one another, and the drive for pieces of
//! its work.

use super::arrivals::ConnectionInfo;
use super::connections::transport_address;
use super::device_set::DeviceSet;
use clock::{BusyStage, Notify, Stage, Users};
use controller::{
    Capsule, DetachedQueue, Entrance, HostQueue, Placement, Port, Response, Responses, Subsystems,
};
use reactor::{Inbox, Outbox};
use spec::{AdminOpcode, Command, ConnectData, FabricsType};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::FromBytes;

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
    /// The connection with this number has come from another reactor. Its queue is open.
    Adopt(QueueId, u64),
    Submit(QueueId, Capsule),
    Close(QueueId),
    /// The sender executes no command on the devices, and starts no more.
    Left,
}

/// A message from a device's reactor to a connection's reactor.
#[derive(Debug)]
pub(super) enum FromDevice {
    /// The devices are open, and hosts can connect.
    Ready,
    Respond(QueueId, Response),
    End(QueueId),
    /// The connection has moved. Its slot is free.
    Left(QueueId),
}

/// A queue whose commands go to the device's reactor.
struct Forwarded {
    responses: Rc<dyn Responses>,
    state: Cell<ForwardedState>,
    /// The subsystem that its Connect has named, if it is an I/O queue.
    subsystem: RefCell<Option<String>>,
    /// Commands without a response.
    in_flight: Cell<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ForwardedState {
    /// No Connect has succeeded.
    Unbound,
    /// It has come from another reactor. The device's reactor has not yet responded to this one.
    Adopted,
    Bound,
    /// The controller has ended it.
    Ended,
}

impl Forwarded {
    fn new(responses: Rc<dyn Responses>) -> Self {
        let (subsystem, in_flight) = (RefCell::default(), Cell::new(0));
        Self { responses, state: Cell::new(ForwardedState::Unbound), subsystem, in_flight }
    }

    /// Continues a queue that another reactor has detached.
    fn adopted(queue: DetachedQueue, responses: Rc<dyn Responses>) -> Self {
        let subsystem = RefCell::new(Some(queue.into_forwarded()));
        let state = Cell::new(ForwardedState::Adopted);
        Self { state, subsystem, ..Self::new(responses) }
    }

    fn count(&self, capsule: &Capsule) {
        // The router also sends a Connect after outstanding commands to where these are.
        if self.state.get() == ForwardedState::Unbound
            && self.in_flight.get() == 0
            && let Some(name) = connected_subsystem(capsule)
        {
            let is_io = capsule.command.queue_id() != 0;
            self.subsystem.replace(is_io.then_some(name));
        }
        let commands = 1 + usize::from(capsule.second.is_some());
        self.in_flight.set(self.in_flight.get() + commands);
    }

    fn respond(&self, response: Response) {
        self.in_flight.set(self.in_flight.get() - 1);
        let is_bound = match self.state.get() {
            // No command succeeds before the Connect.
            ForwardedState::Unbound => response.entry.status().is_success(),
            ForwardedState::Adopted => true,
            ForwardedState::Bound | ForwardedState::Ended => false,
        };
        if is_bound {
            self.state.set(ForwardedState::Bound);
        }
        self.responses.respond(response);
    }

    fn end(&self) {
        self.state.set(ForwardedState::Ended);
        self.responses.end();
    }

    fn may_move(&self) -> bool {
        self.state.get() == ForwardedState::Bound && self.subsystem.borrow().is_some()
    }
}

/// Returns the name of the subsystem that `capsule` connects to, if it is a Connect.
pub(super) fn connected_subsystem(capsule: &Capsule) -> Option<String> {
    let command = &capsule.command;
    let is_connect = command.admin_opcode() == AdminOpcode::FABRICS
        && command.fabrics_type() == FabricsType::CONNECT;
    if !is_connect {
        return None;
    }
    let data = ConnectData::read_from_bytes(capsule.data.bytes()?).ok()?;
    Some(data.subsystem.as_str()?.to_owned())
}

/// The connections of one reactor by the slots of their queues.
#[derive(Default)]
struct Connected {
    /// The slots, each with its number of earlier uses.
    places: Vec<(u32, Option<Rc<Forwarded>>)>,
    free: Vec<u32>,
}

impl Connected {
    /// Puts `it` into a free slot.
    fn add(&mut self, it: Rc<Forwarded>) -> QueueId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).expect("far fewer than 2^32 connections")
        });
        let (life, slot) = &mut self.places[place as usize];
        *slot = Some(it);
        QueueId { place, life: *life }
    }

    #[inline]
    fn get(&self, id: QueueId) -> Option<Rc<Forwarded>> {
        let (life, it) = self.places.get(id.place as usize)?;
        it.as_ref().filter(|_| *life == id.life).cloned()
    }

    fn all(&self) -> Vec<Rc<Forwarded>> {
        self.places.iter().filter_map(|(_, it)| it.clone()).collect()
    }

    /// Empties a slot, which stays in use.
    fn take(&mut self, id: QueueId) {
        let (life, it) = &mut self.places[id.place as usize];
        assert!(*life == id.life && it.take().is_some(), "a queue leaves its slot once");
    }

    /// Frees an empty slot.
    fn free(&mut self, id: QueueId) {
        let (life, it) = &mut self.places[id.place as usize];
        assert!(*life == id.life && it.is_none(), "a slot is freed once");
        *life = life.wrapping_add(1);
        self.free.push(id.place);
    }
}

/// Whether the reactor of a device has opened its devices. It ends after it has closed them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeviceState {
    Opening,
    Open,
    Gone,
}

/// The devices of one reactor, as the connections of another reactor use them.
pub(super) struct PeerDevices {
    commands: Outbox<ToDevice>,
    queues: RefCell<Connected>,
    subsystems: Arc<Subsystems>,
    /// The number of this reactor.
    reactor: u32,
    /// Which reactors execute the commands of its queues on drives. `None`: this one.
    placement: Option<Rc<dyn Placement>>,
    /// The queues of this reactor's connections that execute commands in this reactor.
    users: Users,
    /// Whether [`Self::end`] was called.
    is_ending: Cell<bool>,
    state: Cell<DeviceState>,
    /// Notified when `state` has changed.
    changed: Notify,
}

impl PeerDevices {
    /// Returns the devices of `subsystems` for the connections of this reactor, which has number
    /// `reactor` and whose commands `placement` places. Sends to `commands`, and spawns a task that
    /// handles messages from `responses` until the devices are gone.
    pub(super) fn new(
        subsystems: Arc<Subsystems>,
        (reactor, placement): (u32, Option<Rc<dyn Placement>>),
        commands: Outbox<ToDevice>,
        responses: Inbox<FromDevice>,
    ) -> Rc<Self> {
        let device = Rc::new(Self {
            commands,
            queues: RefCell::default(),
            subsystems,
            reactor,
            placement,
            users: Users::default(),
            is_ending: Cell::new(false),
            state: Cell::new(DeviceState::Opening),
            changed: Notify::new(),
        });
        let it = device.clone();
        clock::spawn(async move {
            clock::set_busy_stage(BusyStage::Complete);
            while let Some(message) = responses.receive().await {
                it.hear(message);
            }
            it.set_state(DeviceState::Gone);
            // Commands may wait for the device's reactor without end.
            it.users.abandon();
        });
        device
    }

    fn hear(&self, message: FromDevice) {
        let connection = |id| self.queues.borrow().get(id);
        match message {
            FromDevice::Ready => self.set_state(DeviceState::Open),
            FromDevice::Respond(id, response) => {
                if let Some(connection) = connection(id) {
                    connection.respond(response);
                }
            }
            FromDevice::End(id) => {
                if let Some(connection) = connection(id) {
                    connection.end();
                }
            }
            FromDevice::Left(id) => self.queues.borrow_mut().free(id),
        }
    }

    fn set_state(&self, state: DeviceState) {
        self.state.set(state);
        self.changed.notify();
    }

    /// Returns the port of an emulated device for a host that connected by `way`.
    pub(super) fn far_port(self: &Rc<Self>, way: ConnectionInfo) -> Rc<dyn Port> {
        Rc::new(FarPort { device: self.clone(), way })
    }

    /// Returns the port of a drive whose commands this reactor executes for a host that connected
    /// by `way`.
    pub(super) fn near_port(&self, way: ConnectionInfo) -> Rc<dyn Port> {
        let address = transport_address(way.address);
        let entrance = Entrance::new(self.subsystems.clone(), address).of_connection(way.number);
        let entrance = entrance.in_reactor(self.reactor, self.users.clone());
        Rc::new(entrance.placed_by(self.placement.clone()))
    }

    /// Closes the connections of emulated devices, also later ones: one that waits for a response
    /// would wait for ever.
    pub(super) fn end(&self) {
        self.is_ending.set(true);
        let connections = self.queues.borrow().all();
        for connection in connections {
            connection.responses.end();
        }
    }

    /// Waits for commands in flight in this reactor to end, then tells the device's reactor that
    /// this one has left. All connections are closed.
    pub(super) async fn leave(&self) {
        self.users.end(Stage::Queue).await;
        self.commands.send(ToDevice::Left);
    }

    /// Returns when the device's reactor has opened its devices or has ended.
    pub(super) async fn opened(&self) {
        while self.state.get() == DeviceState::Opening {
            self.changed.wait().await;
        }
    }

    /// Returns when the device's reactor has closed its devices or has ended otherwise.
    pub(super) async fn gone(&self) {
        while self.state.get() != DeviceState::Gone {
            self.changed.wait().await;
        }
    }
}

struct FarPort {
    device: Rc<PeerDevices>,
    way: ConnectionInfo,
}

impl Port for FarPort {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let queue = self.forward(Forwarded::new(responses));
        self.device.commands.send(ToDevice::Open(queue.id, self.way));
        queue
    }

    fn adopt(&self, queue: DetachedQueue, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let queue = self.forward(Forwarded::adopted(queue, responses));
        self.device.commands.send(ToDevice::Adopt(queue.id, self.way.number));
        queue
    }
}

impl FarPort {
    fn forward(&self, forwarded: Forwarded) -> Rc<FarQueue> {
        let (device, forwarded) = (self.device.clone(), Rc::new(forwarded));
        let id = device.queues.borrow_mut().add(forwarded.clone());
        Rc::new(FarQueue { device, id, forwarded })
    }
}

struct FarQueue {
    device: Rc<PeerDevices>,
    id: QueueId,
    forwarded: Rc<Forwarded>,
}

impl HostQueue for FarQueue {
    fn submit(&self, capsule: Capsule) {
        if self.device.is_ending.get() {
            // The device's reactor drops commands now: the connection would wait for ever.
            self.forwarded.responses.end();
            return;
        }
        self.forwarded.count(&capsule);
        self.device.commands.send(ToDevice::Submit(self.id, capsule));
    }

    fn execute_held(&self) {
        // The device's reactor does so after each command.
    }

    fn close(&self) {
        self.device.commands.send(ToDevice::Close(self.id));
        let mut queues = self.device.queues.borrow_mut();
        queues.take(self.id);
        queues.free(self.id);
    }

    fn may_move(&self) -> bool {
        self.forwarded.may_move()
    }

    fn detach(&self) -> Option<DetachedQueue> {
        let is_idle = self.forwarded.in_flight.get() == 0;
        if !is_idle || !self.may_move() || self.device.is_ending.get() {
            return None;
        }
        self.device.queues.borrow_mut().take(self.id);
        self.forwarded.subsystem.take().map(DetachedQueue::forwarded)
    }
}

/// The connections of all other reactors by their numbers, in the reactor of the devices. Clones
/// share them.
#[derive(Clone, Default)]
pub(super) struct FarConnections(Rc<RefCell<BTreeMap<u64, Rc<FarConnection>>>>);

/// A connection of another reactor, as the device's reactor sees it.
struct FarConnection {
    /// Where it is.
    place: RefCell<(Rc<FarQueues>, QueueId)>,
    has_ended: Cell<bool>,
}

impl Responses for FarConnection {
    fn respond(&self, response: Response) {
        let (queues, id) = &*self.place.borrow();
        queues.responses.send(FromDevice::Respond(*id, response));
    }

    fn end(&self) {
        self.has_ended.set(true);
        let (queues, id) = &*self.place.borrow();
        queues.responses.send(FromDevice::End(*id));
    }

    /// Returns `None`: the other reactor would have to be asked. Base 2.1, Abort command: a
    /// controller need not abort.
    fn withdraw(&self, _: u16) -> Option<Command> {
        None
    }
}

/// The queues of another reactor's connections, in the reactor of the devices.
pub(super) struct FarQueues {
    device_set: Rc<DeviceSet>,
    responses: Outbox<FromDevice>,
    /// Those of all other reactors.
    connections: FarConnections,
    /// By slot, without the number of uses: the messages of a queue arrive in order.
    queues: RefCell<Vec<Option<OpenQueue>>>,
    is_over: Cell<bool>,
    /// Whether the other reactor has stopped executing commands.
    has_left: Cell<bool>,
    left: Notify,
}

/// An open queue, and the number of its connection.
struct OpenQueue {
    queue: Rc<dyn HostQueue>,
    connection: u64,
}

impl FarQueues {
    /// Creates the queues of the reactor that receives from `responses`, and tells it that the
    /// devices are open. All reactors share `connections`.
    pub(super) fn new(
        device_set: Rc<DeviceSet>,
        responses: Outbox<FromDevice>,
        connections: &FarConnections,
    ) -> Rc<Self> {
        responses.send(FromDevice::Ready);
        Rc::new(Self {
            device_set,
            responses,
            connections: connections.clone(),
            queues: RefCell::default(),
            is_over: Cell::new(false),
            has_left: Cell::new(false),
            left: Notify::new(),
        })
    }

    /// Handles messages from `commands` until the other reactor has left or is gone.
    pub(super) async fn serve(self: Rc<Self>, commands: Inbox<ToDevice>) {
        clock::set_busy_stage(BusyStage::Kv);
        while let Some(message) = commands.receive().await {
            match message {
                ToDevice::Left => break,
                _ if self.is_over.get() => {}
                ToDevice::Open(id, way) => self.open(id, way),
                ToDevice::Adopt(id, number) => self.adopt(id, number),
                ToDevice::Submit(id, capsule) => {
                    let queues = self.queues.borrow();
                    let open = queues[id.place as usize].as_ref();
                    let OpenQueue { queue, .. } = open.expect("a queue is open until it is closed");
                    queue.submit(capsule);
                    queue.execute_held();
                }
                ToDevice::Close(id) => self.take(id).close(&self.connections),
            }
        }
        // Queues that have left for another reactor are still open.
        self.has_left.set(true);
        self.left.notify();
    }

    fn open(self: &Rc<Self>, id: QueueId, way: ConnectionInfo) {
        let number = way.number;
        let place = RefCell::new((self.clone(), id));
        let connection = Rc::new(FarConnection { place, has_ended: Cell::new(false) });
        let queue = self.device_set.entrance(way, Users::default()).queue(connection.clone());
        self.put(id, OpenQueue { queue, connection: number });
        let before = self.connections.0.borrow_mut().insert(number, connection);
        assert!(before.is_none(), "a connection opens one queue");
    }

    /// Takes the queue of a connection over that has come from another reactor.
    fn adopt(self: &Rc<Self>, id: QueueId, number: u64) {
        let connection = self.connections.0.borrow().get(&number).cloned();
        let connection = connection.expect("a queue that moves is open");
        let (from, left) = connection.place.replace((self.clone(), id));
        let queue = from.take(left);
        self.put(id, queue);
        from.responses.send(FromDevice::Left(left));
        if connection.has_ended.get() {
            // The other reactor may have heard of it after the connection had left.
            connection.end();
        }
    }

    fn put(&self, id: QueueId, queue: OpenQueue) {
        let place = id.place as usize;
        let mut queues = self.queues.borrow_mut();
        let places = queues.len().max(place + 1);
        queues.resize_with(places, || None);
        queues[place] = Some(queue);
    }

    fn take(&self, id: QueueId) -> OpenQueue {
        let queue = self.queues.borrow_mut()[id.place as usize].take();
        queue.expect("a queue is closed once, or leaves")
    }

    /// Closes all queues and ignores later messages of the other reactor.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        for queue in self.queues.take().into_iter().flatten() {
            queue.close(&self.connections);
        }
    }

    /// Returns when the other reactor has stopped executing commands.
    pub(super) async fn left(&self) {
        while !self.has_left.get() {
            self.left.wait().await;
        }
    }
}

impl OpenQueue {
    /// Closes it, as that of one of `connections`.
    fn close(self, connections: &FarConnections) {
        connections.0.borrow_mut().remove(&self.connection);
        self.queue.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Buf, Nanos};
    use reactor::{CoreTimes, PeerGroup, mailbox};
    use spec::{Completion, ConnectAttributes, Status};
    use std::net::{Ipv4Addr, SocketAddr};
    use zerocopy::IntoBytes;

    /// A connection that counts its responses.
    #[derive(Default)]
    struct Connection {
        responses: Cell<u32>,
        has_ended: Cell<bool>,
    }

    impl Responses for Connection {
        fn respond(&self, _: Response) {
            self.responses.set(self.responses.get() + 1);
        }

        fn end(&self) {
            self.has_ended.set(true);
        }

        fn withdraw(&self, _: u16) -> Option<Command> {
            None
        }
    }

    fn group(reactors: usize) -> PeerGroup {
        let nanos = Nanos(10);
        let times =
            CoreTimes { poll: nanos, read: nanos, message: nanos, stall: nanos, stall_one_in: 10 };
        PeerGroup::on_cores(reactors, 1, None, times)
    }

    /// Runs `work` with the devices of another reactor, which executes nothing.
    fn with_devices(work: impl FnOnce(Rc<PeerDevices>)) {
        let mut group = group(2);
        let remotes = group.remotes();
        let (send, _commands) = mailbox::<ToDevice>(16, &remotes[0], &remotes[1]);
        let (_responses, receive) = mailbox::<FromDevice>(8, &remotes[1], &remotes[0]);
        group.run(async {
            work(PeerDevices::new(Subsystems::new(), (0, None), send.open(), receive.open()));
        });
    }

    fn way(number: u64) -> ConnectionInfo {
        ConnectionInfo { number, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 4420)) }
    }

    fn exist() -> Capsule {
        Capsule::new(Command::exist(1, b"key"), Buf::phantom(0, 0))
    }

    /// The server stops between the start of a connection and its first command.
    #[test]
    fn connection_that_opens_after_the_stop_ends_at_its_first_command() {
        with_devices(|device| {
            let port = device.far_port(way(1));
            let connections = [(), ()].map(|()| Rc::new(Connection::default()));
            let before = port.queue(connections[0].clone());
            device.end();
            assert!(connections[0].has_ended.get());
            let after = port.queue(connections[1].clone());
            for queue in [&before, &after, &after] {
                queue.submit(exist());
            }
            assert!(connections[1].has_ended.get(), "the device's reactor executes nothing for it");
            before.close();
            after.close();
        });
    }

    #[test]
    fn bound_queue_of_io_without_commands_in_flight_moves() {
        const NQN: &str = "nqn.2026-11.com.example:far";
        with_devices(|device| {
            let port = device.far_port(way(1));
            let connect = |queue: &dyn HostQueue, id| {
                let data = ConnectData::new([1; 16], "nqn.2026-11.com.example:host", NQN, 1);
                let command = Command::connect(id, 31, ConnectAttributes::NONE, 0);
                queue.submit(Capsule::new(command, Buf::copy_from(data.as_bytes())));
            };
            let respond = |place, life, status| {
                let entry = Completion::new(1, status, 0);
                let response = Response { entry, data: Buf::phantom(0, 0), may_elide: false };
                device.hear(FromDevice::Respond(QueueId { place, life }, response));
            };
            let [admin, io, ended] = [(), (), ()].map(|()| port.queue(Rc::<Connection>::default()));
            for (place, queue, id) in [(0, &admin, 0), (1, &io, 1), (2, &ended, 1)] {
                connect(&**queue, id);
                respond(place, 0, Status::INVALID_FIELD);
                assert!(!queue.may_move() && queue.detach().is_none(), "it is not connected");
                connect(&**queue, id);
                respond(place, 0, Status::SUCCESS);
                assert_eq!(queue.may_move(), id > 0);
            }
            assert!(admin.detach().is_none());
            device.hear(FromDevice::End(QueueId { place: 2, life: 0 }));
            assert!(ended.detach().is_none(), "the controller has ended it");
            io.submit(exist());
            assert!(io.detach().is_none(), "a command is in flight");
            respond(1, 0, Status::KEY_DOES_NOT_EXIST);

            let detached = io.detach().expect("it moves");
            assert_eq!(detached.subsystem(), NQN);
            let connection = Rc::<Connection>::default();
            let adopted = port.adopt(detached, connection.clone());
            let id = QueueId { place: 3, life: 0 };
            assert!(device.queues.borrow().get(id).is_some(), "the old slot is in use");
            device.hear(FromDevice::Left(QueueId { place: 1, life: 0 }));
            let next = port.queue(Rc::<Connection>::default());
            let reused = QueueId { place: 1, life: 1 };
            assert!(device.queues.borrow().get(reused).is_some(), "the old slot is free");
            assert!(!adopted.may_move(), "the device's reactor may not have adopted it");
            adopted.submit(exist());
            respond(3, 0, Status::KEY_DOES_NOT_EXIST);
            assert_eq!(connection.responses.get(), 1);
            assert!(adopted.may_move());
            for queue in [admin, ended, adopted, next] {
                queue.close();
            }
        });
    }

    #[test]
    fn queue_that_ends_while_it_moves_ends_in_its_new_reactor() {
        let mut group = group(3);
        let remotes = group.remotes();
        let link = |place: usize| {
            let (send, receive) = mailbox::<FromDevice>(8, &remotes[0], &remotes[place]);
            let heard = Rc::<RefCell<Vec<String>>>::default();
            let hearing = heard.clone();
            group.places().spawn(place, async move {
                let inbox = receive.open();
                while let Some(message) = inbox.receive().await {
                    hearing.borrow_mut().push(format!("{message:?}"));
                }
            });
            (send, heard)
        };
        let [(old_send, old_heard), (new_send, new_heard)] = [link(1), link(2)];
        let [old, new] = [QueueId { place: 0, life: 7 }, QueueId { place: 2, life: 0 }];
        group.run(async move {
            let device_set = Rc::new(DeviceSet::without_listeners(Subsystems::new(), 0));
            let connections = FarConnections::default();
            let queues =
                |send: Outbox<FromDevice>| FarQueues::new(device_set.clone(), send, &connections);
            let (from, to) = (queues(old_send.open()), queues(new_send.open()));
            from.open(old, way(5));
            let connection = connections.0.borrow().get(&5).cloned().expect("it is open");
            connection.end();
            to.adopt(new, 5);
            from.end();
            assert!(connections.0.borrow().contains_key(&5), "it is a queue of the other reactor");
            to.end();
            assert!(connections.0.borrow().is_empty());
            clock::sleep(Nanos::from_micros(100), Stage::Queue).await;
        });
        let [ready, ended, left] = [FromDevice::Ready, FromDevice::End(old), FromDevice::Left(old)]
            .map(|message| format!("{message:?}"));
        assert_eq!(*old_heard.borrow(), [ready.clone(), ended, left]);
        assert_eq!(*new_heard.borrow(), [ready, format!("{:?}", FromDevice::End(new))]);
    }
}
