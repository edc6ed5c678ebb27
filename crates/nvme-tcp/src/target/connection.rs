use super::admission::{Admission, Need, cut};
use super::budget::Budget;
use super::config::Config;
use super::deadline::Deadline;
use super::ended::Ended;
use super::fused::{Arrived, FusedCommands, Ready};
use super::limits::{COMMANDS_MAX, GROUP_MAX, TIMEOUT, UNANSWERED_MAX};
use super::transfers::Transfers;
use crate::framing::{Brought, Outbox};
use crate::pdu::{C2hData, CapsuleResp, CommonHeader, R2t, Side};
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, Nanos};
use clock::Notify;
use controller::{Capsule, HostQueue, Ordered, Response, Responses};
use net::{MoveRequest, Stream};
use spec::{Command, Completion, Status};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// The reader takes commands and the writer sends responses.
    Open,
    /// The reader takes no more commands. The writer sends what is queued, then shuts the stream
    /// down.
    Ending,
    /// As `Ending`, but the writer sends the reason and the host shuts the stream down.
    Terminating,
    /// The stream is shut down.
    Over,
}

/// State shared by the reader, the writer and the queue of a connection.
pub(super) struct Connection<S> {
    pub(super) stream: Rc<S>,
    pub(super) config: Config,
    pub(super) moves: Rc<MoveRequest>,
    /// How often it has begun to leave.
    pub(super) leaves: Cell<u64>,
    pub(super) state: RefCell<State>,
    /// `None` before the `ICReq` and after it is closed.
    pub(super) queue: RefCell<Option<Rc<dyn HostQueue>>>,
    /// Number of commands without a sent response.
    commands: Cell<usize>,
    /// How many of them have no queued response either.
    unanswered: Cell<usize>,
    course: Cell<Course>,
    deadline: Deadline,
    /// Whether a command has succeeded. On an unbound queue only a Connect succeeds.
    is_connected: Cell<bool>,
    /// The reason of its end, once known.
    reason: Cell<Option<Ended>>,
    /// Notified when there is something to send, or the course changes.
    pub(super) work: Notify,
    /// Notified when a command may have finished, the course changes, or the connection stays.
    pub(super) room: Notify,
    /// Notified when the writer has ended.
    pub(super) end: Notify,
    pub(super) writer_has_ended: Cell<bool>,
}

pub(super) struct State {
    pub(super) outbox: Outbox,
    pub(super) transfers: Transfers,
    pub(super) fused: FusedCommands,
    pub(super) admission: Admission,
    /// The responses in the outbox, in groups that are sent as a whole.
    unsent: VecDeque<Unsent>,
    /// Number of responses queued after the last group.
    ungrouped: usize,
    /// SQHD of the last response of the queue, for responses that the transport makes itself.
    pub(super) queue_head: u16,
}

/// Responses in the outbox: at most [`GROUP_MAX`], or one while commands are charged.
struct Unsent {
    /// Position in the outbox up to which it must send.
    end: u64,
    responses: usize,
    /// Bytes that the commands were charged.
    charge: u64,
}

impl<S: Stream> Connection<S> {
    pub(super) fn new(
        stream: Rc<S>,
        config: Config,
        budget: Rc<Budget>,
        moves: Rc<MoveRequest>,
    ) -> Self {
        let outbox = Outbox::new(Side::Controller, config.counters.clone());
        let admission = Admission::new(budget);
        Self {
            stream,
            config,
            moves,
            leaves: Cell::new(0),
            state: RefCell::new(State {
                outbox,
                transfers: Transfers::default(),
                fused: FusedCommands::default(),
                admission,
                unsent: VecDeque::new(),
                ungrouped: 0,
                queue_head: 0,
            }),
            queue: RefCell::default(),
            commands: Cell::new(0),
            unanswered: Cell::new(0),
            course: Cell::new(Course::Open),
            deadline: Deadline::default(),
            is_connected: Cell::new(false),
            reason: Cell::new(None),
            work: Notify::new(),
            room: Notify::new(),
            end: Notify::new(),
            writer_has_ended: Cell::new(false),
        }
    }

    #[inline]
    pub(super) fn course(&self) -> Course {
        self.course.get()
    }

