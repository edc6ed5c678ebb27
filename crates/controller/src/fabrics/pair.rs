use crate::admin::Events;
use crate::commit_queue::CommitQueue;
use crate::completion::Outcome;
use crate::fabrics::association::Association;
use crate::fabrics::held::Held;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::placement::Placement;
use crate::fabrics::queue_link::{QueueLink, Request};
use crate::fabrics::slots::{CommandHead, Slots, Ticket};
use crate::fabrics::terms::Terms;
use crate::fabrics::workers::Workers;
use crate::host_queue::{Capsule, Response, Responses};
use crate::io_command::Begun;
use crate::status::may_pass;
use clock::User;
use spec::{AdminOpcode, Command, Completion, Status};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum commands in flight on an unbound queue: its Connect, and a few more from a host that
/// does not wait for the response.
const UNBOUND_COMMANDS: u16 = 32;

/// SQHD in the response to a Connect that turns flow control off (Base 2.1, Connect response).
const NO_FLOW_CONTROL: u16 = 0xffff;

/// The state of a bound queue.
pub(crate) struct Binding {
    pub(crate) terms: Terms,
    pub(crate) association: Arc<Association>,
    /// Set for an I/O queue.
    pub(crate) io_context: Option<IoContext>,
}

impl Binding {
    /// Returns the state of a queue of `association` in the reactor with this number.
    pub(crate) fn new(association: Arc<Association>, terms: Terms, reactor: u32) -> Self {
        let is_io = terms.id > 0;
        let io_context = is_io.then(|| IoContext::new(&association, reactor)).flatten();
        Self { terms, association, io_context }
    }
}

/// The queue pair of a connection: its commands from arrival to response. It is unbound, an admin
/// queue, or an I/O queue.
pub(crate) struct Pair {
    pub(crate) responses: Rc<dyn Responses>,
    binding: OnceCell<Binding>,
    head: Cell<u16>,
    /// Whether another reactor has the queue now.
    pub(crate) has_left: Cell<bool>,
    slots: RefCell<Slots>,
    pub(crate) link: Arc<QueueLink>,
    pub(crate) held: RefCell<Held>,
    pub(crate) workers: Workers,
    pub(crate) commits: CommitQueue<(Ticket, Begun)>,
    /// `None`: this reactor executes all commands.
    pub(crate) placement: Option<Rc<dyn Placement>>,
    /// Counts the queue until its last command has ended.
    _user: User,
}

impl Pair {
    /// Creates an unbound queue, which other reactors reach by `link`.
    pub(crate) fn new(
        responses: Rc<dyn Responses>,
        link: Arc<QueueLink>,
        user: User,
        placement: Option<Rc<dyn Placement>>,
    ) -> Rc<Self> {
        Rc::new(Self {
            responses,
            binding: OnceCell::new(),
            head: Cell::new(0),
            has_left: Cell::new(false),
            slots: RefCell::new(Slots::new(link.clone())),
            link,
            held: RefCell::default(),
            workers: Workers::default(),
            commits: CommitQueue::default(),
            placement,
            _user: user,
        })
    }

    /// Binds the queue for a Connect, which takes the first of its entries.
    pub(crate) fn bind(self: &Rc<Self>, binding: Binding) {
        let head = if binding.terms.has_flow_control { 1 } else { NO_FLOW_CONTROL };
        self.continue_at(head, binding);
    }

    /// Binds the queue with this submission queue head.
    pub(crate) fn continue_at(self: &Rc<Self>, head: u16, binding: Binding) {
        self.head.set(head);
        let first = self.binding.set(binding).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
        clock::spawn(self.clone().serve_requests());
    }

    /// Executes the requests of the association until the queue is over or moves.
    async fn serve_requests(self: Rc<Self>) {
        let Binding { association, .. } = self.binding().expect("the queue is bound");
        while let Some(request) = self.link.next(&self.has_left).await {
            match request {
                Request::Abort(command_id, abort) => {
                    abort.answer(!self.is_over() && self.abort(command_id));
                }
                Request::Answer(ticket, outcome) => self.answer(ticket, outcome),
                Request::TellEvents => self.tell_events(&association.events),
                Request::End => {
                    self.finish();
                    self.responses.end();
                }
            }
        }
    }

    /// Completes Asynchronous Event Requests of an admin queue while events are pending, and frees
    /// the slots of dropped requests.
    pub(crate) fn tell_events(&self, events: &Events) {
        for ticket in events.take_dropped() {
            self.give_back(ticket);
        }
        while let Some((ticket, event)) = events.next() {
            self.answer(ticket, Outcome { result: event.0.into(), ..Outcome::done() });
        }
    }

    /// Returns the association and the parameters of its Connect, if the queue is bound.
    #[inline]
    pub(crate) fn binding(&self) -> Option<&Binding> {
        self.binding.get()
    }

