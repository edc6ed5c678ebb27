use crate::world::{NQN, World, pass};
use base::{Buf, Nanos};
use controller::{Capsule, FusedOrder, HostQueue, Ordered, Port, Response, Responses};
use spec::{
    Command, Configuration, ConnectAttributes, ConnectData, Property, QualifiedName, Status,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use zerocopy::IntoBytes;

/// The attacker's name.
pub(crate) const HOST_NQN: &str = "nqn.2026-01.org.example:host";
pub(crate) const HOST_ID: [u8; 16] = *b"a hostile host 1";

/// Names of subsystems that hosts connect to; the last one does not exist.
pub(crate) const SERVICES: [&str; 3] =
    [NQN, QualifiedName::DISCOVERY, "nqn.2026-01.org.example:absent"];

/// A queue in the process, whose host reads at most the last answer.
pub(crate) struct Line {
    queue: Rc<dyn HostQueue>,
    door: Rc<Door>,
    next_id: Cell<u16>,
}

#[derive(Default)]
struct Door {
    last: RefCell<Option<Response>>,
    order: RefCell<FusedOrder<Capsule>>,
}

impl Responses for Door {
    fn respond(&self, response: Response) {
        *self.last.borrow_mut() = Some(response);
    }

    fn end(&self) {}

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        let mut order = self.order.borrow_mut();
        order.withdraw(|held| held.command.command_id() == command_id).map(|held| held.command)
    }
}

impl Line {
    /// Returns a queue that belongs to no controller.
    pub(crate) fn new(world: &World) -> Self {
        let door = Rc::<Door>::default();
        Self { queue: world.entrance.queue(door.clone()), door, next_id: Cell::new(0) }
    }

    /// Returns the admin queue of an enabled controller, and the controller's id.
    pub(crate) async fn admin(world: &World, service: &str) -> (Self, u16) {
        let line = Self::new(world);
        let data = ConnectData::new(HOST_ID, HOST_NQN, service, ConnectData::ANY_CONTROLLER);
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        let id = line.result(connect, data.as_bytes()).await;
        let enable = Configuration::ENABLE_ALL_COMMAND_SETS;
        line.result(Command::property_set(Property::CC, enable.0.into()), &[]).await;
        (line, u16::try_from(id).expect("it is an id"))
    }

    /// Returns an I/O queue of the controller `id`.
    pub(crate) async fn io(world: &World, id: u16, queue: u16) -> Self {
        let line = Self::new(world);
        let data = ConnectData::new(HOST_ID, HOST_NQN, NQN, id);
        let connect = Command::connect(queue, 127, ConnectAttributes::NONE, 0);
        line.result(connect, data.as_bytes()).await;
        line
    }

    /// Sends a command unchanged.
    pub(crate) fn send(&self, command: Command, data: &[u8]) {
        let capsule = Capsule::new(command, Buf::copy_from(data));
        let (missed, ordered) = self.door.order.borrow_mut().take(&command, capsule);
        let ready = match ordered {
            Ordered::Waits => None,
            Ordered::Alone(capsule) => Some(capsule),
            Ordered::Fused(first, second) => Some(Capsule::fused(first, second)),
        };
        missed.into_iter().chain(ready).for_each(|capsule| self.queue.submit(capsule));
        self.queue.execute_held();
    }

    /// Sends a command with the next id. Ids are few, so they repeat while their commands run.
    pub(crate) fn send_next(&self, command: Command, data: &[u8]) {
        let id = self.next_id.get();
        self.next_id.set((id + 1) % 64);
        self.send(command.with_command_id(id), data);
    }

    /// Returns the result of a command that must succeed.
    async fn result(&self, command: Command, data: &[u8]) -> u64 {
        self.send(command, data);
        pass(Nanos(1)).await;
        let response = self.door.last.take().expect("what takes no time is answered at once");
        assert_eq!(response.entry.status(), Status::SUCCESS, "{command:?}");
        response.entry.result()
    }
}

impl Drop for Line {
    /// Ends the connection.
    fn drop(&mut self) {
        if clock::is_installed() {
            self.queue.close();
        }
    }
}
