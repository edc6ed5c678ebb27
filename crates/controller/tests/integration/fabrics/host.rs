//! A device with a namespace of each kind behind a port, and hosts that connect to it.

use crate::fragile::Fragile;
use base::{Buf, Nanos};
use clock::{CodeCosts, Cores, Gate, Group, Rank, Stage, TaskId, Users};
use controller::{
    Capsule, Config, Controller, DetachedQueue, Emulation, Entrance, FirmwareCosts, FlashFigures,
    HostQueue, LinkTiming, Namespace, Placement, Port, Response, Responses, Subsystem,
    SubsystemConfig, Subsystems, TransportAddress,
};
use engine::{Ack, HashIndex, IndexConfig, KeySpaceId, Store};
use ftl::{Zones, ZonesConfig};
use media::{BlocksShape, Media, Memory, MemoryBlocks, Shape, Victims};
use reactor::Reactor;
use spec::{
    AddressFamily, Command, Completion, Configuration, ConnectAttributes, ConnectData, DataPointer,
    Fuse, Property, Status, StoreOptions, Text, Transfer,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use zerocopy::{FromBytes, IntoBytes};

pub(crate) const NQN: &str = "nqn.2026-01.org.example:kvasir";
pub(crate) const HOST_NQN: &str = "nqn.2026-01.org.example:host";
pub(crate) const HOST_ID: [u8; 16] = *b"a host of a test";

/// Namespaces.
pub(crate) const KV: u32 = 1;
pub(crate) const BLOCK: u32 = 2;
pub(crate) const ZONED: u32 = 3;

/// Bytes of the store.
pub(crate) const CAPACITY: u64 = 16 << 20;

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) subsystems: Arc<Subsystems>,
    pub(crate) subsystem: Arc<Subsystem>,
    pub(crate) device: Arc<Controller>,
    /// Closed, it holds every I/O command up.
    pub(crate) gate: Arc<Gate>,
    pub(crate) flash: Arc<Flash>,
    /// Of the namespace of blocks.
    pub(crate) blocks: Arc<Fragile<MemoryBlocks>>,
    /// Of the pairs.
    pub(crate) log: Arc<Fragile<Memory>>,
    /// Of the zones.
    pub(crate) zones: Arc<Fragile<Memory>>,
    entrance: Entrance,
}

/// Runs `test` in virtual time.
pub(crate) fn run(test: impl AsyncFnMut(World)) {
    run_shuffled(None, test);
}

/// The same, with ties at one instant broken by a seed.
pub(crate) fn run_shuffled(shuffle: Option<u64>, test: impl AsyncFnMut(World)) {
    run_with(shuffle, false, test);
}

/// The same with a device that may forget what was not flushed.
pub(crate) fn run_volatile(test: impl AsyncFnMut(World)) {
    run_with(None, true, test);
}

/// The same as [`run`] with a drive without emulation, which acknowledges as `ack` says.
pub(crate) fn run_real(ack: Ack, mut test: impl AsyncFnMut(World)) {
    Reactor::new(None).run(async { test(World::real(ack).await).await });
}

fn run_with(shuffle: Option<u64>, has_volatile_cache: bool, mut test: impl AsyncFnMut(World)) {
    let world = World::new(Drive { has_volatile_cache, ..Drive::EMULATED });
    Reactor::new(shuffle).run(async { test(world.await).await });
}

/// What a world's device is like.
#[derive(Clone, Copy)]
struct Drive {
    has_volatile_cache: bool,
    is_emulated: bool,
    ack: Ack,
}

impl Drive {
    const EMULATED: Self = Self { has_volatile_cache: false, is_emulated: true, ack: Ack::Program };
}

impl World {
    /// A drive without emulation, which acknowledges as `ack` says.
    pub(crate) async fn real(ack: Ack) -> Self {
        Self::new(Drive { ack, is_emulated: false, ..Drive::EMULATED }).await
    }

