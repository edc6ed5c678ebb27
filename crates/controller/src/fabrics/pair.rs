use crate::completion::Outcome;
use crate::fabrics::error_log::ErrorLog;
use crate::fabrics::member::Member;
use crate::fabrics::slots::{Slots, Ticket};
use crate::fabrics::workers::Workers;
use crate::host_queue::{Capsule, Response, Responses};
use crate::status::may_pass;
use spec::{AdminOpcode, Command, Completion, Status};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Commands that may be under way on a queue that is nobody's yet: its Connect, and a few of a host
/// that does not wait for the answer.
const UNBOUND_COMMANDS: u16 = 32;

/// SQHD in the response to a Connect that turns flow control off (Base 2.1, Connect response).
const NO_FLOW_CONTROL: u16 = 0xffff;

/// What its Connect has said of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// 0 for the admin queue.
    pub(crate) id: u16,
    pub(crate) entries: u16,
    pub(crate) has_flow_control: bool,
}

impl Terms {
    /// The submission queue's head after one more command; it means nothing without flow control.
    #[inline]
    fn head_after(self, head: u16) -> u16 {
        if !self.has_flow_control || head + 1 == self.entries { 0 } else { head + 1 }
    }
}

/// What a Connect has made of a queue.
pub(crate) struct Binding {
    pub(crate) terms: Terms,
    pub(crate) errors: Arc<ErrorLog>,
    /// Of an I/O queue whose commands are executed here.
    pub(crate) member: Option<Member>,
}

/// What others see of a queue's commands, in whichever reactor they are.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Closed by the door or ended by the controller: nothing is answered any more.
    is_over: AtomicBool,
    in_flight: AtomicUsize,
}

impl Gauge {
    pub(crate) fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Commands that are under way, those that nobody awaits any more included.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }
}

/// The commands of a queue pair, from their arrival to their answers, in the reactor that executes
/// them.
pub(crate) struct Pair {
    pub(crate) responses: Rc<dyn Responses>,
    binding: OnceCell<Binding>,
    gauge: Arc<Gauge>,
    head: Cell<u16>,
    slots: RefCell<Slots>,
    pub(crate) workers: Workers,
}

impl Pair {
    /// One that is nobody's.
    pub(crate) fn new(responses: Rc<dyn Responses>, gauge: Arc<Gauge>) -> Rc<Self> {
        Rc::new(Self {
            responses,
            binding: OnceCell::new(),
            gauge,
            head: Cell::new(0),
            slots: RefCell::default(),
            workers: Workers::default(),
        })
    }

    /// Makes this what a Connect asked for. That was the first of its entries.
    pub(crate) fn bind(&self, binding: Binding) {
        self.head.set(if binding.terms.has_flow_control { 1 } else { NO_FLOW_CONTROL });
        let first = self.binding.set(binding).is_ok();
        assert!(first, "a queue that is bound takes no Connect");
    }

    /// What executes its I/O commands here.
    #[inline]
    pub(crate) fn member(&self) -> Option<&Member> {
        self.binding.get()?.member.as_ref()
    }

    /// A command has arrived. `None`: the host has sent more than the queue has entries.
    #[inline]
    pub(crate) fn admit(&self, command: &Command) -> Option<Ticket> {
        self.move_head();
        let most = self.binding.get().map_or(UNBOUND_COMMANDS, |binding| binding.terms.entries);
        let mut slots = self.slots.borrow_mut();
        let ticket = slots.take(command, most);
        self.gauge.in_flight.store(slots.taken(), Relaxed);
        ticket
    }

    /// The two commands of a fused operation have arrived.
    pub(crate) fn admit_both(&self, [first, second]: &[Capsule; 2]) -> Option<[Ticket; 2]> {
        Some([self.admit(&first.command)?, self.admit(&second.command)?])
    }

    /// A command has arrived that is answered elsewhere, or here.
    #[inline]
    pub(crate) fn move_head(&self) {
        if let Some(binding) = self.binding.get() {
            self.head.set(binding.terms.head_after(self.head.get()));
        }
    }

    /// Commands that are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.gauge.in_flight()
    }

    /// Answers a command, if somebody still awaits that.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        if self.give_back(ticket) {
            self.respond(ticket, outcome);
        }
    }

    /// Gives up a command that no task works on.
    pub(crate) fn forget(&self, ticket: Ticket) {
        self.give_back(ticket);
    }

    #[inline]
    fn give_back(&self, ticket: Ticket) -> bool {
        let mut slots = self.slots.borrow_mut();
        let is_awaited = slots.give_back(ticket);
        self.gauge.in_flight.store(slots.taken(), Relaxed);
        is_awaited
    }

    /// Ends the wait for the command of this id, which runs to its end. True if there is one.
    pub(crate) fn abort(&self, command_id: u16) -> bool {
        let Some(binding) = self.binding.get() else { return false };
        let aborted = self.slots.borrow_mut().detach(command_id, binding.terms.entries);
        let Some(aborted) = aborted else { return false };
        self.respond(aborted, Outcome::of(Status::ABORT_REQUESTED));
        true
    }

    /// From here on nothing is answered. True for who says so first.
    pub(crate) fn finish(&self) -> bool {
        let is_first = !self.is_over();
        self.gauge.end();
        self.workers.dismiss();
        is_first
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.gauge.is_over.load(Relaxed)
    }

    fn respond(&self, ticket: Ticket, outcome: Outcome) {
        if self.is_over() {
            return;
        }
        let Outcome { status, result, data } = outcome;
        let binding = self.binding.get();
        let has_flow_control = binding.is_none_or(|binding| binding.terms.has_flow_control);
        let mut entry = self.with_head(Completion::new(ticket.command_id, status, result));
        if !status.is_success() {
            if !may_pass(status) {
                entry = entry.with_do_not_retry();
            }
            if let Some(binding) = binding {
                binding.errors.record(binding.terms.id, Some(ticket), entry);
            }
        }
        let may_elide = !has_flow_control && status.is_success() && result == 0;
        self.responses.respond(Response { entry, data, may_elide });
    }

    /// `entry` with the place up to which commands were taken.
    pub(crate) fn with_head(&self, entry: Completion) -> Completion {
        entry.with_queue(self.head.get(), 0)
    }
}

#[inline]
pub(crate) fn is_fabrics(capsule: &Capsule) -> bool {
    capsule.command.admin_opcode() == AdminOpcode::FABRICS
}
