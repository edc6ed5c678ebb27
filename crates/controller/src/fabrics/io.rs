use crate::commit_queue::{Commit, CommitQueue, HasCommits, store_of};
use crate::completion::Outcome;
use crate::controller::Controller;
use crate::fabrics::held::{HELD_MAX, Held, HeldCommand};
use crate::fabrics::held_read::HeldRead;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::job::{Job, Todo};
use crate::fabrics::pair::Pair;
use crate::fabrics::slots::{CommandHead, Ticket};
use crate::fabrics::transfer::{brought, cut, room};
use crate::fabrics::work::Work;
use crate::fabrics::workers::WorkSlot;
use crate::fused;
use crate::gather::gathered;
use crate::host_queue::Capsule;
use crate::io_command::{self, Begun, Counted};
use crate::namespace::{Namespace, NamespaceInUse};
use crate::quick::Tried;
use crate::span::{Span, TRANSFER_BYTES_MAX};
use crate::submission::Submission;
use base::{Buf, Nanos};
use clock::{BusyStage, Stages};
use media::Blocks;
use smallvec::SmallVec;
use spec::{Command, Opcode, Status, Transfer};
use std::rc::Rc;
use std::sync::Arc;

impl Pair {
    /// Starts an I/O command on the device.
    pub(crate) fn start(self: &Rc<Self>, io_context: &IoContext, ticket: Ticket, capsule: Capsule) {
        io_context.association.keep_alive.hear();
        match decode(io_context, capsule, false) {
            Ok(job) => self.give(ticket, job.map(Todo::Execute)),
            Err(status) => {
                let pair = self.clone();
                clock::spawn(async move { pair.answer(ticket, Outcome::of(status)) });
            }
        }
    }

    /// Executes the held commands: those that must wait in tasks.
    pub(crate) fn execute_held(self: &Rc<Self>) {
        if let Some(placement) = &self.placement
            && self.held.borrow().namespace.is_some()
        {
            placement.prepare();
        }
        let held = &mut *self.held.borrow_mut();
        if held.namespace.is_none() {
            return;
        }
        let io_context = self.io_context().expect("a queue that holds commands executes them");
        if let Some(placement) = &self.placement
            && !held.commands.is_empty()
        {
            self.divert_some(io_context, &**placement, held);
        }
        let (_, namespace) = held.namespace.take().expect("a queue that holds has a namespace");
        let _stage = clock::enter_busy_stage(BusyStage::Kv);
        let mut work = Work::default();
        let began = self.placement.as_ref().map(|_| clock::host_now());
        let count = held.len() as u64;
        if let Namespace::Block(blocks) = &**namespace {
            let blocks = (&namespace, &**blocks);
            self.execute_reads(io_context, blocks, held, &mut work);
        }
        for HeldCommand { head, room, quick } in &mut held.commands {
            let begun = quick.begun(*room);
            let tried = quick.attempt(store_of(&namespace));
            let take_slot = || self.take_slot(*head).expect("the queue had room for the command");
            match tried {
                Tried::Done(outcome) => {
                    self.conclude(io_context, Some(*head), begun, outcome, &mut work);
                }
                Tried::Landing(landing) => {
                    let began = clock::now();
                    io_context.tally.begin(began);
                    let (namespace, command) = (namespace.clone(), (take_slot(), begun));
                    let commit = Commit { namespace, landing, began, command };
                    self.commits.push(self, commit);
                }
                Tried::Waits => {
                    let (namespace, todo) = (namespace.clone(), Todo::Quick(quick.take()));
                    self.give(take_slot(), Job { namespace, begun, todo });
                }
            }
        }
        held.commands.clear();
        io_context.count(&work);
        if let Some((placement, began)) = self.placement.as_ref().zip(began) {
            placement.executed(clock::host_now() - began, count);
        }
    }