    /// Returns the context of its I/O commands.
    #[inline]
    pub(crate) fn io_context(&self) -> Option<&IoContext> {
        self.binding.get()?.io_context.as_ref()
    }

    /// Admits a command. Returns `None` if the host has sent more commands than the queue has
    /// entries. Held commands have one each.
    pub(crate) fn admit(&self, command: &Command) -> Option<Ticket> {
        if let Some(binding) = self.binding() {
            self.move_head(binding.terms);
        }
        let has_room = self.outstanding() + self.held.borrow().len() < self.entries().into();
        if has_room { self.take_slot(CommandHead::of(command)) } else { None }
    }

    /// Returns the number of commands that are not held, and whose responses will be sent.
    #[inline]
    pub(crate) fn outstanding(&self) -> usize {
        self.slots.borrow().outstanding()
    }

    #[inline]
    fn entries(&self) -> u16 {
        self.binding.get().map_or(UNBOUND_COMMANDS, |binding| binding.terms.entries)
    }

    /// Takes a slot for a command. Returns `None` if all entries have one.
    #[inline]
    pub(crate) fn take_slot(&self, head: CommandHead) -> Option<Ticket> {
        self.slots.borrow_mut().take(head, self.entries())
    }

    /// Admits the two commands of a fused operation.
    pub(crate) fn admit_both(&self, [first, second]: &[Capsule; 2]) -> Option<[Ticket; 2]> {
        Some([self.admit(&first.command)?, self.admit(&second.command)?])
    }

    /// Returns the submission queue head.
    pub(crate) fn head(&self) -> u16 {
        self.head.get()
    }

    /// Advances the submission queue head for an arrived command.
    #[inline]
    pub(crate) fn move_head(&self, terms: Terms) {
        self.head.set(terms.head_after(self.head.get()));
    }

    /// Returns the number of commands in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.link.in_flight()
    }

    /// Sends the response of a command unless the command was aborted.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        if self.give_back(ticket) {
            self.respond(ticket.head, outcome);
        }
    }

    /// Frees the slot of a command. Returns whether its response must be sent.
    #[inline]
    pub(crate) fn give_back(&self, ticket: Ticket) -> bool {
        self.slots.borrow_mut().give_back(ticket)
    }

    /// Aborts a command: it completes now and still runs to its end. Returns whether it was
    /// outstanding.
    pub(crate) fn abort(&self, command_id: u16) -> bool {
        let Some(binding) = self.binding.get() else { return false };
        let entries = binding.terms.entries;
        let aborted = self.slots.borrow_mut().detach(command_id, entries);
        let Some(aborted) = aborted else { return self.abort_held(command_id, entries) };
        self.respond(aborted.head, Outcome::of(Status::ABORT_REQUESTED));
        true
    }

    /// Aborts the first command of a fused operation whose second has not come. It would wait for
    /// the next command of the host without end.
    fn abort_held(&self, command_id: u16, entries: u16) -> bool {
        // The next command of a host without free entries ends the queue.
        if !self.slots.borrow().has_room(entries) {
            return false;
        }
        let Some(held) = self.responses.withdraw(command_id) else { return false };
        let ticket = self.admit(&held).expect("the queue has a free entry");
        self.answer(ticket, Outcome::of(Status::ABORT_REQUESTED));
        true
    }

    /// Ends the queue: later responses are dropped. Returns true for the first call.
    pub(crate) fn finish(self: &Rc<Self>) -> bool {
        let is_first = self.link.close();
        self.execute_held();
        self.workers.dismiss();
        is_first
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.link.is_over()
    }

    /// Sends the response of a command.
    #[inline]
    pub(crate) fn respond(&self, head: CommandHead, Outcome { status, result, data }: Outcome) {
        if self.is_over() {
            return;
        }
        let entry = Completion::new(head.command_id, status, result);
        let mut entry = entry.with_queue(self.head.get(), 0);
        let mut may_elide =
            result == 0 && self.binding().is_some_and(|it| !it.terms.has_flow_control);
        if !status.is_success() {
            may_elide = false;
            entry = self.failed(head, status, entry);
        }
        self.responses.respond(Response { entry, data, may_elide });
    }

    /// Records the failure of a command. Returns its complete entry.
    #[cold]
    fn failed(&self, head: CommandHead, status: Status, mut entry: Completion) -> Completion {
        if !may_pass(status) {
            entry = entry.with_do_not_retry();
        }
        if let Some(Binding { association, terms, .. }) = self.binding() {
            association.errors.record(terms.id, Some(head), entry);
        }
        entry
    }
}

#[inline]
pub(crate) fn is_fabrics(capsule: &Capsule) -> bool {
    capsule.command.admin_opcode() == AdminOpcode::FABRICS
}