    /// Changes the course and wakes the reader and the writer.
    pub(super) fn set_course(&self, course: Course) {
        self.course.set(course);
        self.notify();
    }

    /// Returns the number of commands without a sent response.
    pub(super) fn commands(&self) -> usize {
        self.commands.get()
    }

    /// Continues a connection of a host that has connected, and has sent this many `commands` that
    /// are not submitted.
    pub(super) fn set_resumed(&self, commands: usize) {
        self.is_connected.set(true);
        self.commands.set(commands);
        self.unanswered.set(commands);
    }

    /// Sets the reason of the end, unless one is set already.
    pub(super) fn note_reason(&self, reason: Ended) {
        self.reason.set(self.reason.get().or(Some(reason)));
    }

    /// Returns why it has ended.
    pub(super) fn reason(&self) -> Ended {
        self.reason.get().expect("the reader has noted why it stopped")
    }

    pub(super) fn deadline(&self) -> &Deadline {
        &self.deadline
    }

    /// Sets the time at which the connection ends unless the deadline is changed before.
    pub(super) fn set_deadline(self: &Rc<Self>, at: Option<Nanos>) {
        self.deadline.set(at, self);
    }

    /// Returns whether the host has connected. Until then its total timeout is [`TIMEOUT`].
    pub(super) fn is_connected(&self) -> bool {
        self.is_connected.get()
    }

    /// Records that the first command has succeeded.
    fn note_connected(self: &Rc<Self>) {
        self.is_connected.set(true);
        if self.course.get() == Course::Open {
            self.set_deadline(None);
        }
    }

    /// Returns whether requested data (R2T) is outstanding.
    pub(super) fn awaits_data(&self) -> bool {
        !self.state.borrow().transfers.is_empty()
    }

    pub(super) fn time_out(&self) {
        self.note_reason(Ended::Silent);
        self.shut_down();
    }

    /// Stops taking commands. The writer sends what is queued, with [`TIMEOUT`] as its timeout.
    pub(super) fn wind_up(self: &Rc<Self>, course: Course, reason: Ended) {
        if self.course.get() == Course::Open {
            self.course.set(course);
            self.note_reason(reason);
            self.set_deadline(Some(clock::host_now() + TIMEOUT));
            self.notify();
        }
    }

    /// Shuts the stream down and wakes the reader and the writer, so that both end.
    pub(super) fn shut_down(&self) {
        self.course.set(Course::Over);
        self.stream.shut_down();
        self.notify();
    }

    fn notify(&self) {
        self.work.notify();
        self.room.notify();
    }

    /// Closes the queue: it gets no more commands and its responses are dropped.
    pub(super) fn close_queue(&self) {
        let queue = self.queue.take();
        if let Some(queue) = queue {
            queue.close();
        }
    }

    /// Closes the connection and waits until the writer has ended.
    pub(super) async fn leave(self: &Rc<Self>) {
        self.close_queue();
        self.shut_down();
        self.set_deadline(None);
        if !self.writer_has_ended.get() {
            self.end.wait().await;
        }
        // Running commands keep the connection alive, so its memory is freed here.
        let mut state = self.state.borrow_mut();
        state.outbox = Outbox::new(Side::Controller, self.config.counters.clone());
        state.transfers = Transfers::default();
        state.fused = FusedCommands::default();
        state.admission.clear();
    }

    /// Counts a received command. Returns false if the connection has too many.
    #[inline]
    pub(super) fn take_command(&self) -> bool {
        let has_room = self.has_room();
        let taken = usize::from(has_room);
        self.commands.set(self.commands.get() + taken);
        self.unanswered.set(self.unanswered.get() + taken);
        has_room
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.commands.get() < COMMANDS_MAX && self.unanswered.get() < UNANSWERED_MAX
    }

    /// Waits until [`Self::take_command`] may succeed, the course has changed, or a connection that
    /// leaves stays.
    pub(super) async fn wait_for_room(&self) {
        self.room.wait().await;
    }

    /// Takes the next command of the host, in the order of their capsules.
    #[inline]
    pub(super) fn arrive(&self, command: &Command, mut brought: Brought) {
        cut(command, &mut brought);
        if command.is_fused() || self.state.borrow().fused.order.is_waiting() {
            self.arrive_in_order(command, brought);
        } else {
            self.take_alone(command, brought);
        }
    }

