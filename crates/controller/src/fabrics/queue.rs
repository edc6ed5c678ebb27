use crate::admin;
use crate::completion::Outcome;
use crate::fabrics::Association;
use crate::fabrics::connect::connect;
use crate::fabrics::port::Entrance;
use crate::fabrics::property;
use crate::fabrics::slots::{Slots, Ticket};
use crate::fabrics::workers::Workers;
use crate::host_queue::{Capsule, HostQueue, Response, Responses};
use crate::status::may_pass;
use spec::{AdminOpcode, Completion, FabricsType, Status};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// Commands that may be under way on a queue that is nobody's yet: its Connect, and a few of a host
/// that does not wait for the answer.
const UNBOUND_COMMANDS: u16 = 32;

/// SQHD in the response to a Connect that turns flow control off (Base 2.1, Connect response).
const NO_FLOW_CONTROL: u16 = 0xffff;

/// A queue pair of a host: nobody's, an admin queue, or an I/O queue.
pub(crate) struct Queue {
    responses: Rc<dyn Responses>,
    pub(crate) entrance: Entrance,
    bound: OnceCell<Bound>,
    /// Closed by the door or ended by the controller: nothing is answered any more.
    over: Cell<bool>,
    head: Cell<u16>,
    slots: RefCell<Slots>,
    pub(crate) workers: Workers,
}

/// What a Connect has made of a queue.
pub(crate) struct Bound {
    pub(crate) association: Rc<Association>,
    /// 0 for the admin queue.
    pub(crate) id: u16,
    pub(crate) entries: u16,
    pub(crate) has_flow_control: bool,
}

impl Bound {
    /// The submission queue's head after one more command; it means nothing without flow control.
    #[inline]
    fn head_after(&self, head: u16) -> u16 {
        if !self.has_flow_control || head + 1 == self.entries { 0 } else { head + 1 }
    }
}

/// A door's handle on a queue.
pub(crate) struct Handle(Rc<Queue>);

impl Handle {
    pub(crate) fn new(entrance: Entrance, responses: Rc<dyn Responses>) -> Self {
        Self(Rc::new(Queue {
            responses,
            entrance,
            bound: OnceCell::new(),
            over: Cell::new(false),
            head: Cell::new(0),
            slots: RefCell::default(),
            workers: Workers::default(),
        }))
    }
}

impl HostQueue for Handle {
    fn submit(&self, capsule: Capsule) {
        let queue = &self.0;
        if queue.over.get() {
            return;
        }
        let Some(ticket) = queue.admit(&capsule) else { return queue.overrun() };
        match queue.bound.get() {
            Some(bound) if bound.id > 0 && !is_fabrics(&capsule) => {
                queue.start(bound, ticket, capsule);
            }
            _ => {
                let queue = queue.clone();
                clock::spawn(async move { queue.run(ticket, &capsule) });
            }
        }
    }

    fn close(&self) {
        if self.0.finish()
            && let Some(bound) = self.0.bound.get()
        {
            bound.association.queue_closed(bound.id);
        }
    }
}

impl Queue {
    #[inline]
    fn admit(&self, capsule: &Capsule) -> Option<Ticket> {
        let most = match self.bound.get() {
            Some(bound) => {
                self.head.set(bound.head_after(self.head.get()));
                bound.entries
            }
            None => UNBOUND_COMMANDS,
        };
        self.slots.borrow_mut().take(&capsule.command, most)
    }

    /// The host has sent more than the queue has entries. The door is told by a task, for it is in
    /// the middle of a [`HostQueue::submit`].
    fn overrun(self: &Rc<Self>) {
        self.finish();
        let queue = self.clone();
        clock::spawn(async move {
            if let Some(bound) = queue.bound.get() {
                bound.association.queue_closed(bound.id);
            }
            queue.responses.end();
        });
    }

    fn run(self: &Rc<Self>, ticket: Ticket, capsule: &Capsule) {
        if let Some(outcome) = self.control(self.bound.get(), ticket, capsule) {
            self.answer(ticket, outcome);
        }
    }

