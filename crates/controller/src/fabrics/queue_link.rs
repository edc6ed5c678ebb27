use crate::completion::Outcome;
use crate::fabrics::slots::Ticket;
use crate::shared::Shared;
use crate::sync::{AtomicBool, AtomicU16, AtomicUsize};
use clock::{Rank, Stage, TaskId};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A queue as other reactors see it. Its association ends it and aborts its commands, from any
/// reactor; a task in the queue's own reactor executes these requests.
#[derive(Default)]
pub(crate) struct QueueLink {
    /// The number of its connection: see [`crate::Entrance::of_connection`].
    pub(crate) connection: Option<u64>,
    /// Entries; 0 before its Connect.
    entries: AtomicU16,
    /// Set when the transport closes the queue or the controller ends it: responses are dropped.
    is_over: AtomicBool,
    in_flight: AtomicUsize,
    inbox: Shared<Inbox>,
}

#[derive(Default)]
struct Inbox {
    /// Requests that the queue's task has not taken.
    requests: VecDeque<Request>,
    /// That task, while it waits for a request.
    waiter: Option<TaskId>,
    /// Whether the task has ended.
    is_closed: bool,
}

/// A request to the reactor of a queue.
pub(crate) enum Request {
    /// Aborts the command with this id, and answers the Abort.
    Abort(u16, Abort),
    /// Responds to a command.
    Answer(Ticket, Outcome),
    /// Completes Asynchronous Event Requests.
    TellEvents,
    /// Ends the connection.
    End,
}

/// An Abort command on its way between the reactors of two queues.
pub(crate) struct Abort {
    pub(crate) admin: Arc<QueueLink>,
    pub(crate) ticket: Ticket,
}

impl Abort {
    /// Completes the Abort: `was_there` says whether the command was outstanding.
    pub(crate) fn answer(self, was_there: bool) {
        self.admin.post(Request::Answer(self.ticket, Outcome::of_abort(was_there)));
    }
}

impl QueueLink {
    /// Creates the link of an unbound queue.
    pub(crate) fn new(connection: Option<u64>) -> Arc<Self> {
        Arc::new(Self { connection, ..Self::default() })
    }

    pub(crate) fn entries(&self) -> u16 {
        self.entries.load(Relaxed)
    }

    pub(crate) fn set_entries(&self, entries: u16) {
        self.entries.store(entries, Relaxed);
    }

    /// Returns the number of commands in flight, aborted ones included.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_in_flight(&self, count: usize) {
        self.in_flight.store(count, Relaxed);
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Ends the queue on behalf of the controller: later responses are dropped at once, and its
    /// reactor ends the connection.
    pub(crate) fn end(&self) {
        let waiter = {
            // The task ends at the end of requests once the queue is over: so both change together.
            let mut inbox = self.inbox.lock();
            if self.is_over.swap(true, Relaxed) {
                return;
            }
            inbox.requests.push_back(Request::End);
            inbox.waiter.take()
        };
        waiter.into_iter().for_each(clock::wake);
    }

    /// Drops later responses of a queue that its transport has closed. Returns true for the first
    /// end.
    pub(crate) fn close(&self) -> bool {
        let is_first = !self.is_over.swap(true, Relaxed);
        let waiter = self.inbox.lock().waiter.take();
        waiter.into_iter().for_each(clock::wake);
        is_first
    }

    /// Requests to abort the command with this id.
    pub(crate) fn abort(&self, command_id: u16, abort: Abort) {
        self.post(Request::Abort(command_id, abort));
    }

    /// Requests to complete Asynchronous Event Requests on this admin queue.
    pub(crate) fn tell_events(&self) {
        self.post(Request::TellEvents);
    }

    /// Has the task in [`Self::next`] end, because the queue moves to another reactor. Its next
    /// task takes later requests. Returns false if the queue is over and stays.
    pub(crate) fn leave(&self) -> bool {
        let waiter = {
            // An end comes before and keeps the queue here, or after and waits for the next task.
            let mut inbox = self.inbox.lock();
            if self.is_over() {
                return false;
            }
            inbox.waiter.take()
        };
        waiter.into_iter().for_each(clock::wake);
        true
    }

    /// Closes a queue that no reactor has, and refuses its requests.
    pub(crate) fn abandon(&self) {
        let requests = {
            let mut inbox = self.inbox.lock();
            self.is_over.store(true, Relaxed);
            inbox.is_closed = true;
            std::mem::take(&mut inbox.requests)
        };
        requests.into_iter().for_each(Request::refuse);
    }

    fn post(&self, request: Request) {
        let waiter = {
            let mut inbox = self.inbox.lock();
            if inbox.is_closed {
                drop(inbox);
                return request.refuse();
            }
            inbox.requests.push_back(request);
            inbox.waiter.take()
        };
        // Also where a queue is dropped that was on its way to a reactor that has ended.
        waiter.into_iter().for_each(clock::wake_from_ended);
    }

    /// Waits for the next request. Returns `None` when the queue is over, or when `has_left` says
    /// that it has left the calling reactor, which has called [`Self::leave`].
    pub(crate) async fn next(&self, has_left: &Cell<bool>) -> Option<Request> {
        loop {
            if has_left.get() {
                return None;
            }
            {
                let mut inbox = self.inbox.lock();
                if let Some(request) = inbox.requests.pop_front() {
                    return Some(request);
                }
                if self.is_over() {
                    inbox.is_closed = true;
                    return None;
                }
                inbox.waiter = Some(clock::current());
            }
            clock::park(Rank::Free, Stage::Queue).await;
        }
    }
}

impl Request {
    /// Ends a request to a queue that is over.
    fn refuse(self) {
        if let Self::Abort(_, abort) = self {
            abort.answer(false);
        }
    }
}