    /// Takes the next command if it or the previous one is fused.
    fn arrive_in_order(&self, command: &Command, brought: Brought) {
        // The parts of a fused operation do not move.
        self.stay();
        let it = Arrived { command: *command, brought };
        let (missed, ordered) = self.state.borrow_mut().fused.order.take(command, it);
        if let Some(first) = missed {
            self.submit_part(first);
        }
        match ordered {
            Ordered::Waits => {}
            Ordered::Alone(it) if command.is_fused() => self.submit_part(it),
            Ordered::Alone(it) => self.take_alone(&it.command, it.brought),
            Ordered::Fused(first, second) => self.begin_fused([first, second]),
        }
    }

    /// Takes a command that is not fused.
    #[inline]
    fn take_alone(&self, command: &Command, brought: Brought) {
        match brought {
            Brought::Nothing => {
                let need = Need::of(command);
                if need.is_little() {
                    self.submit(command, Buf::phantom(0, 0));
                } else {
                    self.begin(command, need);
                }
            }
            Brought::Data(data) => self.submit(command, data),
            Brought::Damaged => self.refuse(command, Status::TRANSIENT_TRANSPORT_ERROR),
        }
    }

    /// Submits a fused command whose other command is missing. The queue refuses it, so no data is
    /// asked for.
    fn submit_part(&self, Arrived { command, brought }: Arrived) {
        match brought {
            Brought::Data(data) => self.submit(&command, data),
            Brought::Nothing => self.submit(&command, Buf::phantom(0, 0)),
            Brought::Damaged => self.refuse(&command, Status::TRANSIENT_TRANSPORT_ERROR),
        }
    }

    /// Starts both commands of a fused operation. The first keeps its part of the budget while it
    /// waits for the second, so both together have to fit the smallest budget. Otherwise no data is
    /// asked for, and the queue refuses them.
    fn begin_fused(&self, commands: [Arrived; 2]) {
        let needs = commands.each_ref().map(|it| match it.brought {
            Brought::Nothing => Need::of(&it.command),
            Brought::Data(_) | Brought::Damaged => Need::Nothing,
        });
        let asked: u32 = needs.iter().map(|need| need.data()).sum();
        self.state.borrow_mut().fused.expect(commands.each_ref().map(|it| it.command));
        for (it, need) in commands.into_iter().zip(needs) {
            match need {
                Need::Data(_) if asked <= VALUE_BYTES_MAX => self.begin(&it.command, need),
                _ => self.fill(&it.command, it.brought),
            }
        }
    }

    /// Takes the data that an R2T asked for.
    pub(super) fn fill(&self, command: &Command, brought: Brought) {
        if !command.is_fused() {
            return self.take_alone(command, brought);
        }
        let ready = self.state.borrow_mut().fused.fill(command, brought);
        match ready {
            None => {}
            Some(Ready::Start(capsule)) => {
                if let Some(queue) = &*self.queue.borrow() {
                    queue.submit(capsule);
                }
            }
            Some(Ready::Refuse(parts)) => {
                for (command, status) in parts {
                    self.refuse(&command, status);
                }
            }
        }
    }

    /// Starts a command without in-capsule data, once admitted.
    fn begin(&self, command: &Command, need: Need) {
        if self.moves.is_leaving() {
            self.state.borrow_mut().admission.hold_back(command, need);
        } else if !need.is_charged() || self.state.borrow_mut().admission.admit(command, need) {
            self.start(command, need);
        }
    }

    fn start(&self, command: &Command, need: Need) {
        match need {
            Need::Data(len) => self.request(command, len),
            Need::Nothing | Need::Room(_) => self.submit(command, Buf::phantom(0, 0)),
        }
    }

    /// Asks the host for the data of a command.
    fn request(&self, command: &Command, len: u32) {
        let buf = self.config.pool.take(len as usize);
        let mut state = self.state.borrow_mut();
        let tag = state.transfers.expect(*command, buf, len);
        state.outbox.push(&R2t::new(command.command_id(), tag, 0, len));
        self.work.notify();
    }

    /// Submits a command with its data to the queue.
    fn submit(&self, command: &Command, data: Buf) {
        if let Some(queue) = &*self.queue.borrow() {
            queue.submit(Capsule::new(*command, data));
        }
    }