    /// Executes held Reads, and counts them in `work`: those that must wait in tasks.
    fn execute_reads(
        self: &Rc<Self>,
        io_context: &IoContext,
        (namespace, blocks): (&Arc<NamespaceInUse>, &dyn Blocks),
        held: &mut Held,
        work: &mut Work,
    ) {
        let block_bytes = blocks.shape().block_bytes;
        let spans = held.reads.iter().map(|read| {
            let span = Span::of(&read.command);
            (span.first, span.short())
        });
        let spans: SmallVec<[(u64, u32); HELD_MAX]> = spans.collect();
        blocks.read_at_once(&spans, &mut held.contents);
        assert_eq!(held.contents.len(), held.reads.len(), "each read has an answer");
        for (read, content) in held.reads.drain(..).zip(held.contents.drain(..)) {
            let HeldRead { command, room } = read;
            let head = CommandHead::of(&command);
            let begun = Begun { bytes: 0, counted: Counted::Read, room };
            if let Some(content) = content {
                let outcome = Outcome::with_data(gathered(content, block_bytes));
                self.conclude(io_context, Some(head), begun, outcome, work);
            } else {
                namespace.expect(&command);
                let ticket = self.take_slot(head).expect("the queue had room for the command");
                let data = Buf::phantom(0, 0);
                let todo = Todo::Execute(Submission { command, long_key: None, data });
                self.give(ticket, Job { namespace: namespace.clone(), begun, todo });
            }
        }
    }

    /// Passes a job to an idle or a new task.
    #[inline]
    fn give(self: &Rc<Self>, ticket: Ticket, job: Job<Todo>) {
        if let Some(slot) = self.workers.give(ticket, job) {
            clock::spawn(work(self.clone(), slot));
        }
    }

    /// Starts two adjacent I/O commands on the device as one operation.
    pub(crate) fn start_fused(
        self: &Rc<Self>,
        io_context: &IoContext,
        tickets: [Ticket; 2],
        capsules: [Capsule; 2],
    ) {
        io_context.association.keep_alive.hear();
        let (pair, jobs) = (self.clone(), decode_fused(io_context, capsules));
        clock::spawn(async move {
            match jobs {
                Ok(jobs) => pair.execute_fused(tickets, jobs).await,
                Err(statuses) => {
                    for (ticket, status) in tickets.into_iter().zip(statuses) {
                        pair.answer(ticket, Outcome::of(status));
                    }
                }
            }
        });
    }

    async fn execute_fused(&self, tickets: [Ticket; 2], [first, second]: [Job<Submission>; 2]) {
        let io_context = self.io_context().expect("a pair that is given jobs executes them");
        let device = &io_context.device;
        let (_, second, second_begun) = second.begin(io_context, tickets[1]);
        let (namespace, first, first_begun) = first.begin(io_context, tickets[0]);
        let outcomes = device.execute_fused(Some(namespace), [first, second]).await;
        let begun = [first_begun, second_begun];
        for ((ticket, begun), outcome) in tickets.into_iter().zip(begun).zip(outcomes) {
            self.end_here(ticket, begun, outcome);
        }
    }

    /// Ends an I/O command that was executed in this task.
    fn end_here(&self, ticket: Ticket, (begun, at): (Begun, Nanos), outcome: Outcome) {
        let stages = clock::stages();
        assert_eq!(stages.total(), clock::now() - at, "stages add up to the latency");
        self.end((ticket, begun), outcome, &stages);
    }

    /// Counts an executed I/O command in `work`, and responds to the command with this head.
    /// Refuses data that is longer than the host's buffer.
    #[inline]
    fn conclude(
        &self,
        io_context: &IoContext,
        head: Option<CommandHead>,
        Begun { bytes, counted, room }: Begun,
        mut outcome: Outcome,
        work: &mut Work,
    ) {
        if outcome.data.len() > room {
            outcome = Outcome::of(Status::DATA_SGL_LENGTH_INVALID);
        }
        let bytes = bytes + u64::from(outcome.data.len());
        match counted {
            _ if !outcome.status.is_success() => {
                io_context.tally.count_failure(outcome.status);
                work.others += 1;
            }
            Counted::Read | Counted::ReadInside => {
                work.reads += 1;
                work.bytes_read += bytes;
            }
            Counted::Write | Counted::WriteInside => {
                work.writes += 1;
                work.bytes_written += bytes;
            }
            Counted::Neither => work.others += 1,
        }
        if counted.is_write() {
            io_context.device.sanitizing.written();
        }
        if let Some(head) = head {
            self.respond(head, outcome);
        }
    }
}

/// The task of a worker slot: executes its commands until the queue ends.
async fn work(pair: Rc<Pair>, slot: Rc<WorkSlot>) {
    let io_context = pair.io_context().expect("a pair that is given jobs executes them");
    while let Some((ticket, job)) = slot.job.take() {
        let (namespace, todo, begun) = job.begin(io_context, ticket);
        let outcome = io_context.device.carry_out(namespace, todo).await;
        pair.end_here(ticket, begun, outcome);
        if pair.is_over() || !pair.workers.keep(&slot) {
            return;
        }
        slot.notify.wait().await;
    }
}

