use crate::connection::{Connection, Request, Then};
use crate::error::Error;
use crate::reads::Reads;
use controller::{Completion, Completions, Queue, Submission};
use net::Stream;
use spec::{Fuse, Status};
use std::cell::Cell;
use std::rc::Rc;

/// Presents I/O queues on one or more connections as one, for commands that read as its [`Reads`]
/// say. Clones share it.
///
/// A long key completes with Invalid Field, because NVMe/TCP cannot carry it. So does a part of a
/// fused operation on connections that take one command at a time. The two commands of a fused
/// operation are submitted in sequence, over one connection. A host sees no stages between
/// submission and completion: all of that time is the link's.
pub struct IoQueue<S: Stream>(Rc<Shared<S>>);

struct Shared<S: Stream> {
    connections: Vec<Connection<S>>,
    reads: Reads,
    turn: Cell<usize>,
    completions: Rc<Completions>,
}

impl<S: Stream> IoQueue<S> {
    pub(crate) fn new(connections: Vec<Connection<S>>, reads: Reads) -> Self {
        assert!(!connections.is_empty(), "a queue is on one connection at least");
        Self(Rc::new(Shared { connections, reads, turn: Cell::new(0), completions: Rc::default() }))
    }

    /// Returns why a connection ended, if one did. Commands submitted to it later complete with
    /// [`spec::Status::HOST_PATHING_ERROR`].
    pub fn failure(&self) -> Option<Error> {
        self.0.connections.iter().find_map(Connection::failure)
    }

    /// Returns the most outstanding commands. More wait in the host.
    pub fn depth(&self) -> usize {
        self.0.connections.iter().map(Connection::depth).sum()
    }

    /// Ends the connections. Outstanding commands complete with
    /// [`spec::Status::HOST_PATHING_ERROR`].
    pub fn close(&self) {
        self.0.connections.iter().for_each(Connection::close);
    }
}

impl<S: Stream> Queue for IoQueue<S> {
    fn submit(&self, submission: Submission) -> u64 {
        let Shared { connections, reads, turn, completions } = &*self.0;
        let number = completions.number();
        let Submission { command, long_key, data } = submission;
        let then = Then::Post(completions.clone());
        let request = Request::new(number, command, data, reads.of(&command), then);
        let at = turn.get();
        if long_key.is_some() || command.is_fused() && connections[at].depth() < 2 {
            request.end(Status::INVALID_FIELD);
            return number;
        }
        if command.fuse() != Fuse::First {
            turn.set((at + 1) % connections.len());
        }
        connections[at].submit(request);
        number
    }

    async fn next(&self) -> Completion {
        self.0.completions.next().await
    }
}

impl<S: Stream> Clone for IoQueue<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Stream> std::fmt::Debug for IoQueue<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IoQueue on {} connections", self.0.connections.len())
    }
}