    async fn new(Drive { has_volatile_cache, is_emulated, ack }: Drive) -> Self {
        let group = Group::new();
        let gate = Arc::new(Gate::new());
        let blocks = BlocksShape { block_bytes: 4_096, blocks: 100, parallelism: 1 };
        let blocks = Arc::new(Fragile::new(MemoryBlocks::new(blocks)));
        let log = Arc::new(Fragile::new(Memory::new(LOG)));
        // A fragile medium has all reads wait.
        let medium: Arc<dyn Media> =
            if is_emulated { log.clone() } else { Arc::new(Memory::new(LOG)) };
        let zones = Arc::new(Fragile::new(Memory::new(ZONES)));
        let namespaces = vec![
            Namespace::Kv(store(group, medium, ack).await),
            Namespace::Block(blocks.clone()),
            Namespace::Zoned(zoned(zones.clone())),
        ];
        let config = Config {
            emulation: is_emulated.then(|| Emulation {
                group,
                link: LinkTiming { bytes_per_second: 1_000_000_000, transfer: Nanos(100) },
                handlers: 1,
                costs: FirmwareCosts::default(),
                cores: Cores::new(group, 1, CodeCosts::default()),
                gate: gate.clone(),
            }),
            has_volatile_cache,
        };
        let device = Controller::new(namespaces, config);
        let flash = Arc::new(Flash(Mutex::new(FlashFigures::NEW)));
        let subsystem = subsystem(NQN, &device, &flash);
        let subsystems = Subsystems::new();
        subsystems.add(subsystem.clone());
        let address = TransportAddress {
            family: AddressFamily::IPV4,
            address: Text::new("192.0.2.7"),
            port: 4420,
        };
        let entrance = Entrance::new(subsystems.clone(), address);
        Self { subsystems, subsystem, device, gate, flash, blocks, log, zones, entrance }
    }

    /// The same device as the reactor with this number has it.
    pub(crate) fn in_reactor(&self, number: u32, users: Users) -> Self {
        let entrance = self.entrance.clone().in_reactor(number, users);
        Self { entrance, ..self.clone() }
    }

    /// The same device, whose queues have `placement` choose where commands are executed.
    pub(crate) fn placed_by(&self, placement: Rc<dyn Placement>) -> Self {
        let entrance = self.entrance.clone().placed_by(Some(placement));
        Self { entrance, ..self.clone() }
    }

    /// Opens a connection with an unbound queue.
    pub(crate) fn line(&self) -> Line {
        let door = Rc::<Door>::default();
        let queue = self.entrance.queue(door.clone());
        Line { door, queue, next_id: Cell::new(1), attributes: ConnectAttributes::NONE }
    }

    /// The admin queue of a host that has enabled its controller, and the controller's id.
    pub(crate) async fn admin(&self) -> (Line, u16) {
        self.admin_of(NQN, 0).await
    }

    /// The same of another subsystem, with a keep alive time.
    pub(crate) async fn admin_of(&self, nqn: &str, keep_alive_ms: u32) -> (Line, u16) {
        let admin = self.line();
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, keep_alive_ms);
        let data = ConnectData::new(HOST_ID, HOST_NQN, nqn, ConnectData::ANY_CONTROLLER);
        let id = admin.connect_with(connect, &data).await.expect("the subsystem is there");
        admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        (admin, id)
    }

    /// An I/O queue of 128 entries of the controller `id`.
    pub(crate) async fn io(&self, id: u16, queue: u16) -> Line {
        self.io_of(id, queue, ConnectAttributes::NONE).await
    }

    pub(crate) async fn io_of(&self, id: u16, queue: u16, attributes: ConnectAttributes) -> Line {
        let io = Line { attributes, ..self.line() };
        assert_eq!(io.connect(id, queue, 127).await, Ok(id));
        io
    }
}

/// What the flash of a subsystem shows.
pub(crate) struct Flash(Mutex<FlashFigures>);

