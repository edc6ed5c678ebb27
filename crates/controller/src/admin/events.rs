//! Asynchronous events (Base 2.1, Asynchronous Event Request command).

use crate::completion::Outcome;
use crate::fabrics::{Queue, Ticket};
use spec::{AsyncEvent, AsyncEvents, LogPage, SmartLog, Status};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Maximum outstanding requests.
pub(super) const REQUESTS_MAX: u8 = 4;

/// Optional events of an I/O controller (OAES).
pub(super) const STORAGE_EVENTS: u32 = AsyncEvents::NAMESPACES.0 | AsyncEvents::ASYMMETRIC_ACCESS.0;

/// Optional events of a discovery controller (OAES).
pub(super) const DISCOVERY_EVENTS: u32 = AsyncEvents::DISCOVERY.0;

/// The critical warnings that have an event.
const WARNINGS: [(u8, AsyncEvent); 4] = [
    (SmartLog::SPARE_LOW, AsyncEvent::SPARE),
    (SmartLog::TEMPERATURE, AsyncEvent::TEMPERATURE),
    (SmartLog::UNRELIABLE, AsyncEvent::RELIABILITY),
    (SmartLog::READ_ONLY, AsyncEvent::RELIABILITY),
];

/// The outstanding requests of a host and the pending events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    requests: RefCell<VecDeque<Ticket>>,
    /// Pending events.
    untold: RefCell<VecDeque<AsyncEvent>>,
    /// Masked event types, as bits: an event was reported and its log page not read yet.
    masked: Cell<u8>,
    wanted: Cell<AsyncEvents>,
    /// Enabled critical warnings at the last check.
    warnings: Cell<u8>,
}

impl Events {
    /// Returns the events that the host has enabled.
    pub(super) fn wanted(&self) -> AsyncEvents {
        self.wanted.get()
    }

    pub(super) fn set_wanted(&self, wanted: AsyncEvents) {
        self.wanted.set(wanted);
    }

    /// Adds an outstanding request. Returns false if there are too many.
    pub(super) fn add_request(&self, ticket: Ticket) -> bool {
        let mut requests = self.requests.borrow_mut();
        let has_room = requests.len() < usize::from(REQUESTS_MAX);
        if has_room {
            requests.push_back(ticket);
        }
        has_room
    }

    /// Returns whether the host has enabled events of critical warnings.
    pub(crate) fn wants_warnings(&self) -> bool {
        self.wanted_warnings() != 0
    }

    fn wanted_warnings(&self) -> u8 {
        let [wanted, ..] = self.wanted.get().0.to_le_bytes();
        wanted
    }

    /// Reports those of the present critical `warnings` that are new since the last check.
    pub(crate) fn notice_warnings(&self, admin: Option<&Queue>, warnings: u8) {
        let warnings = self.wanted_warnings() & warnings;
        let new = warnings & !self.warnings.replace(warnings);
        for (warning, event) in WARNINGS {
            if new & warning != 0 {
                self.happened(admin, event);
            }
        }
    }

    /// Reports a changed namespace.
    pub(crate) fn notice_namespaces(&self, admin: Option<&Queue>) {
        if self.wanted.get().contains(AsyncEvents::NAMESPACES) {
            self.happened(admin, AsyncEvent::NAMESPACES_CHANGED);
        }
    }

    /// Reports the end of a Sanitize that this controller executed, whatever events are enabled.
    pub(crate) fn notice_sanitized(&self, admin: Option<&Queue>) {
        self.happened(admin, AsyncEvent::SANITIZED);
    }

    /// Drops the pending event of the previous Sanitize when another one starts.
    pub(super) fn forget_sanitized(&self) {
        self.untold.borrow_mut().retain(|event| *event != AsyncEvent::SANITIZED);
        self.unmask(AsyncEvent::SANITIZED.kind());
    }

    /// Reports a changed discovery log page.
    pub(crate) fn notice_discovery(&self, admin: Option<&Queue>) {
        if self.wanted.get().contains(AsyncEvents::DISCOVERY) {
            self.happened(admin, AsyncEvent::DISCOVERY_CHANGED);
        }
    }

    fn happened(&self, admin: Option<&Queue>, event: AsyncEvent) {
        {
            let mut untold = self.untold.borrow_mut();
            if untold.contains(&event) {
                return;
            }
            untold.push_back(event);
        }
        if let Some(admin) = admin {
            self.tell(admin);
        }
    }

    /// Completes requests while events are pending.
    pub(super) fn tell(&self, admin: &Queue) {
        while let Some((ticket, event)) = self.next() {
            admin.answer(ticket, Outcome { result: event.0.into(), ..Outcome::done() });
        }
    }

    fn next(&self) -> Option<(Ticket, AsyncEvent)> {
        let mut requests = self.requests.borrow_mut();
        let mut untold = self.untold.borrow_mut();
        let is_masked = |event: &AsyncEvent| self.masked.get() & 1 << event.kind() != 0;
        let at = untold.iter().position(|event| !is_masked(event))?;
        let ticket = requests.pop_front()?;
        let event = untold.remove(at)?;
        self.masked.set(self.masked.get() | 1 << event.kind());
        Some((ticket, event))
    }

    /// Clears the event of a log page after the host has read it.
    pub(super) fn read(&self, admin: Option<&Queue>, page: LogPage) {
        let kind = match page {
            LogPage::ERRORS => AsyncEvent::PERSISTENT_ERROR.kind(),
            LogPage::SMART => AsyncEvent::RELIABILITY.kind(),
            LogPage::CHANGED_NAMESPACES | LogPage::DISCOVERY => {
                AsyncEvent::NAMESPACES_CHANGED.kind()
            }
            LogPage::SANITIZE => AsyncEvent::SANITIZED.kind(),
            _ => return,
        };
        self.unmask(kind);
        self.untold.borrow_mut().retain(|event| event.log_page() != page);
        if let Some(admin) = admin {
            self.tell(admin);
        }
    }

    /// Unmasks events of this type.
    fn unmask(&self, kind: u8) {
        self.masked.set(self.masked.get() & !(1 << kind));
    }

    /// Completes the request with this id with Command Abort Requested. Returns whether there was
    /// one.
    pub(super) fn abort(&self, queue: &Queue, queue_id: u16, command_id: u16) -> bool {
        let ticket = {
            let mut requests = self.requests.borrow_mut();
            let at = requests.iter().position(|ticket| ticket.head.command_id == command_id);
            at.filter(|_| queue_id == 0).and_then(|at| requests.remove(at))
        };
        if let Some(ticket) = ticket {
            queue.answer(ticket, Outcome::of(Status::ABORT_REQUESTED));
        }
        ticket.is_some()
    }

    /// Drops all outstanding requests without an answer.
    pub(crate) fn drop_requests(&self) {
        self.requests.borrow_mut().clear();
    }

    /// Resets to the initial state and drops the requests.
    pub(crate) fn reset(&self, admin: Option<&Queue>) {
        let requests = std::mem::take(&mut *self.requests.borrow_mut());
        if let Some(admin) = admin {
            for ticket in requests {
                admin.forget(ticket);
            }
        }
        self.untold.borrow_mut().clear();
        self.masked.set(0);
        self.wanted.set(AsyncEvents::default());
        self.warnings.set(0);
    }
}
