use std::cell::Cell;

/// Asks a connection to leave its reactor, so that another one serves it. The connection notices
/// when its host sends something. It shares the request with its owner.
#[derive(Debug, Default)]
pub struct MoveRequest(Cell<State>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The connection has not noticed it.
    Asked,
    /// The connection requests no more data of its host, and waits until nothing is in flight.
    Leaving,
}

impl MoveRequest {
    /// Asks the connection to leave.
    pub fn ask(&self) {
        if self.0.get() == State::Idle {
            self.0.set(State::Asked);
        }
    }

    /// Takes the request back. A connection that has begun to leave still leaves.
    pub fn withdraw(&self) {
        if self.0.get() == State::Asked {
            self.0.set(State::Idle);
        }
    }

    /// Returns whether the connection is asked to leave, or leaves.
    #[inline]
    pub fn is_made(&self) -> bool {
        self.0.get() != State::Idle
    }

    #[inline]
    pub(super) fn is_leaving(&self) -> bool {
        self.0.get() == State::Leaving
    }

    pub(super) fn begin(&self) {
        self.0.set(State::Leaving);
    }

    pub(super) fn clear(&self) {
        self.0.set(State::Idle);
    }
}
