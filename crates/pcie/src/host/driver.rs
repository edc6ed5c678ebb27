use crate::bus::{DoorbellPage, PciFunction, Region};
use crate::function::NvmeFunction;
use crate::host::{MappedPage, Raised};
use crate::host_ram::HostRam;
use crate::segments::PAGE;
use base::Nanos;
use clock::{Stage, sleep};
use spec::{Command, Completion, Configuration, ControllerStatus, Property, Status};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use zerocopy::{FromBytes, IntoBytes};

/// Entries of the admin queues.
const ADMIN_ENTRIES: u16 = 32;

/// A host's driver of a function: registers by accesses to BAR 0, queues in its memory.
pub struct Driver {
    /// The function, as a transport accesses it.
    pub function: NvmeFunction,
    /// The host's memory.
    pub ram: Rc<HostRam>,
    /// The host's interrupts.
    pub raised: Rc<Raised>,
    queues: RefCell<BTreeMap<u16, Rc<Pair>>>,
    /// The pages of Doorbell Buffer Config, if it was sent.
    shadow: Cell<Option<(u64, u64)>>,
    /// The page of doorbells, if the driver has mapped it.
    pub mapped: Option<Rc<MappedPage>>,
    /// Writes of real doorbells.
    pub doorbells: Cell<u64>,
}

/// A queue pair as the driver has it.
pub struct Pair {
    id: u16,
    entries: u16,
    /// The address of the submission queue.
    pub submission: u64,
    /// The address of the completion queue.
    pub completion: u64,
    tail: Cell<u16>,
    head: Cell<u16>,
    phase: Cell<bool>,
    next_id: Cell<u16>,
}

impl Pair {
    /// Returns the pages of the submission and the completion queue.
    fn pages(entries: u16) -> [u64; 2] {
        [64, 16].map(|bytes| (u64::from(entries) * bytes).div_ceil(PAGE))
    }
}

impl Driver {
    /// Creates the driver of a host with this memory and these interrupts.
    pub fn new(function: NvmeFunction, ram: Rc<HostRam>, raised: Rc<Raised>) -> Self {
        let (queues, shadow, mapped, doorbells) = Default::default();
        Self { function, ram, raised, queues, shadow, mapped, doorbells }
    }