impl Flash {
    pub(crate) fn set(&self, figures: FlashFigures) {
        *self.0.lock().expect("no thread panics") = figures;
    }
}

pub(crate) fn subsystem(nqn: &str, device: &Arc<Controller>, flash: &Arc<Flash>) -> Arc<Subsystem> {
    subsystem_of_incarnation(nqn, (device, 0), flash)
}

/// The same of a device that has lost its content so often.
pub(crate) fn subsystem_of_incarnation(
    nqn: &str,
    (device, incarnation): (&Arc<Controller>, u64),
    flash: &Arc<Flash>,
) -> Arc<Subsystem> {
    let flash = flash.clone();
    let config = SubsystemConfig {
        nqn: nqn.to_owned(),
        serial: "KV-0001".to_owned(),
        firmware: "1.2.3".to_owned(),
        flash: Box::new(move || *flash.0.lock().expect("no thread panics")),
    };
    Subsystem::of_incarnation(config, device.clone(), incarnation)
}

/// The medium of the pairs.
pub(crate) const LOG: Shape = Shape {
    page_bytes: 16_384,
    spare_bytes: 1_000,
    pages_per_extent: 256,
    extents: 16,
    parallelism: 4,
    frames: None,
};

pub(crate) async fn store(group: Group, medium: Arc<dyn Media>, ack: Ack) -> Arc<Store> {
    let config = engine::Config {
        capacity_bytes: CAPACITY,
        ack,
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group,
        seed: 1,
    };
    let store = Store::format(medium, config);
    store.create_key_space(KeySpaceId(1)).await.expect("the store is empty");
    store
}

/// The medium of the zones.
pub(crate) const ZONES: Shape = Shape {
    page_bytes: 16_384,
    spare_bytes: 52,
    pages_per_extent: 3,
    extents: 8 + Zones::SPARE_EXTENTS,
    parallelism: 4,
    frames: None,
};

pub(crate) fn zoned(medium: Arc<Fragile<Memory>>) -> Arc<Zones> {
    let limits = ZonesConfig { max_open: 2, max_active: 3, buffer_bytes: 1 << 20, zones: None };
    Zones::format(medium, limits)
}

/// What a transport's connection is to a queue.
#[derive(Default)]
pub(crate) struct Door {
    responses: RefCell<VecDeque<Response>>,
    is_ended: Cell<bool>,
    waiter: Cell<Option<TaskId>>,
    /// The first command of a fused operation whose second has not come.
    held: Cell<Option<Command>>,
}

impl Door {
    fn wake(&self) {
        if let Some(waiter) = self.waiter.take() {
            clock::wake(waiter);
        }
    }
}

impl Responses for Door {
    fn respond(&self, response: Response) {
        assert!(!self.is_ended.get(), "nothing is responded after the end");
        self.responses.borrow_mut().push_back(response);
        self.wake();
    }

    fn end(&self) {
        assert!(!self.is_ended.replace(true), "a connection is ended once");
        self.wake();
    }

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        let held = self.held.get().filter(|held| held.command_id() == command_id)?;
        self.held.take();
        Some(held)
    }
}

/// A host's end of a connection.
pub(crate) struct Line {
    door: Rc<Door>,
    pub(crate) queue: Rc<dyn HostQueue>,
    next_id: Cell<u16>,
    attributes: ConnectAttributes,
}

impl Line {
    /// Sends a command with the next id, and returns that. A command without a data pointer gets
    /// the usual one for `data`, or for `room` bytes.
    pub(crate) fn send(&self, command: Command, data: &[u8], room: u32) -> u16 {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let command = if command.uses_sgl() {
            command
        } else {
            let len = if command.transfer() == Transfer::ToHost { room } else { len(data) };
            command.with_data_pointer(DataPointer::Transport { len })
        };
        self.send_capsule(command.with_command_id(id), data);
        id
    }

