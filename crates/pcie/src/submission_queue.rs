use crate::bar0::Doorbell;
use crate::budget::Budget;
use crate::bus::HostMemory;
use crate::completion_queue::CompletionQueue;
use crate::queue_fault::QueueFault;
use crate::ring::Ring;
use crate::segments::Segments;
use crate::shadow_doorbells::ShadowDoorbells;
use crate::work::Work;
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, BufPool};
use controller::{Capsule, FusedOrder, HostQueue, Ordered, PcieController, Response, Responses};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use spec::{AdminOpcode, Command, Completion, DataPointer, DataPointerKind, Status, Transfer};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use zerocopy::FromBytes;

/// Bytes of a submission queue entry.
pub(crate) const ENTRY_BYTES: usize = 64;

/// Entries that are read from host memory at once.
const READ_AT_ONCE: usize = 16;

/// A submission queue in host memory: it fetches commands, passes them to the controller with their
/// data, and posts their completions.
pub(crate) struct SubmissionQueue {
    id: u16,
    parts: Rc<Parts>,
    ring: Ring,
    /// The end of the commands that the host has submitted.
    tail: Cell<u16>,
    completions: Rc<CompletionQueue>,
    /// Fetched commands without a completion, by their ids.
    fetched: RefCell<HashMap<u16, Fetched, FixedState>>,
    order: RefCell<FusedOrder<Capsule>>,
    /// Where the host writes the tail, if not to the real doorbell.
    shadow: RefCell<Option<Rc<ShadowDoorbells>>>,
    /// The controller's end. `None` when the queue has ended.
    queue: RefCell<Option<Rc<dyn HostQueue>>>,
}

/// What all queues of a function use.
pub(crate) struct Parts {
    pub(crate) memory: Rc<dyn HostMemory>,
    pub(crate) controller: PcieController,
    pub(crate) pool: BufPool,
    pub(crate) budget: Budget,
    pub(crate) work: Work,
}

/// What is kept of a command until its completion.
struct Fetched {
    /// Where its data is.
    room: Segments,
    /// Bytes of the budget.
    charge: u64,
}

/// What becomes of a command that was fetched.
pub(crate) enum Next {
    /// The controller has it.
    Started,
    /// It is about the queues of the function, which completes it.
    OfQueues(Command),
}

impl SubmissionQueue {
    pub(crate) fn new(
        id: u16,
        parts: Rc<Parts>,
        (address, entries): (u64, u16),
        completions: Rc<CompletionQueue>,
    ) -> Rc<Self> {
        Rc::new(Self {
            id,
            parts,
            ring: Ring::new(address, ENTRY_BYTES, entries),
            tail: Cell::new(0),
            completions,
            fetched: RefCell::default(),
            order: RefCell::default(),
            shadow: RefCell::default(),
            queue: RefCell::default(),
        })
    }

    /// Sets the controller's end of the queue.
    pub(crate) fn open(&self, queue: Rc<dyn HostQueue>) {
        *self.queue.borrow_mut() = Some(queue);
    }

    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    pub(crate) fn completions(&self) -> &Rc<CompletionQueue> {
        &self.completions
    }

    /// Has the queue read its tail from host memory.
    pub(crate) fn follow(&self, shadow: Option<Rc<ShadowDoorbells>>) {
        *self.shadow.borrow_mut() = shadow;
    }

    /// Reads the tail from host memory, if it is there.
    #[inline]
    pub(crate) fn look(&self) -> Result<(), QueueFault> {
        match &*self.shadow.borrow() {
            Some(shadow) => self.set_tail(shadow.value(Doorbell::Tail(self.id))?),
            None => Ok(()),
        }
    }

    /// Asks the host to write the real doorbell with its next command.
    pub(crate) fn arm(&self) -> Result<(), QueueFault> {
        match &*self.shadow.borrow() {
            Some(shadow) => Ok(shadow.ask(Doorbell::Tail(self.id), self.tail.get())?),
            None => Ok(()),
        }
    }

