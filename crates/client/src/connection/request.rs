use base::{Buf, Nanos};
use clock::Notify;
use controller::{Completion, Completions};
use spec::{Command, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// A command and the receiver of its completion.
#[derive(Debug)]
pub(crate) struct Request {
    number: u64,
    pub(super) command: Command,
    pub(super) data: Buf,
    /// The most bytes that it may read.
    pub(super) room: u32,
    submitted: Nanos,
    then: Then,
}

/// The receiver of a completion.
#[derive(Debug)]
pub(crate) enum Then {
    /// A completion queue.
    Post(Rc<Completions>),
    /// The task that waits for the command.
    Answer(Rc<Answer>),
}

/// The completion of a command, for one waiting task.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Buf,
}

/// The place where one task waits for its completion.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    state: RefCell<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Missing,
    There(Reply),
    /// The connection ended first.
    Lost,
}

impl Answer {
    /// Waits for the completion. `None`: the connection ended first.
    pub(super) async fn wait(&self) -> Option<Reply> {
        loop {
            let state = self.state.take();
            match state {
                State::There(reply) => return Some(reply),
                State::Lost => return None,
                State::Missing => self.notify.wait().await,
            }
        }
    }

    fn set(&self, state: State) {
        *self.state.borrow_mut() = state;
        self.notify.notify();
    }
}

impl Request {
    /// Returns a request submitted now.
    pub(crate) fn new(number: u64, command: Command, data: Buf, room: u32, then: Then) -> Self {
        Self { number, command, data, room, submitted: clock::host_now(), then }
    }

    /// Completes the request without data.
    pub(crate) fn end(self, status: Status) {
        self.complete(status, 0, Buf::phantom(0, 0));
    }

    /// Its connection ended.
    pub(super) fn lose(self) {
        match &self.then {
            Then::Post(_) => self.end(Status::HOST_PATHING_ERROR),
            Then::Answer(answer) => answer.set(State::Lost),
        }
    }

    pub(super) fn complete(self, status: Status, result: u64, data: Buf) {
        let Self { number: id, command, submitted, then, .. } = self;
        match then {
            Then::Answer(answer) => answer.set(State::There(Reply { status, result, data })),
            Then::Post(completions) => {
                let ended = (status, result, data);
                completions.post(Completion::over_link(id, command.opcode(), submitted, ended));
            }
        }
    }
}