    /// The same connection with its queue in the reactor of `world`.
    pub(crate) fn moved_to(self, world: &World) -> Self {
        let queue = self.queue.detach().expect("no command is in flight");
        self.adopted_by(world, queue)
    }

    /// The same connection with its detached queue in the reactor of `world`.
    pub(crate) fn adopted_by(self, world: &World, queue: DetachedQueue) -> Self {
        Self { queue: world.entrance.adopt(queue, self.door.clone()), ..self }
    }

    /// The id of the next command.
    pub(crate) fn next_id(&self) -> u16 {
        self.next_id.get()
    }

    /// Sends a Store of `value`, which the queue may hold.
    pub(crate) fn hold_store(&self, key: &[u8], value: &[u8]) {
        let command = Command::store(KV, key, len(value), StoreOptions::NONE);
        self.hold(command, value, 0);
    }

    /// Sends a Retrieve of at most `room` bytes, which the queue may hold.
    pub(crate) fn hold_retrieve(&self, key: &[u8], room: u32) {
        self.hold(Command::retrieve(KV, key, room), &[], room);
    }

    /// Sends a Read with this room, which the queue may hold.
    pub(crate) fn hold_read(&self, first: u64, blocks: u32, room: u32) {
        self.hold(Command::read(BLOCK, first, blocks), &[], room);
    }