    /// Takes the value of the doorbell.
    #[inline]
    pub(crate) fn set_tail(&self, tail: u32) -> Result<(), QueueFault> {
        let tail = u16::try_from(tail).ok().filter(|tail| *tail < self.ring.entries());
        self.tail.set(tail.ok_or(QueueFault)?);
        Ok(())
    }

    /// Returns whether the next command can be fetched.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.ring.position() != self.tail.get() && self.has_room()
    }

    /// Returns whether one more command fits. None does while completions wait for room: a host
    /// that consumes none would have the function keep more and more of them.
    #[inline]
    fn has_room(&self) -> bool {
        self.fetched.borrow().len() < usize::from(self.ring.entries())
            && !self.completions.is_waiting()
            && self.queue.borrow().is_some()
    }

    /// Fetches up to `most` commands and starts them. Calls `manage` for those about queues.
    /// Returns how many there were.
    pub(crate) fn fetch(
        self: &Rc<Self>,
        most: u16,
        mut manage: impl FnMut(Command),
    ) -> Result<u16, QueueFault> {
        let mut left = most;
        while left > 0 && self.has_next() {
            let count = usize::from(self.ring.run(self.tail.get()).min(left)).min(READ_AT_ONCE);
            let mut bytes = [0; READ_AT_ONCE * ENTRY_BYTES];
            let bytes = &mut bytes[..count * ENTRY_BYTES];
            self.parts.memory.read(self.ring.address(), bytes)?;
            let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
            for entry in entries {
                let command = Command::read_from_bytes(entry).expect("an entry has 64 bytes");
                match self.take(command) {
                    Some(Next::Started) => {}
                    Some(Next::OfQueues(command)) => manage(command),
                    None => {
                        self.execute_held();
                        return Ok(most - left);
                    }
                }
                left -= 1;
            }
        }
        self.execute_held();
        Ok(most - left)
    }

    fn execute_held(&self) {
        let queue = self.queue.borrow().clone();
        if let Some(queue) = queue {
            queue.execute_held();
        }
    }

    /// Takes the command at the head of the queue. Returns `None` and leaves it there if the queue
    /// or the budget has no room for it.
    fn take(self: &Rc<Self>, command: Command) -> Option<Next> {
        if !self.has_room() {
            return None;
        }
        let bytes = self.parts.controller.data_bytes(self.id, &command);
        let moved = bytes.min(VALUE_BYTES_MAX.into());
        let is_new = !self.fetched.borrow().contains_key(&command.command_id());
        if is_new && !self.parts.budget.take(moved) {
            return None;
        }
        self.ring.advance();
        let charge = if is_new { moved } else { 0 };
        match self.checked(&command, bytes) {
            Ok(segments) if is_new => Some(self.start(&command, bytes, segments, charge)),
            checked => {
                self.parts.budget.give_back(charge);
                self.refuse(&command, checked.err().unwrap_or(Status::COMMAND_ID_CONFLICT));
                Some(Next::Started)
            }
        }
    }

    /// Checks a command as far as the transport is concerned. Returns where its data is; nowhere if
    /// it is more than the controller takes, which then refuses it.
    fn checked(&self, command: &Command, bytes: u64) -> Result<Segments, Status> {
        if command.admin_opcode() == AdminOpcode::FABRICS {
            return Err(Status::INVALID_OPCODE);
        }
        if self.id == 0 && command.data_pointer_kind() != DataPointerKind::Prp {
            return Err(Status::INVALID_FIELD);
        }
        if bytes == 0 || bytes > VALUE_BYTES_MAX.into() {
            return Ok(Segments::default());
        }
        Segments::of(command, bytes, &*self.parts.memory)
    }

    fn start(&self, command: &Command, bytes: u64, segments: Segments, charge: u64) -> Next {
        // Of a longer SGL only the first part is data.
        let len = if bytes > VALUE_BYTES_MAX.into() { bytes } else { segments.bytes().min(bytes) };
        let mut data = Buf::phantom(0, 0);
        if command.transfer() == Transfer::ToController && segments.bytes() > 0 {
            let mut gathered = self.parts.pool.take(usize::try_from(len).expect("it is short"));
            if segments.gather(&*self.parts.memory, gathered.as_mut()).is_err() {
                self.parts.budget.give_back(charge);
                self.refuse(command, Status::DATA_TRANSFER_ERROR);
                return Next::Started;
            }
            data = gathered.freeze();
        }
        self.fetched.borrow_mut().insert(command.command_id(), Fetched { room: segments, charge });
        if self.id == 0 && is_of_queues(command.admin_opcode()) {
            return Next::OfQueues(*command);
        }
        // To the controller the data is that of a transport of its own.
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let command = command.with_data_pointer(DataPointer::Transport { len });
        self.submit(Capsule::new(command, data));
        Next::Started
    }

    /// Submits a command, or both of a fused operation once the second has come.
    fn submit(&self, capsule: Capsule) {
        let Some(queue) = self.queue.borrow().clone() else { return };
        if !capsule.command.is_fused() && !self.order.borrow().is_waiting() {
            return queue.submit(capsule);
        }
        let command = capsule.command;
        let (missed, ordered) = self.order.borrow_mut().take(&command, capsule);
        if let Some(first) = missed {
            queue.submit(first);
        }
        match ordered {
            Ordered::Waits => {}
            Ordered::Alone(capsule) => queue.submit(capsule),
            Ordered::Fused(first, second) => queue.submit(Capsule::fused(first, second)),
        }
    }

    /// Completes a command that the controller does not get.
    fn refuse(&self, command: &Command, status: Status) {
        let entry = Completion::new(command.command_id(), status, 0).with_do_not_retry();
        self.post(entry);
    }

    /// Completes a command about queues.
    pub(crate) fn complete(&self, command_id: u16, status: Status) {
        self.finish(command_id);
        let entry = Completion::new(command_id, status, 0);
        self.post(if status.is_success() { entry } else { entry.with_do_not_retry() });
    }

    fn post(&self, entry: Completion) {
        let entry = entry.with_queue(self.ring.position(), self.id);
        if self.completions.post(entry).is_err() {
            self.parts.controller.fail();
        }
        self.parts.work.notify();
    }

    /// Forgets a command. Returns where its data goes.
    fn finish(&self, command_id: u16) -> Option<Segments> {
        let Fetched { room, charge } = self.fetched.borrow_mut().remove(&command_id)?;
        self.parts.budget.give_back(charge);
        Some(room)
    }

    /// Ends the queue: commands that have started run to their end without a completion.
    pub(crate) fn close(&self) {
        let queue = self.queue.take();
        // The admin queue ends with its controller.
        if let Some(queue) = queue.filter(|_| self.id > 0) {
            queue.close();
        }
        for (_, fetched) in self.fetched.borrow_mut().drain() {
            self.parts.budget.give_back(fetched.charge);
        }
    }
}