    /// Reads a dword of BAR 0.
    pub fn read(&self, offset: u64) -> u32 {
        let mut bytes = [0; 4];
        self.function.read(Region::Bar0, offset, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Writes a dword of BAR 0.
    pub fn write(&self, offset: u64, value: u32) {
        self.function.write(Region::Bar0, offset, &value.to_le_bytes());
    }

    /// Reads a property of 4 bytes, or the lower half of one of 8.
    pub fn property(&self, property: Property) -> u32 {
        self.read(property.0.into())
    }

    /// Reads the status of the controller.
    pub fn status(&self) -> ControllerStatus {
        ControllerStatus(self.property(Property::CSTS))
    }

    /// Writes the configuration of the controller.
    pub fn configure(&self, configuration: Configuration) {
        self.write(Property::CC.0.into(), configuration.0);
    }

    /// Sets the admin queues, as drivers do before they enable the controller.
    pub fn set_admin_queues(&self, submission: u64, completion: u64, entries: u16) {
        let size = u32::from(entries - 1);
        self.write(Property::AQA.0.into(), size << 16 | size);
        for (property, address) in [(Property::ASQ, submission), (Property::ACQ, completion)] {
            self.function.write(Region::Bar0, property.0.into(), &address.to_le_bytes());
        }
    }

    /// Lets the function access memory, or not (Bus Master Enable).
    pub fn set_bus_master(&self, is_enabled: bool) {
        let command = if is_enabled { 0b110 } else { 0b010 };
        self.function.write(Region::Config, 0x04, &[command]);
    }

    /// Enables the controller with new admin queues.
    ///
    /// # Panics
    /// If the controller does not become ready.
    pub fn enable(&self) {
        self.set_bus_master(true);
        self.queues.take();
        self.shadow.set(None);
        let pair = self.pair(0, ADMIN_ENTRIES);
        self.set_admin_queues(pair.submission, pair.completion, ADMIN_ENTRIES);
        self.configure(Configuration::ENABLE_ALL_COMMAND_SETS);
        assert!(self.status().is_ready(), "{:?}", self.status());
    }

    /// Allocates a queue pair, which the controller does not know.
    pub fn pair(&self, id: u16, entries: u16) -> Rc<Pair> {
        let [submission, completion] = Pair::pages(entries);
        let pair = Rc::new(Pair {
            id,
            entries,
            submission: self.ram.allocate(submission),
            completion: self.ram.allocate(completion),
            tail: Cell::new(0),
            head: Cell::new(0),
            phase: Cell::new(true),
            next_id: Cell::new(1),
        });
        self.queues.borrow_mut().insert(id, pair.clone());
        pair
    }

    /// Creates I/O queue `id` with a completion queue and an interrupt vector of its own.
    ///
    /// # Panics
    /// If the controller refuses it.
    pub async fn create_queue(&self, id: u16, entries: u16) {
        for command in self.commands_of_queue(id, entries) {
            assert_eq!(self.admin(command).await.status(), Status::SUCCESS);
        }
    }

    /// Allocates a queue pair, and returns the commands that create it with an interrupt vector of
    /// its own.
    pub fn commands_of_queue(&self, id: u16, entries: u16) -> [Command; 2] {
        let pair = self.pair(id, entries);
        [
            Command::create_io_cq(id, entries, pair.completion, Some(id)),
            Command::create_io_sq(id, entries, pair.submission, id),
        ]
    }

    /// Has the controller read doorbells of I/O queues from memory.
    ///
    /// # Panics
    /// If it refuses that.
    pub async fn use_shadow(&self) {
        assert_eq!(self.admin(self.command_of_shadow()).await.status(), Status::SUCCESS);
    }

    /// Allocates memory for doorbells of I/O queues, which are written there from now on. Returns
    /// the command that has the controller read them.
    pub fn command_of_shadow(&self) -> Command {
        let (values, indexes) = (self.ram.allocate(1), self.ram.allocate(1));
        self.shadow.set(Some((values, indexes)));
        Command::doorbell_buffer_config(values, indexes)
    }

    /// Frees the memory of all queues and shadow doorbells, as a driver may after a reset. Later
    /// accesses of the function fail.
    pub fn free_memory(&self) {
        for pair in self.queues.take().into_values() {
            let [submission, completion] = Pair::pages(pair.entries);
            self.ram.unmap(pair.submission, submission);
            self.ram.unmap(pair.completion, completion);
        }
        if let Some((values, indexes)) = self.shadow.take() {
            self.ram.unmap(values, 1);
            self.ram.unmap(indexes, 1);
        }
    }

    /// Returns a queue pair that was created.
    ///
    /// # Panics
    /// If there is none with this id.
    pub fn queue(&self, id: u16) -> Rc<Pair> {
        self.queues.borrow()[&id].clone()
    }

    /// Executes an admin command.
    pub async fn admin(&self, command: Command) -> Completion {
        self.execute(0, command).await
    }

    /// Executes a command that is alone on its queue.
    ///
    /// # Panics
    /// If another command is completed.
    pub async fn execute(&self, queue: u16, command: Command) -> Completion {
        let id = self.submit(queue, command);
        let completion = self.next(queue).await;
        assert_eq!(completion.command_id(), id);
        completion
    }

    /// Submits a command. Returns its id.
    pub fn submit(&self, queue: u16, command: Command) -> u16 {
        let pair = self.queue(queue);
        let id = pair.next_id.get();
        pair.next_id.set(if id == 0xfffe { 1 } else { id + 1 });
        self.push(queue, command.with_command_id(id));
        self.ring_tail(queue);
        id
    }

    /// Writes a command to its queue and does not ring.
    pub fn push(&self, queue: u16, command: Command) {
        let pair = self.queue(queue);
        let tail = pair.tail.get();
        self.ram.put(pair.submission + u64::from(tail) * 64, command.as_bytes());
        pair.tail.set((tail + 1) % pair.entries);
    }

    /// Moves the tail back by `commands` entries. The next commands overwrite these entries.
    pub fn rewind(&self, queue: u16, commands: u16) {
        let pair = self.queue(queue);
        pair.tail.set((pair.tail.get() + pair.entries - commands) % pair.entries);
    }

    /// Tells the function of commands that were written.
    pub fn ring_tail(&self, queue: u16) {
        let pair = self.queue(queue);
        self.ring(queue, u64::from(queue) * 8, pair.tail.get());
    }

    fn ring(&self, queue: u16, place: u64, value: u16) {
        if let Some(page) = &self.mapped {
            page.store(place, value.into());
            // As a reactor does that is awake.
            self.function.look();
            return;
        }
        let shadow = self.shadow.get().filter(|_| queue > 0);
        if let Some((values, indexes)) = shadow {
            // As Linux does: see nvme_dbbuf_need_event.
            let word = |address| {
                u16::from_le_bytes(self.ram.get(address, 2).try_into().expect("it has 2 bytes"))
            };
            let old = word(values + place);
            self.ram.put(values + place, &u32::from(value).to_le_bytes());
            let event = word(indexes + place);
            if value.wrapping_sub(event).wrapping_sub(1) >= value.wrapping_sub(old) {
                return;
            }
        }
        self.doorbells.set(self.doorbells.get() + 1);
        self.write(0x1000 + place, value.into());
    }

    /// Takes the next completion of a queue, if it was posted. Does not give the entry back.
    ///
    /// # Panics
    /// If it is one of another submission queue.
    pub fn try_next(&self, queue: u16) -> Option<Completion> {
        let pair = self.queue(queue);
        let bytes = self.ram.get(pair.completion + u64::from(pair.head.get()) * 16, 16);
        if (bytes[14] & 1 == 1) != pair.phase.get() {
            return None;
        }
        let completion = Completion::read_from_bytes(&bytes).expect("it has 16 bytes");
        assert_eq!(completion.queue_id(), queue);
        pair.head.set((pair.head.get() + 1) % pair.entries);
        if pair.head.get() == 0 {
            pair.phase.set(!pair.phase.get());
        }
        Some(completion)
    }

    /// Gives the entries of taken completions back.
    pub fn ring_head(&self, queue: u16) {
        let pair = self.queue(queue);
        self.ring(pair.id, u64::from(queue) * 8 + 4, pair.head.get());
    }

    /// Waits for the next completion of a queue by interrupts, and gives its entry back.
    pub async fn next(&self, queue: u16) -> Completion {
        loop {
            let seen = self.raised.total();
            if let Some(completion) = self.try_next(queue) {
                self.ring_head(queue);
                return completion;
            }
            self.raised.after(seen).await;
        }
    }

    /// Waits 100 ms, so that other tasks run until they wait for a host or for a gate.
    pub async fn settle(&self) {
        sleep(Nanos::from_millis(100), Stage::Queue).await;
    }
}
