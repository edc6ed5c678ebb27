use crate::bar0::Doorbell;
use crate::budget::Budget;
use crate::bus::{HostMemory, OutsideMemory};
use crate::completion_queue::CompletionQueue;
use crate::pending::Pending;
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::ring::Ring;
use crate::segments::Segments;
use crate::turn::Turn;
use crate::work::Work;
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, BufPool};
use controller::{Capsule, FusedOrder, HostQueue, Ordered, PcieController, Response, Responses};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use spec::{
    AdminOpcode, Command, Completion, DataPointer, DataPointerKind, Fuse, Status, Transfer,
};
use std::cell::{Cell, RefCell};
use std::mem;
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
    /// Has the queue while the host has submitted more than was fetched.
    pending: Rc<Pending>,
    /// Fetched commands without a completion, by their ids.
    fetched: RefCell<HashMap<u16, Fetched, FixedState>>,
    order: RefCell<FusedOrder<Capsule>>,
    /// Bytes of the budget of aborted commands, which may still run.
    of_aborted: Cell<u64>,
    /// Where the tail is read, if the function is not told of each write.
    polled: RefCell<Option<Rc<PolledDoorbells>>>,
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
    command: Command,
    /// Where its data for the host goes.
    segments: Segments,
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
            pending: completions.pending().clone(),
            completions,
            fetched: RefCell::default(),
            order: RefCell::default(),
            of_aborted: Cell::new(0),
            polled: RefCell::default(),
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

    pub(crate) fn doorbell(&self) -> Doorbell {
        Doorbell::Tail(self.id)
    }

    pub(crate) fn completions(&self) -> &Rc<CompletionQueue> {
        &self.completions
    }

    /// Has the queue read its tail there.
    pub(crate) fn set_polled(&self, polled: Option<Rc<PolledDoorbells>>) {
        *self.polled.borrow_mut() = polled;
    }

    /// Takes the tail, if it is polled. Returns it.
    #[inline]
    pub(crate) fn look(&self) -> Result<Option<u16>, QueueFault> {
        let value = self.polled.borrow().as_ref().map(|polled| polled.value(self.doorbell()));
        // A guest's firmware may move memory while a queue is there.
        let Some(Ok(tail)) = value else { return Ok(None) };
        self.set_tail(tail)?;
        Ok(Some(self.tail.get()))
    }

    /// Asks the host to write the real doorbell with its next command.
    pub(crate) fn arm(&self) -> Result<(), OutsideMemory> {
        let polled = self.polled.borrow();
        let set =
            |polled: &Rc<PolledDoorbells>| polled.set_event_index(self.doorbell(), self.tail.get());
        polled.as_ref().map_or(Ok(()), set)
    }

    /// Returns the end of the commands that the host has submitted.
    #[inline]
    pub(crate) fn tail(&self) -> u16 {
        self.tail.get()
    }

    /// Takes the value of the doorbell.
    #[inline]
    pub(crate) fn set_tail(&self, tail: u32) -> Result<(), QueueFault> {
        let tail = u16::try_from(tail).ok().filter(|tail| *tail < self.ring.entries());
        self.tail.set(tail.ok_or(QueueFault)?);
        self.note_pending();
        Ok(())
    }

    /// Notes whether there are commands to fetch.
    #[inline]
    fn note_pending(&self) {
        if self.ring.position() == self.tail.get() {
            self.pending.commands.remove(self.id);
        } else {
            self.pending.commands.insert(self.id);
        }
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

    /// Fetches commands and starts them, as long as `turn` and the budget have room. Calls `manage`
    /// for those about queues.
    pub(crate) fn fetch(
        &self,
        turn: &mut Turn,
        manage: impl FnMut(Command),
    ) -> Result<(), QueueFault> {
        let taken = self.take_all(turn, manage);
        self.parts.controller.end_commands();
        taken?;
        self.note_pending();
        self.execute_held();
        Ok(())
    }

    fn take_all(
        &self,
        turn: &mut Turn,
        mut manage: impl FnMut(Command),
    ) -> Result<(), OutsideMemory> {
        let mut is_stopped = false;
        while !is_stopped && self.has_next() {
            let run = usize::from(self.ring.run(self.tail.get()));
            let mut bytes = [0; READ_AT_ONCE * ENTRY_BYTES];
            let bytes = &mut bytes[..run.min(READ_AT_ONCE) * ENTRY_BYTES];
            self.parts.memory.read(self.ring.address(), bytes)?;
            let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
            for entry in entries {
                let command = Command::read_from_bytes(entry).expect("an entry has 64 bytes");
                match (!turn.is_over()).then(|| self.take(command, turn)).flatten() {
                    Some(Next::Started) => {}
                    Some(Next::OfQueues(command)) => manage(command),
                    None => {
                        is_stopped = true;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn execute_held(&self) {
        let queue = self.queue.borrow().clone();
        if let Some(queue) = queue {
            queue.execute_held();
        }
    }

    /// Takes the command at the head of the queue. Returns `None` and leaves it there if the queue
    /// or the budget has no room for it.
    fn take(&self, command: Command, turn: &mut Turn) -> Option<Next> {
        if !self.has_room() {
            return None;
        }
        let bytes = self.parts.controller.data_bytes(self.id, &command);
        let checked = self.checked(&command, bytes);
        let charge = match &checked {
            // Admin commands move little, and must get through.
            Ok(segments) if self.id > 0 => segments.bytes() + segments.list_bytes(),
            _ => 0,
        };
        if !self.parts.budget.take(charge) {
            return None;
        }
        self.ring.advance();
        turn.count(charge);
        let started = checked.and_then(|segments| self.start(&command, bytes, segments, charge));
        Some(started.unwrap_or_else(|status| {
            self.parts.budget.give_back(charge);
            self.refuse(&command, status);
            Next::Started
        }))
    }

    /// Checks a command as far as the transport is concerned. Returns where its data is; nowhere if
    /// it brings more than the controller takes, which then refuses it.
    fn checked(&self, command: &Command, bytes: u64) -> Result<Segments, Status> {
        if self.fetched.borrow().contains_key(&command.command_id()) {
            return Err(Status::COMMAND_ID_CONFLICT);
        }
        if command.admin_opcode() == AdminOpcode::FABRICS {
            return Err(Status::INVALID_OPCODE);
        }
        if self.id == 0 && command.data_pointer_kind() != DataPointerKind::Prp {
            return Err(Status::INVALID_FIELD);
        }
        if bytes > VALUE_BYTES_MAX.into() {
            // More than MDTS. Only the controller knows the status of a value that is too long.
            return match command.transfer() {
                Transfer::ToController => Ok(Segments::default()),
                _ => Err(Status::INVALID_FIELD),
            };
        }
        if bytes == 0 {
            return Ok(Segments::default());
        }
        Segments::of(command, bytes, &*self.parts.memory)
    }

    fn start(
        &self,
        command: &Command,
        bytes: u64,
        mut segments: Segments,
        charge: u64,
    ) -> Result<Next, Status> {
        let len = if bytes > VALUE_BYTES_MAX.into() { bytes } else { segments.bytes() };
        let mut data = Buf::phantom(0, 0);
        if command.transfer() == Transfer::ToController && segments.bytes() > 0 {
            let mut gathered = self.parts.pool.take(usize::try_from(len).expect("it is short"));
            let brought = mem::take(&mut segments).gather(&*self.parts.memory, gathered.as_mut());
            brought.map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            data = gathered.freeze();
        }
        self.fetched
            .borrow_mut()
            .insert(command.command_id(), Fetched { command: *command, segments, charge });
        if self.id == 0 && is_of_queues(command.admin_opcode()) {
            return Ok(Next::OfQueues(*command));
        }
        // To the controller the data is that of a transport of its own.
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let command = command.with_data_pointer(DataPointer::Transport { len });
        self.submit(Capsule::new(command, data));
        Ok(Next::Started)
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

    /// Completes a command that the controller does not get. A first command of a fused operation
    /// that waits for its second one waits no more.
    fn refuse(&self, command: &Command, status: Status) {
        let first = self.order.borrow_mut().withdraw(|_| true);
        if let Some(Capsule { command: first, .. }) = first {
            let is_second = command.fuse() == Fuse::Second;
            self.complete(
                &first,
                if is_second {
                    Status::FAILED_FUSED_COMMAND
                } else {
                    Status::MISSING_FUSED_COMMAND
                },
            );
        }
        self.fail(command, status);
    }

    /// Completes a command that was fetched and that the controller does not have.
    pub(crate) fn complete(&self, command: &Command, status: Status) {
        self.finish(command.command_id());
        if status.is_success() {
            self.post(Completion::new(command.command_id(), status, 0));
        } else {
            self.fail(command, status);
        }
    }

    fn fail(&self, command: &Command, status: Status) {
        let entry = Completion::new(command.command_id(), status, 0).with_do_not_retry();
        self.parts.controller.record_failure(self.id, command, entry);
        self.post(entry);
    }

    fn post(&self, entry: Completion) {
        let entry = entry.with_queue(self.ring.position(), self.id);
        if self.completions.post(entry).is_err() {
            self.parts.controller.fail();
        }
        self.parts.work.notify();
    }

    /// Forgets a command that has ended.
    fn finish(&self, command_id: u16) {
        if let Some(Fetched { charge, .. }) = self.fetched.borrow_mut().remove(&command_id) {
            self.parts.budget.give_back(charge);
        }
    }

    /// Ends the queue: commands that have started run to their end without a completion.
    pub(crate) fn close(&self) {
        let queue = self.queue.take();
        // The admin queue ends with its controller.
        if let Some(queue) = queue.filter(|_| self.id > 0) {
            queue.close();
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

/// The controller's handle of a queue. It is dropped when the last command of the queue has ended.
pub(crate) struct QueueHandle(pub(crate) Rc<SubmissionQueue>);

impl Drop for QueueHandle {
    fn drop(&mut self) {
        let queue = &self.0;
        let left: u64 = queue.fetched.borrow_mut().drain().map(|(_, it)| it.charge).sum();
        queue.parts.budget.give_back(left + queue.of_aborted.take());
        queue.parts.work.notify();
    }
}

impl Responses for QueueHandle {
    fn respond(&self, Response { mut entry, data, .. }: Response) {
        let queue = &self.0;
        // A reset of the subsystem by another host has disabled the controller.
        let controller = &queue.parts.controller;
        if !controller.takes_commands() && !controller.is_enabled() {
            return;
        }
        let fetched = queue.fetched.borrow_mut().remove(&entry.command_id());
        let Some(Fetched { command, segments, charge }) = fetched else { return };
        if entry.status() == Status::ABORT_REQUESTED {
            queue.of_aborted.set(queue.of_aborted.get() + charge);
        } else {
            queue.parts.budget.give_back(charge);
        }
        if let Some(bytes) = data.bytes().filter(|bytes| !bytes.is_empty())
            && segments.scatter(&*queue.parts.memory, bytes).is_err()
        {
            entry = Completion::new(entry.command_id(), Status::DATA_TRANSFER_ERROR, 0);
            controller.record_failure(queue.id, &command, entry);
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