impl HasCommits for Pair {
    type Command = (Ticket, Begun);

    fn commit_queue(&self) -> &CommitQueue<Self::Command> {
        &self.commits
    }

    fn end(&self, (ticket, begun): Self::Command, outcome: Outcome, _: &Stages) {
        let io_context = self.io_context().expect("it executes commands");
        io_context.tally.end(clock::now());
        let head = self.give_back(ticket).then_some(ticket.head);
        let mut work = Work::default();
        self.conclude(io_context, head, begun, outcome, &mut work);
        io_context.count(&work);
    }
}

impl Controller {
    /// Executes a command of `namespace`.
    async fn carry_out(&self, namespace: Arc<NamespaceInUse>, todo: Todo) -> Outcome {
        match (todo, &**namespace) {
            (Todo::Execute(submission), _) => self.execute(Some(namespace), submission).await,
            (Todo::Quick(mut quick), Namespace::Kv(store)) => quick.execute(store).await,
            (Todo::Quick(..), _) => panic!("it is a command of pairs"),
        }
    }
}

/// Decodes two adjacent I/O commands, or returns the status of each.
fn decode_fused(
    io_context: &IoContext,
    [first, second]: [Capsule; 2],
) -> Result<[Job<Submission>; 2], [Status; 2]> {
    let association = &io_context.association;
    if association.registers.takes_commands()
        && let Some(namespace) = association.namespace(first.command.nsid())
    {
        fused::check(&namespace, &first.command, &second.command).map_err(|status| [status; 2])?;
    }
    match [decode(io_context, first, true), decode(io_context, second, true)] {
        [Ok(first), Ok(second)] => Ok([first, second]),
        [Err(status), _] => Err(fused::failed(0, status)),
        [Ok(_), Err(status)] => Err(fused::failed(1, status)),
    }
}

/// Decodes an I/O command as far as the fabric is concerned. A fused
/// command is refused unless the other command came with it (`is_beside`).
#[inline]
fn decode(
    IoContext { association, device, value_bytes, .. }: &IoContext,
    capsule: Capsule,
    is_beside: bool,
) -> Result<Job<Submission>, Status> {
    if !association.registers.takes_commands() {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    let Capsule { command, data, .. } = capsule;
    let namespace = device.namespace_of(command.nsid(), &association.host);
    let Some(namespace) = namespace else {
        let is_known = io_command::is_known(command.opcode());
        return Err(if is_known { Status::INVALID_NAMESPACE } else { Status::INVALID_OPCODE });
    };
    let what = io_command::find(namespace.command_set(), command.opcode());
    let what = what.ok_or(Status::INVALID_OPCODE)?;
    if command.is_fused() && !is_beside {
        return Err(fused::refusal_alone(&namespace, &command));
    }
    if is_store(&namespace, &command) && command.size() > *value_bytes {
        return Err(Status::INVALID_VALUE_SIZE);
    }
    if let Some(status) = device.sanitizing.refusal() {
        return Err(status);
    }
    if device.inventory.is_formatting(command.nsid()) {
        return Err(Status::FORMAT_IN_PROGRESS);
    }
    // The device refuses a command that would move too much.
    let moved = (what.bytes)(&command, namespace.block_bytes()).min(OVERLONG);
    let moved = u32::try_from(moved).map_err(|_| Status::INTERNAL_ERROR)?;
    let (data, room) = match command.transfer() {
        Transfer::None => (Buf::phantom(0, 0), 0),
        Transfer::ToController => (cut(brought(&command, data)?, moved)?, 0),
        Transfer::ToHost => (Buf::phantom(0, 0), room(&command)?),
    };
    // The device must not fill a buffer that the host has no room for.
    if command.transfer() == Transfer::ToHost && room < moved.min(TRANSFER_BYTES_MAX) {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    namespace.expect(&command);
    let counted = what.counted;
    let bytes = counted.bytes(&command, &data, namespace.block_bytes());
    let todo = Submission { command, long_key: None, data };
    Ok(Job { namespace, begun: Begun { bytes, counted, room }, todo })
}

/// One byte more than a command may move.
const OVERLONG: u64 = TRANSFER_BYTES_MAX as u64 + 1;

/// Returns whether the command stores a value; opcodes are ambiguous without the command set.
#[inline]
fn is_store(namespace: &Namespace, command: &Command) -> bool {
    matches!(namespace, Namespace::Kv(_)) && command.opcode() == Opcode::STORE
}
