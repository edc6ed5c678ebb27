//! Asynchronous events (Base 2.1, Asynchronous Event Request command).

use super::health;
use crate::completion::Outcome;
use crate::fabrics::{Association, Queue, Service, Ticket};
use spec::{AsyncEvent, AsyncEvents, LogPage, NamespaceList, SmartLog, Status};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// Requests that may wait at a time.
pub(super) const REQUESTS_MAX: u8 = 4;

/// Namespaces that the log page of changed ones has room for.
const CHANGES_MAX: usize = 1_024;

/// What there is to be told by a controller of a subsystem, beyond warnings (OAES).
pub(super) const STORAGE_EVENTS: u32 = AsyncEvents::NAMESPACES.0 | AsyncEvents::ASYMMETRIC_ACCESS.0;

/// What there is to be told by a discovery controller (OAES).
pub(super) const DISCOVERY_EVENTS: u32 = AsyncEvents::DISCOVERY.0;

/// The critical warnings that there is an event of.
const WARNINGS: [(u8, AsyncEvent); 4] = [
    (SmartLog::SPARE_LOW, AsyncEvent::SPARE),
    (SmartLog::TEMPERATURE, AsyncEvent::TEMPERATURE),
    (SmartLog::UNRELIABLE, AsyncEvent::RELIABILITY),
    (SmartLog::READ_ONLY, AsyncEvent::RELIABILITY),
];

/// What a host waits to be told, and what there is to tell it.
#[derive(Debug, Default)]
pub(crate) struct Events {
    requests: RefCell<VecDeque<Ticket>>,
    /// What happened and was not told.
    untold: RefCell<VecDeque<AsyncEvent>>,
    /// Types of events, as bits, of which one was told and its log page not read.
    masked: Cell<u8>,
    wanted: Cell<AsyncEvents>,
    /// The critical warnings that the host wants to be told of, when they were looked at last.
    warnings: Cell<u8>,
}

/// Answers an Asynchronous Event Request, at once or when something happens.
pub(super) fn request(association: &Association, queue: &Queue, ticket: Ticket) -> Option<Outcome> {
    let events = &association.events;
    {
        let mut requests = events.requests.borrow_mut();
        if requests.len() >= usize::from(REQUESTS_MAX) {
            return Some(Outcome::of(Status::ASYNC_EVENT_LIMIT_EXCEEDED));
        }
        requests.push_back(ticket);
    }
    events.notice_health(association);
    events.tell(queue);
    None
}

impl Events {
    /// The events that the host wants.
    pub(super) fn wanted(&self) -> AsyncEvents {
        self.wanted.get()
    }

    pub(super) fn set_wanted(&self, wanted: AsyncEvents) {
        self.wanted.set(wanted);
    }

    /// Looks whether there are critical warnings that there were not before.
    pub(crate) fn notice_health(&self, association: &Association) {
        let Service::Storage(subsystem) = &association.service else { return };
        let [wanted, ..] = self.wanted.get().0.to_le_bytes();
        if wanted == 0 {
            return;
        }
        let warnings = wanted & health::critical_warnings(subsystem, &association.features);
        let new = warnings & !self.warnings.replace(warnings);
        for (warning, event) in WARNINGS {
            if new & warning != 0 {
                self.happened(association, event);
            }
        }
    }

    /// A namespace has changed.
    pub(crate) fn notice_namespaces(&self, association: &Association) {
        if self.wanted.get().contains(AsyncEvents::NAMESPACES) {
            self.happened(association, AsyncEvent::NAMESPACES_CHANGED);
        }
    }

    /// A Sanitize that this controller was asked for has ended. Every host is told that.
    pub(crate) fn notice_sanitized(&self, association: &Association) {
        self.happened(association, AsyncEvent::SANITIZED);
    }

    /// Another Sanitize has begun: what there was to tell of the one before is of no use.
    pub(super) fn forget_sanitized(&self) {
        self.untold.borrow_mut().retain(|event| *event != AsyncEvent::SANITIZED);
        self.unmask(AsyncEvent::SANITIZED.kind());
    }

    /// The discovery log page has changed.
    pub(crate) fn notice_discovery(&self, association: &Association) {
        if self.wanted.get().contains(AsyncEvents::DISCOVERY) {
            self.happened(association, AsyncEvent::DISCOVERY_CHANGED);
        }
    }

    fn happened(&self, association: &Association, event: AsyncEvent) {
        {
            let mut untold = self.untold.borrow_mut();
            if untold.contains(&event) {
                return;
            }
            untold.push_back(event);
        }
        if let Some(admin) = association.queue(0) {
            self.tell(&admin);
        }
    }

    /// Answers requests as long as there is something to tell.
    fn tell(&self, admin: &Queue) {
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

    /// The host has read a log page and is done with what it tells of.
    pub(super) fn read(&self, association: &Association, page: LogPage) {
        if page == LogPage::CHANGED_NAMESPACES {
            association.changes.clear();
        }
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
        if let Some(admin) = association.queue(0) {
            self.tell(&admin);
        }
    }

    /// Events of this type are told again.
    fn unmask(&self, kind: u8) {
        self.masked.set(self.masked.get() & !(1 << kind));
    }

    /// Answers the request of this id with Command Abort Requested. True if there is one.
    pub(super) fn abort(&self, queue: &Queue, queue_id: u16, command_id: u16) -> bool {
        let ticket = {
            let mut requests = self.requests.borrow_mut();
            let at = requests.iter().position(|ticket| ticket.command_id == command_id);
            at.filter(|_| queue_id == 0).and_then(|at| requests.remove(at))
        };
        if let Some(ticket) = ticket {
            queue.answer(ticket, Outcome::of(Status::ABORT_REQUESTED));
        }
        ticket.is_some()
    }

    /// Nobody waits any more.
    pub(crate) fn drop_requests(&self) {
        self.requests.borrow_mut().clear();
    }

    /// As at the start, with the requests given up.
    pub(crate) fn reset(&self, association: &Association) {
        let requests = std::mem::take(&mut *self.requests.borrow_mut());
        if let Some(admin) = association.queue(0) {
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

/// The namespaces that have changed since the host last read of it.
#[derive(Debug, Default)]
pub(crate) struct Changes(RefCell<BTreeSet<u32>>);

impl Changes {
    pub(crate) fn add(&self, nsid: u32) {
        let mut changed = self.0.borrow_mut();
        if changed.len() <= CHANGES_MAX {
            changed.insert(nsid);
        }
    }

    /// The log page.
    pub(super) fn page(&self) -> NamespaceList {
        let changed = self.0.borrow();
        if changed.len() > CHANGES_MAX {
            return NamespaceList::too_many();
        }
        changed.iter().copied().collect()
    }

    fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}