    /// What does not go to the device. `None`: the answer comes later, from whoever has the ticket.
    fn control(
        self: &Rc<Self>,
        bound: Option<&Bound>,
        ticket: Ticket,
        capsule: &Capsule,
    ) -> Option<Outcome> {
        let Some(bound) = bound else {
            let is_connect = is_fabrics(capsule)
                && capsule.command.fabrics_type() == FabricsType::CONNECT
                && !self.over.get();
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return Some(if is_connect { connect(self, capsule) } else { early });
        };
        bound.association.keep_alive.heard();
        if !is_fabrics(capsule) {
            // An I/O command is only seen here if it did not wait for the answer to the Connect.
            let early = Outcome::of(Status::COMMAND_SEQUENCE_ERROR);
            return if bound.id > 0 {
                Some(early)
            } else {
                admin::execute(self, bound, ticket, capsule)
            };
        }
        Some(match (capsule.command.fabrics_type(), bound.id) {
            (FabricsType::CONNECT, _) => Outcome::of(Status::COMMAND_SEQUENCE_ERROR),
            (FabricsType::PROPERTY_GET, 0) => property::get(&bound.association, &capsule.command),
            (FabricsType::PROPERTY_SET, 0) => property::set(&bound.association, &capsule.command),
            (FabricsType::DISCONNECT, 0) => Outcome::of(Status::INVALID_QUEUE_TYPE),
            (FabricsType::DISCONNECT, _) => {
                self.answer(ticket, Outcome::done());
                bound.association.queue_closed(bound.id);
                self.end();
                return None;
            }
            _ => Outcome::of(Status::INVALID_OPCODE),
        })
    }

    /// Makes this the queue of an association, as its Connect asked. That was the first of its
    /// entries.
    pub(crate) fn bind(&self, bound: Bound) {
        self.head.set(if bound.has_flow_control { 1 } else { NO_FLOW_CONTROL });
        let first = self.bound.set(bound).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
    }

    /// What a Connect has made of it, if one has.
    #[inline]
    pub(crate) fn bound(&self) -> Option<&Bound> {
        self.bound.get()
    }

    /// Commands that are under way, those that nobody awaits any more included.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.borrow().taken()
    }

    /// Answers a command, if somebody still awaits that.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        let is_awaited = self.slots.borrow_mut().give_back(ticket);
        if is_awaited {
            self.respond(ticket, outcome);
        }
    }

    /// Ends the wait for the command of this id, which runs to its end. True if there is one.
    pub(crate) fn abort(&self, command_id: u16) -> bool {
        let Some(bound) = self.bound.get() else { return false };
        let Some(aborted) = self.slots.borrow_mut().detach(command_id, bound.entries) else {
            return false;
        };
        self.respond(aborted, Outcome::of(Status::ABORT_REQUESTED));
        true
    }

    /// Gives up a command that no task works on.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.slots.borrow_mut().give_back(ticket);
    }

    /// The controller has done with the queue.
    pub(crate) fn end(&self) {
        if self.finish() {
            self.responses.end();
        }
    }

    /// From here on nothing is answered. True for who says so first.
    fn finish(&self) -> bool {
        let is_first = !self.over.replace(true);
        if is_first {
            self.workers.dismiss();
        }
        is_first
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    fn respond(&self, ticket: Ticket, outcome: Outcome) {
        if self.over.get() {
            return;
        }
        let Outcome { status, result, data } = outcome;
        let bound = self.bound.get();
        let has_flow_control = bound.is_none_or(|bound| bound.has_flow_control);
        let mut entry =
            Completion::new(ticket.command_id, status, result).with_queue(self.head.get(), 0);
        if !status.is_success() {
            if !may_pass(status) {
                entry = entry.with_do_not_retry();
            }
            if let Some(bound) = bound {
                bound.association.errors.record(bound.id, Some(ticket), entry);
            }
        }
        let may_elide = !has_flow_control && status.is_success() && result == 0;
        self.responses.respond(Response { entry, data, may_elide });
    }
}

#[inline]
fn is_fabrics(capsule: &Capsule) -> bool {
    capsule.command.admin_opcode() == AdminOpcode::FABRICS
}
