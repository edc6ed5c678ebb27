//! Queues between the connections of one reactor and the emulated devices on another.
//!
//! The model of an emulated device runs in one reactor, and commands for it go there as messages.
//! Connections number their queues. A reused queue number gets a new life count, so a response that
//! arrives after its connection has closed is dropped.
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
use controller::{Capsule, Entrance, HostQueue, Placement, Port, Response, Responses, Subsystems};
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
}

/// The connections of one reactor by the slots of their queues.
#[derive(Default)]
struct Connected {
    /// The slots, each with its number of earlier uses.
    places: Vec<(u32, Option<Rc<dyn Responses>>)>,
    free: Vec<u32>,
}

impl Connected {
    /// Puts `it` into a free slot.
    fn add(&mut self, it: Rc<dyn Responses>) -> QueueId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).expect("far fewer than 2^32 connections")
        });
        let (life, slot) = &mut self.places[place as usize];
        *slot = Some(it);
        QueueId { place, life: *life }
    }

    #[inline]
    fn get(&self, id: QueueId) -> Option<Rc<dyn Responses>> {
        let (life, it) = self.places.get(id.place as usize)?;
        it.as_ref().filter(|_| *life == id.life).cloned()
    }

    fn all(&self) -> Vec<Rc<dyn Responses>> {
        self.places.iter().filter_map(|(_, it)| it.clone()).collect()
    }

    fn remove(&mut self, id: QueueId) {
        let (life, it) = &mut self.places[id.place as usize];
        assert!(*life == id.life && it.take().is_some(), "a queue is closed once");
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
            connection.end();
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
        let device = self.device.clone();
        let id = device.queues.borrow_mut().add(responses);
        device.commands.send(ToDevice::Open(id, self.way));
        Rc::new(FarQueue { device, id })
    }
}

struct FarQueue {
    device: Rc<PeerDevices>,
    id: QueueId,
}

impl HostQueue for FarQueue {
    fn submit(&self, capsule: Capsule) {
        let device = &self.device;
        if device.is_ending.get() {
            // The device's reactor drops commands now: the connection would wait for ever.
            let connection = device.queues.borrow().get(self.id);
            connection.expect("a queue is open until it is closed").end();
            return;
        }
        device.commands.send(ToDevice::Submit(self.id, capsule));
    }

    fn execute_held(&self) {
        // The device's reactor does so after each command.
    }

    fn close(&self) {
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

/// The queues of another reactor's connections, in the reactor of the devices.
pub(super) struct FarQueues {
    device_set: Rc<DeviceSet>,
    responses: Outbox<FromDevice>,
    /// By slot, without the number of uses: the messages of a queue arrive in order.
    queues: RefCell<Vec<Option<Rc<dyn HostQueue>>>>,
    is_over: Cell<bool>,
    /// Whether the other reactor has stopped executing commands.
    has_left: Cell<bool>,
    left: Notify,
}

impl FarQueues {
    /// Creates the queues of the reactor that receives from `responses`, and tells it that the
    /// devices are open.
    pub(super) fn new(device_set: Rc<DeviceSet>, responses: Outbox<FromDevice>) -> Rc<Self> {
        responses.send(FromDevice::Ready);
        Rc::new(Self {
            device_set,
            responses,
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
                ToDevice::Submit(id, capsule) => {
                    let queues = self.queues.borrow();
                    let queue = queues[id.place as usize].as_ref();
                    let queue = queue.expect("a queue is open until it is closed");
                    queue.submit(capsule);
                    queue.execute_held();
                }
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

    fn open(self: &Rc<Self>, id: QueueId, way: ConnectionInfo) {
        let connection = Rc::new(FarConnection { id, queues: self.clone() });
        let queue = self.device_set.entrance(way, Users::default()).queue(connection);
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Buf, Nanos};
    use reactor::{CoreTimes, PeerGroup, mailbox};
    use std::net::{Ipv4Addr, SocketAddr};

    /// A connection that gets no response.
    #[derive(Default)]
    struct Ended(Cell<bool>);

    impl Responses for Ended {
        fn respond(&self, response: Response) {
            panic!("{response:?} of no device");
        }

        fn end(&self) {
            self.0.set(true);
        }

        fn withdraw(&self, _: u16) -> Option<Command> {
            None
        }
    }

    /// The server stops between the start of a connection and its first command.
    #[test]
    fn connection_that_opens_after_the_stop_ends_at_its_first_command() {
        let nanos = Nanos(10);
        let times =
            CoreTimes { poll: nanos, read: nanos, message: nanos, stall: nanos, stall_one_in: 10 };
        let mut group = PeerGroup::on_cores(2, 1, None, times);
        let remotes = group.remotes();
        let (send, _commands) = mailbox::<ToDevice>(8, &remotes[0], &remotes[1]);
        let (_responses, receive) = mailbox::<FromDevice>(8, &remotes[1], &remotes[0]);
        group.run(async {
            let device =
                PeerDevices::new(Subsystems::new(), (0, None), send.open(), receive.open());
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4420));
            let port = device.far_port(ConnectionInfo { number: 1, address });
            let connections = [(), ()].map(|()| Rc::new(Ended::default()));
            let before = port.queue(connections[0].clone());
            device.end();
            assert!(connections[0].0.get());
            let after = port.queue(connections[1].clone());
            for queue in [&before, &after, &after] {
                queue.submit(Capsule::new(Command::exist(1, b"key"), Buf::phantom(0, 0)));
            }
            assert!(connections[1].0.get(), "the device's reactor executes nothing for it");
            before.close();
            after.close();
        });
    }
}