    fn hold(&self, command: Command, data: &[u8], room: u32) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let len = if command.transfer() == Transfer::ToHost { room } else { len(data) };
        let command = command.with_data_pointer(DataPointer::Transport { len });
        self.queue.submit(Capsule::new(command.with_command_id(id), Buf::copy_from(data)));
    }

    /// The next response, which is there.
    pub(crate) fn responded(&self) -> Response {
        self.door.responses.borrow_mut().pop_front().expect("it is answered at once")
    }

    /// Sends a command as it is.
    pub(crate) fn send_capsule(&self, command: Command, data: &[u8]) {
        self.queue.submit(Capsule::new(command, Buf::copy_from(data)));
        self.queue.execute_held();
    }

    /// Sends the first command of a fused operation, which the transport holds. Returns its id.
    pub(crate) fn send_first(&self, command: Command) -> u16 {
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.door.held.set(Some(command.with_fuse(Fuse::First).with_command_id(id)));
        id
    }

    /// Sends two commands side by side, and returns their ids.
    pub(crate) fn send_fused(&self, commands: [Command; 2], data: [&[u8]; 2]) -> [u16; 2] {
        let ids = [0, 1].map(|at| self.next_id.get() + at);
        self.next_id.set(self.next_id.get() + 2);
        let [first, second] = [0, 1].map(|at| {
            let command = commands[at].with_command_id(ids[at]);
            let pointer = DataPointer::Transport { len: len(data[at]) };
            let command =
                if command.uses_sgl() { command } else { command.with_data_pointer(pointer) };
            Capsule::new(command, Buf::copy_from(data[at]))
        });
        let first = Capsule { command: first.command.with_fuse(Fuse::First), ..first };
        let second = Capsule { command: second.command.with_fuse(Fuse::Second), ..second };
        self.queue.submit(Capsule::fused(first, second));
        self.queue.execute_held();
        ids
    }

    /// The responses to two commands side by side, which come in their order.
    pub(crate) async fn answer_fused(
        &self,
        commands: [Command; 2],
        data: [&[u8]; 2],
    ) -> [Response; 2] {
        let ids = self.send_fused(commands, data);
        let mut responses = Vec::new();
        for id in ids {
            let response = self.next().await.expect("the connection is there");
            assert_eq!(response.entry.command_id(), id);
            responses.push(response);
        }
        responses.try_into().expect("there are two")
    }

    /// Sends what a real host sent, byte by byte.
    pub(crate) fn send_bytes(&self, entry: &[u8; 64], data: &[u8]) {
        self.send_capsule(Command::read_from_bytes(entry).expect("any 64 bytes are one"), data);
    }

    /// The next response, or `None` when the connection has ended.
    pub(crate) async fn next(&self) -> Option<Response> {
        loop {
            if let Some(response) = self.door.responses.borrow_mut().pop_front() {
                return Some(response);
            }
            if self.door.is_ended.get() {
                return None;
            }
            self.door.waiter.set(Some(clock::current()));
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.door.is_ended.get()
    }

    /// What has come and was not taken.
    pub(crate) fn waiting(&self) -> usize {
        self.door.responses.borrow().len()
    }

    /// The response to a command that takes at most `room` bytes.
    pub(crate) async fn answer(&self, command: Command, data: &[u8], room: u32) -> Response {
        let id = self.send(command, data, room);
        let response = self.next().await.expect("the connection is there");
        assert_eq!(response.entry.command_id(), id);
        response
    }

    /// The status of a command that brings no data and takes up to 4 KiB.
    pub(crate) async fn status(&self, command: Command) -> Status {
        self.answer(command, &[], 4_096).await.entry.status()
    }

    /// The result of a command that succeeds.
    pub(crate) async fn result(&self, command: Command) -> u64 {
        let response = self.answer(command, &[], 4_096).await;
        assert_eq!(response.entry.status(), Status::SUCCESS, "{command:?}");
        response.entry.result()
    }

    /// What a command returns that succeeds.
    pub(crate) async fn read(&self, command: Command) -> Vec<u8> {
        let response = self.answer(command, &[], 4_096).await;
        assert_eq!(response.entry.status(), Status::SUCCESS, "{command:?}");
        response.data.bytes().expect("there are bytes").to_vec()
    }

    /// What a command returns that succeeds, as a structure of the specification.
    pub(crate) async fn structure<T: FromBytes>(&self, command: Command) -> T {
        T::read_from_bytes(&self.read(command).await).expect("the structure has its size")
    }

    /// Connects as queue `queue` of the controller `id`.
    pub(crate) async fn connect(&self, id: u16, queue: u16, size: u16) -> Result<u16, Completion> {
        let connect = Command::connect(queue, size, self.attributes, 0);
        self.connect_with(connect, &ConnectData::new(HOST_ID, HOST_NQN, NQN, id)).await
    }

    /// The controller's id, or how the Connect failed.
    pub(crate) async fn connect_with(
        &self,
        connect: Command,
        data: &ConnectData,
    ) -> Result<u16, Completion> {
        let response = self.answer(connect, data.as_bytes(), 0).await;
        if !response.entry.status().is_success() {
            return Err(response.entry);
        }
        Ok(u16::try_from(response.entry.result()).expect("nothing else has to be done"))
    }

    pub(crate) async fn set_configuration(&self, configuration: Configuration) {
        let set = Command::property_set(Property::CC, configuration.0.into());
        assert_eq!(self.status(set).await, Status::SUCCESS);
    }

    pub(crate) async fn property(&self, property: Property) -> u64 {
        self.result(Command::property_get(property)).await
    }

    pub(crate) async fn store(&self, key: &[u8], value: &[u8]) -> Status {
        let command = Command::store(KV, key, len(value), StoreOptions::NONE);
        self.answer(command, value, 0).await.entry.status()
    }

    pub(crate) async fn retrieve(&self, key: &[u8], room: u32) -> Response {
        self.answer(Command::retrieve(KV, key, room), &[], room).await
    }
}

pub(crate) fn len(data: &[u8]) -> u32 {
    u32::try_from(data.len()).expect("data is small")
}

/// A submission queue entry of zeros but for `parts`, each at its offset.
pub(crate) fn entry(parts: &[(usize, &[u8])]) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (offset, part) in parts {
        bytes[*offset..*offset + part.len()].copy_from_slice(part);
    }
    bytes
}

/// Lets `duration` pass.
pub(crate) async fn pass(duration: Nanos) {
    clock::sleep(duration, Stage::Queue).await;
}
