//! Asynchronous events (Base 2.1, Asynchronous Event Request command).

use crate::fabrics::{QueueLink, Ticket};
use crate::shared::Shared;
use spec::{AsyncEvent, AsyncEvents, LogPage, SmartLog};
use std::collections::VecDeque;
use std::mem;

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

/// The outstanding requests of a host and the pending events. The reactor of the admin queue
/// completes the requests; any reactor adds events.
#[derive(Debug, Default)]
pub(crate) struct Events(Shared<State>);

#[derive(Debug, Default)]
struct State {
    requests: VecDeque<Ticket>,
    /// Requests that a reset has dropped and whose slots are still taken.
    dropped: VecDeque<Ticket>,
    /// Pending events.
    untold: VecDeque<AsyncEvent>,
    /// Masked event types, as bits: an event was reported and its log page not read yet.
    masked: u8,
    wanted: AsyncEvents,
    /// Enabled critical warnings at the last check.
    warnings: u8,
}

impl State {
    fn wanted_warnings(&self) -> u8 {
        let [wanted, ..] = self.wanted.0.to_le_bytes();
        wanted
    }

    fn next(&mut self) -> Option<(Ticket, AsyncEvent)> {
        let is_masked = |event: &AsyncEvent| self.masked & 1 << event.kind() != 0;
        let at = self.untold.iter().position(|event| !is_masked(event))?;
        let ticket = self.requests.pop_front()?;
        let event = self.untold.remove(at)?;
        self.masked |= 1 << event.kind();
        Some((ticket, event))
    }

    /// Unmasks events of this type.
    fn unmask(&mut self, kind: u8) {
        self.masked &= !(1 << kind);
    }
}

impl Events {
    /// Returns the events that the host has enabled.
    pub(super) fn wanted(&self) -> AsyncEvents {
        self.0.lock().wanted
    }

    pub(super) fn set_wanted(&self, wanted: AsyncEvents) {
        self.0.lock().wanted = wanted;
    }

    /// Adds an outstanding request. Returns false if there are too many.
    pub(super) fn add_request(&self, ticket: Ticket) -> bool {
        let requests = &mut self.0.lock().requests;
        let has_room = requests.len() < usize::from(REQUESTS_MAX);
        if has_room {
            requests.push_back(ticket);
        }
        has_room
    }

    /// Returns whether the host has enabled events of critical warnings.
    pub(crate) fn wants_warnings(&self) -> bool {
        self.0.lock().wanted_warnings() != 0
    }

    /// Reports those of the present critical `warnings` that are new since the last check.
    pub(crate) fn notice_warnings(&self, admin: Option<&QueueLink>, warnings: u8) {
        let new = {
            let state = &mut *self.0.lock();
            let warnings = state.wanted_warnings() & warnings;
            warnings & !mem::replace(&mut state.warnings, warnings)
        };
        for (warning, event) in WARNINGS {
            if new & warning != 0 {
                self.happened(admin, event);
            }
        }
    }

    /// Reports a changed namespace.
    pub(crate) fn notice_namespaces(&self, admin: Option<&QueueLink>) {
        if self.wanted().contains(AsyncEvents::NAMESPACES) {
            self.happened(admin, AsyncEvent::NAMESPACES_CHANGED);
        }
    }

    /// Reports the end of a Sanitize that this controller executed, whatever events are enabled.
    pub(crate) fn notice_sanitized(&self, admin: Option<&QueueLink>) {
        self.happened(admin, AsyncEvent::SANITIZED);
    }

    /// Drops the pending event of the previous Sanitize when another one starts.
    pub(super) fn forget_sanitized(&self) {
        let state = &mut *self.0.lock();
        state.untold.retain(|event| *event != AsyncEvent::SANITIZED);
        state.unmask(AsyncEvent::SANITIZED.kind());
    }

    /// Reports a changed discovery log page.
    pub(crate) fn notice_discovery(&self, admin: Option<&QueueLink>) {
        if self.wanted().contains(AsyncEvents::DISCOVERY) {
            self.happened(admin, AsyncEvent::DISCOVERY_CHANGED);
        }
    }

    fn happened(&self, admin: Option<&QueueLink>, event: AsyncEvent) {
        {
            let untold = &mut self.0.lock().untold;
            if untold.contains(&event) {
                return;
            }
            untold.push_back(event);
        }
        if let Some(admin) = admin {
            admin.tell_events();
        }
    }

    /// Takes the requests that a reset has dropped.
    pub(crate) fn take_dropped(&self) -> VecDeque<Ticket> {
        mem::take(&mut self.0.lock().dropped)
    }

    /// Takes a request and the event that completes it, if there are both.
    pub(crate) fn next(&self) -> Option<(Ticket, AsyncEvent)> {
        self.0.lock().next()
    }

    /// Clears the event of a log page after the host has read it.
    pub(super) fn read(&self, page: LogPage) {
        let kind = match page {
            LogPage::ERRORS => AsyncEvent::PERSISTENT_ERROR.kind(),
            LogPage::SMART => AsyncEvent::RELIABILITY.kind(),
            LogPage::CHANGED_NAMESPACES | LogPage::DISCOVERY => {
                AsyncEvent::NAMESPACES_CHANGED.kind()
            }
            LogPage::SANITIZE => AsyncEvent::SANITIZED.kind(),
            _ => return,
        };
        let state = &mut *self.0.lock();
        state.unmask(kind);
        state.untold.retain(|event| event.log_page() != page);
    }

    /// Takes the request with this id, if there is one.
    pub(super) fn take_request(&self, command_id: u16) -> Option<Ticket> {
        let requests = &mut self.0.lock().requests;
        let at = requests.iter().position(|ticket| ticket.head.command_id == command_id)?;
        requests.remove(at)
    }

    /// Drops all outstanding requests without an answer.
    pub(crate) fn drop_requests(&self) {
        self.0.lock().requests.clear();
    }

    /// Resets to the initial state and drops the requests.
    pub(crate) fn reset(&self, admin: Option<&QueueLink>) {
        {
            let state = &mut *self.0.lock();
            let State { requests, mut dropped, .. } = mem::take(state);
            dropped.extend(requests);
            state.dropped = dropped;
        }
        if let Some(admin) = admin {
            admin.tell_events();
        }
    }
}