    /// Executes the commands that the queue holds. The reader calls it before it waits.
    #[inline]
    pub(super) fn execute_held(&self) {
        if let Some(queue) = &*self.queue.borrow() {
            queue.execute_held();
        }
    }

    /// Answers a command whose data, or that of its fused command, has a wrong digest. The queue
    /// never gets it, so SQHD is that of the queue's last response. The host may send it again.
    fn refuse(&self, command: &Command, status: Status) {
        let mut state = self.state.borrow_mut();
        let entry = Completion::new(command.command_id(), status, 0);
        let entry = entry.with_queue(state.queue_head, 0);
        state.outbox.push(&CapsuleResp::new(entry));
        state.note_answer(command.command_id());
        self.unanswered.set(self.unanswered.get() - 1);
        self.work.notify();
    }

    /// Forgets the commands whose responses are sent, and starts those that waited for their
    /// budget.
    pub(super) fn note_sent(&self) {
        let mut state = self.state.borrow_mut();
        let (sent, mut answered) = (state.outbox.sent_to(), 0);
        if state.outbox.is_empty() {
            answered = std::mem::take(&mut state.ungrouped);
        } else {
            state.end_group(0);
        }
        while let Some(group) = state.unsent.pop_front_if(|group| group.end <= sent) {
            state.admission.give_back(group.charge);
            answered += group.responses;
        }
        assert!(answered <= self.commands.get(), "each command is answered once");
        self.commands.set(self.commands.get() - answered);
        let may_start = state.admission.is_waiting()
            && self.course() == Course::Open
            && !self.moves.is_leaving();
        drop(state);
        if may_start {
            self.start_admitted();
        }
        // One that leaves waits for its last response, however many commands it takes along.
        if self.has_room() || self.moves.is_leaving() {
            self.room.notify();
        }
    }

    /// Starts the commands that waited for the budget and fit it now.
    pub(super) fn start_admitted(&self) {
        loop {
            let next = self.state.borrow_mut().admission.next();
            let Some((command, need)) = next else { break };
            self.start(&command, need);
        }
        self.execute_held();
    }
}

impl State {
    /// Notes that a command is answered by what is queued now.
    #[inline]
    fn note_answer(&mut self, command_id: u16) {
        self.ungrouped += 1;
        if self.admission.has_charges() {
            let charge = self.admission.answered(command_id);
            self.end_group(charge);
        } else if self.ungrouped == GROUP_MAX {
            self.end_group(0);
        }
    }

    /// Ends a group of responses, if there are any.
    #[inline(never)]
    fn end_group(&mut self, charge: u64) {
        let responses = std::mem::take(&mut self.ungrouped);
        if responses > 0 {
            self.unsent.push_back(Unsent { end: self.outbox.queued_to(), responses, charge });
        }
    }
}

/// The queue's handle of its connection, which [`Responses::end`] needs.
pub(super) struct ConnectionHandle<S>(pub(super) Rc<Connection<S>>);

impl<S: Stream> Responses for ConnectionHandle<S> {
    /// Queues a response, its data first, all of it in one `C2HData`.
    fn respond(&self, Response { entry, data, may_elide }: Response) {
        if !self.0.is_connected() && entry.status().is_success() {
            self.0.note_connected();
        }
        let (id, len) = (entry.command_id(), data.len());
        let is_elided = may_elide && len > 0;
        let state = &mut *self.0.state.borrow_mut();
        state.queue_head = entry.queue_head();
        if len > 0 {
            // Hosts that scatter data into several buffers may take it from one PDU only.
            let flags = if is_elided { CommonHeader::SUCCESS } else { 0 } | CommonHeader::LAST;
            state.outbox.push_with_data(&C2hData::new(id, 0, len, flags), data);
        }
        if !is_elided {
            state.outbox.push(&CapsuleResp::new(entry));
        }
        state.note_answer(id);
        self.0.unanswered.set(self.0.unanswered.get() - 1);
        self.0.work.notify();
    }

    fn end(&self) {
        self.0.wind_up(Course::Ending, Ended::ByController);
    }

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        let order = &mut self.0.state.borrow_mut().fused.order;
        order.withdraw(|held| held.command.command_id() == command_id).map(|held| held.command)
    }
}
