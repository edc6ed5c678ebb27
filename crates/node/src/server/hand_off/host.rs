//! A host of a run: its connections, one after another, and the keys that only it uses.

use super::ledger::{KeyBytes, Ledger, Value};
use super::plan::{HostPlan, pick};
use super::world::World;
use base::{Buf, Nanos, Rng};
use clock::{Notify, Stage};
use controller::{Capsule, DetachedQueue, HostQueue, Port, Response, Responses};
use spec::{
    Command, ConnectAttributes, ConnectData, ConnectReply, DataPointer, Property, Status,
    StoreOptions,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use zerocopy::IntoBytes;

const HOST_NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:a0b1c2d3-0000-8000-8000-000000000001";

/// Property CC: enabled, all I/O command sets, entries of 64 and 16 bytes (Base 2.1).
const ENABLED: u64 = 0x0046_0061;

/// The id of the I/O queue.
const IO: u16 = 1;

/// Keys of a host that it uses at a time.
const KEYS: u16 = 16;

/// The longest value.
const VALUE_BYTES_MAX: u32 = 4_096;

/// A host.
pub(super) struct Host {
    world: Rc<World>,
    plan: HostPlan,
    rng: Rng,
    /// The keys with no command in flight.
    idle: Rc<RefCell<Vec<KeyBytes>>>,
    keys: Rc<Cell<u16>>,
}

/// The connection of an I/O queue, which sends commands and may move to other reactors.
struct Worker {
    world: Rc<World>,
    plan: HostPlan,
    rng: Rng,
    idle: Rc<RefCell<Vec<KeyBytes>>>,
    keys: Rc<Cell<u16>>,
    io: Rc<Line>,
    /// The number of the connection.
    number: u64,
    /// Its reactor.
    place: usize,
    /// Commands that are not sent yet.
    left: u64,
}

/// A connection on its way to another reactor.
pub(super) struct Moving {
    worker: Worker,
    queue: DetachedQueue,
}

/// A command whose answer is due.
#[derive(Clone, Copy, Debug)]
enum Asked {
    /// Of the admin queue, or a Connect.
    Call,
    Store(KeyBytes),
    Retrieve(KeyBytes, Option<Value>),
    Delete(KeyBytes),
}

/// A connection's queue, and what is due to it.
struct Line {
    world: Rc<World>,
    host: u16,
    queue: RefCell<Option<Rc<dyn HostQueue>>>,
    pending: RefCell<BTreeMap<u16, Asked>>,
    /// Commands that the host wants aborted.
    aborting: RefCell<Vec<u16>>,
    /// The answer of the last call.
    result: Cell<Option<(Status, u64)>>,
    idle: Rc<RefCell<Vec<KeyBytes>>>,
    next_id: Cell<u16>,
    is_closed: Cell<bool>,
    is_ended: Cell<bool>,
    answered: Notify,
}

impl Responses for Line {
    fn respond(&self, Response { entry, data, .. }: Response) {
        let (host, id, status) = (self.host, entry.command_id(), entry.status());
        assert!(!self.is_closed.get(), "host {host}: command {id} is answered after the close");
        let asked = self.pending.borrow_mut().remove(&id);
        let asked = asked.unwrap_or_else(|| panic!("host {host}: no answer to {id} is due"));
        self.world.note(host, id, u64::from(status.0));
        if status == Status::ABORT_REQUESTED {
            // The command is still executed. Its key is not used again.
            let aborting = self.aborting.borrow();
            assert!(aborting.contains(&id), "host {host}: {id} is aborted unasked");
        } else {
            self.take(asked, entry.result(), status, &data);
        }
        self.answered.notify();
    }

    fn end(&self) {
        self.is_ended.set(true);
        self.answered.notify();
    }

    fn withdraw(&self, _: u16) -> Option<Command> {
        None
    }
}

impl Line {
    /// Checks an answer.
    fn take(&self, asked: Asked, result: u64, status: Status, data: &Buf) {
        let is_right = match asked {
            Asked::Call => {
                self.result.set(Some((status, result)));
                return;
            }
            Asked::Store(_) | Asked::Delete(_) => status.is_success() && data.len() == 0,
            Asked::Retrieve(_, value) => {
                let found =
                    if value.is_some() { Status::SUCCESS } else { Status::KEY_DOES_NOT_EXIST };
                let bytes = data.bytes().unwrap_or_default();
                status == found && value.is_none_or(|it| it.bytes() == bytes)
            }
        };
        assert!(is_right, "host {}: {asked:?}: {status:?}, {} bytes", self.host, data.len());
        let (Asked::Store(key) | Asked::Retrieve(key, _) | Asked::Delete(key)) = asked else {
            return;
        };
        self.idle.borrow_mut().push(key);
    }

    fn open(host: &Host, port: &dyn Port) -> Rc<Self> {
        let line = Rc::new(Self {
            world: host.world.clone(),
            host: host.plan.number,
            queue: RefCell::default(),
            pending: RefCell::default(),
            aborting: RefCell::default(),
            result: Cell::default(),
            idle: host.idle.clone(),
            next_id: Cell::default(),
            is_closed: Cell::default(),
            is_ended: Cell::default(),
            answered: Notify::new(),
        });
        *line.queue.borrow_mut() = Some(port.queue(line.clone()));
        line
    }

    fn queue(&self) -> Rc<dyn HostQueue> {
        self.queue.borrow().clone().expect("the connection is open")
    }

    fn submit(&self, command: Command, data: &[u8], asked: Asked) -> u16 {
        let id = self.next_id.replace(self.next_id.get().wrapping_add(1));
        self.pending.borrow_mut().insert(id, asked);
        self.queue().submit(Capsule::new(command.with_command_id(id), Buf::copy_from(data)));
        id
    }

    /// Returns the answer to a command. `None`: the connection ends first.
    async fn call(&self, command: Command, data: &[u8]) -> Option<(Status, u64)> {
        let len = u32::try_from(data.len()).expect("a kilobyte");
        let command = command.with_data_pointer(DataPointer::InCapsule { offset: 0, len });
        clock::catch_up().await;
        self.submit(command, data, Asked::Call);
        self.queue().execute_held();
        loop {
            if let Some(result) = self.result.take() {
                return Some(result);
            }
            if self.is_ended.get() {
                return None;
            }
            self.answered.wait().await;
        }
    }

    async fn connect(&self, command: Command, controller: u16) -> Option<u16> {
        let nqn = self.world.nqn(self.host);
        let data = ConnectData::new(*b"a host of a run.", HOST_NQN, nqn, controller);
        let (status, reply) = self.call(command, data.as_bytes()).await?;
        assert!(status.is_success(), "host {}: Connect: {status:?}", self.host);
        Some(ConnectReply(u32::try_from(reply).expect("it has 32 bits")).controller_id())
    }

    fn close(&self) {
        let queue = self.queue.take().expect("the connection is open");
        queue.close();
        self.is_closed.set(true);
        let (pending, ledger) = (self.pending.take(), self.world.ledger(self.host));
        self.world.count_unanswered(pending.len());
        for asked in pending.into_values() {
            match asked {
                Asked::Call => {}
                Asked::Retrieve(_, value) => ledger.lose_retrieve(value),
                Asked::Store(key) => ledger.lose_store(key),
                Asked::Delete(key) => ledger.lose_delete(key),
            }
        }
    }
}

impl Host {
    pub(super) fn new(world: &Rc<World>, plan: HostPlan) -> Self {
        let rng = Rng::fork(world.plan.seed, u64::from(plan.number));
        Self { world: world.clone(), plan, rng, idle: Rc::default(), keys: Rc::default() }
    }

    /// Uses the device until its commands are done or the server stops.
    pub(super) async fn run(mut self, port: impl Fn(u64) -> Rc<dyn Port>) {
        clock::name_task("host");
        for number in 0..self.plan.connections {
            if self.world.is_stopping() {
                break;
            }
            let number = u64::from(self.plan.number) * 8 + 2 * number;
            let [admin, io] = [number, number + 1].map(|it| Line::open(&self, &*port(it)));
            if Self::connect(&admin, &io).await.is_some() {
                self.work(&admin, &io, number + 1).await;
            } else {
                io.close();
            }
            admin.close();
            self.pause().await;
        }
        self.world.host_ended(self.plan.reactor);
    }

    async fn connect(admin: &Line, io: &Line) -> Option<()> {
        let any = ConnectData::ANY_CONTROLLER;
        let connect = Command::connect(0, 31, ConnectAttributes::NONE, 0);
        let controller = admin.connect(connect, any).await?;
        admin.call(Command::property_set(Property::CC, ENABLED), &[]).await?;
        let connect = Command::connect(IO, 31, ConnectAttributes::NONE, 0);
        io.connect(connect, controller).await?;
        Some(())
    }

    /// Has a task of its own send commands, and aborts some of them, until it closes `io`.
    async fn work(&mut self, admin: &Line, io: &Rc<Line>, number: u64) {
        let place = self.plan.reactor;
        self.world.connection_begins(place);
        let worker = Worker {
            world: self.world.clone(),
            plan: self.plan,
            rng: Rng::fork(self.rng.next_u64(), number),
            idle: self.idle.clone(),
            keys: self.keys.clone(),
            io: io.clone(),
            number,
            place,
            left: self.plan.commands,
        };
        clock::spawn(worker.run());
        while !io.is_closed.get() {
            clock::sleep(Nanos(1 + self.rng.below(50_000)), Stage::Queue).await;
            if self.rng.below(3) == 0 && self.abort(admin, io).await.is_none() {
                io.is_ended.set(true);
                io.answered.notify();
            }
        }
    }

    /// Aborts a command, if one is in flight. `None`: the connection ends first.
    async fn abort(&mut self, admin: &Line, io: &Line) -> Option<()> {
        let ids: Vec<u16> = io.pending.borrow().keys().copied().collect();
        if ids.is_empty() {
            return Some(());
        }
        let id = ids[pick(&mut self.rng, ids.len())];
        io.aborting.borrow_mut().push(id);
        let (status, result) = admin.call(Command::abort(IO, id), &[]).await?;
        assert!(status.is_success(), "host {}: Abort: {status:?}", self.plan.number);
        self.world.count_aborted(result & 1 == 0);
        Some(())
    }

    async fn pause(&mut self) {
        clock::sleep(Nanos(1 + self.rng.below(20_000)), Stage::Queue).await;
    }
}

impl Moving {
    /// Returns whether it belongs to the emulated device.
    pub(super) fn is_far(&self) -> bool {
        self.worker.plan.is_far
    }

    /// Continues in the reactor at `place`.
    pub(super) fn arrive(self, place: usize, port: &dyn Fn(u64) -> Rc<dyn Port>) {
        let Self { mut worker, queue } = self;
        let queue = port(worker.number).adopt(queue, worker.io.clone());
        worker.io.queue.replace(Some(queue));
        worker.place = place;
        clock::spawn(worker.run());
    }
}

impl Worker {
    fn is_active(&self) -> bool {
        !self.world.is_stopping() && !self.io.is_ended.get()
    }

    /// Sends commands until the connection leaves or all are sent. At the end it may leave some
    /// unanswered.
    async fn run(mut self) {
        clock::name_task("connection of a host");
        while self.left > 0 && self.is_active() {
            clock::catch_up().await;
            self.send();
            if self.rng.below(4) == 0 {
                clock::sleep(Nanos(1 + self.rng.below(20_000)), Stage::Queue).await;
            }
            if self.rng.below(6) == 0 {
                self.settle().await;
                match self.leave() {
                    None => return,
                    Some(stays) => self = stays,
                }
            }
            if self.io.pending.borrow().len() >= self.plan.depth && self.is_active() {
                self.io.answered.wait().await;
            }
        }
        if self.rng.below(2) == 0 {
            self.settle().await;
        }
        self.io.close();
        self.world.host_ended(self.place);
    }

    /// Waits for the answers that are due.
    async fn settle(&self) {
        while !self.io.pending.borrow().is_empty() && self.is_active() {
            self.io.answered.wait().await;
        }
    }

    /// Moves to another reactor. Returns the connection if it stays.
    fn leave(mut self) -> Option<Self> {
        let (world, place) = (self.world.clone(), self.place);
        let chosen = self.rng.next_u64();
        let choose = |count: usize| pick(&mut Rng::new(chosen), count);
        let mut stays = Some(self);
        let leave = || {
            let queue = stays.as_ref()?.io.queue().detach()?;
            let worker = stays.take()?;
            worker.io.queue.take();
            Some(Moving { worker, queue })
        };
        if world.move_queue(place, choose, leave) {
            world.host_ended(place);
        }
        stays
    }

    fn send(&mut self) {
        let io = self.io.clone();
        for _ in 0..=self.rng.below(self.plan.depth as u64) {
            if self.left > 0 && io.pending.borrow().len() < self.plan.depth {
                self.submit(&io);
                self.left -= 1;
            }
        }
        io.queue().execute_held();
    }

    fn submit(&mut self, io: &Line) {
        let (world, key) = (self.world.clone(), self.key());
        let ledger = world.ledger(self.plan.number);
        match self.rng.below(10) {
            0 => {
                ledger.delete(key);
                io.submit(Command::delete(1, &key), &[], Asked::Delete(key));
            }
            1..=4 => {
                let value = ledger.retrieve(key);
                let pointer = DataPointer::Transport { len: VALUE_BYTES_MAX };
                let command = Command::retrieve(1, &key, VALUE_BYTES_MAX);
                let command = command.with_data_pointer(pointer);
                io.submit(command, &[], Asked::Retrieve(key, value));
            }
            _ => self.store(io, ledger, key),
        }
    }

    fn store(&mut self, io: &Line, ledger: &Ledger, key: KeyBytes) {
        let is_long = self.rng.below(8) == 0;
        let len = 8 + self.rng.below(if is_long { u64::from(VALUE_BYTES_MAX) - 8 } else { 200 });
        let len = u32::try_from(len).expect("a few kilobytes");
        let value = ledger.store(key, len);
        let command = Command::store(1, &key, len, StoreOptions::NONE);
        let command = command.with_data_pointer(DataPointer::Transport { len });
        io.submit(command, &value.bytes(), Asked::Store(key));
    }

    /// Returns a key with no command in flight.
    fn key(&mut self) -> KeyBytes {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < usize::from(KEYS) / 2 {
            self.keys.set(self.keys.get() + 1);
            let [high, low] = self.keys.get().to_be_bytes();
            idle.push([b'k', self.plan.number.to_be_bytes()[1], high, low]);
        }
        let at = pick(&mut self.rng, idle.len());
        idle.swap_remove(at)
    }
}