/// Returns whether the function itself executes an admin command.
const fn is_of_queues(opcode: AdminOpcode) -> bool {
    matches!(
        opcode,
        AdminOpcode::CREATE_IO_SQ
            | AdminOpcode::CREATE_IO_CQ
            | AdminOpcode::DELETE_IO_SQ
            | AdminOpcode::DELETE_IO_CQ
            | AdminOpcode::DOORBELL_BUFFER_CONFIG
    )
}

/// The controller's handle of a queue.
pub(crate) struct QueueHandle(pub(crate) Rc<SubmissionQueue>);

impl Responses for QueueHandle {
    fn respond(&self, Response { mut entry, data, .. }: Response) {
        let queue = &self.0;
        let room = queue.finish(entry.command_id());
        let Some(room) = room else { return };
        if let Some(bytes) = data.bytes().filter(|bytes| !bytes.is_empty())
            && room.scatter(&*queue.parts.memory, bytes).is_err()
        {
            entry = Completion::new(entry.command_id(), Status::DATA_TRANSFER_ERROR, 0);
        }
        queue.post(entry);
    }

    fn end(&self) {
        self.0.close();
    }

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        let order = &mut self.0.order.borrow_mut();
        let held = order.withdraw(|held| held.command.command_id() == command_id);
        held.map(|held| held.command)
    }
}
