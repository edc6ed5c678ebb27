use std::cell::Cell;

/// Asks a connection to leave its reactor, so that another one serves it. The connection notices
/// when its peer sends something. It shares the request with its owner.
#[derive(Debug, Default)]
pub struct MoveRequest(Cell<State>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// The connection has not noticed it.
    Asked,
    /// The connection begins nothing new, and waits until nothing is in flight.
    Leaving,
}

impl MoveRequest {
    /// Asks the connection to leave.
    pub fn ask(&self) {
        if self.0.get() == State::Idle {
            self.0.set(State::Asked);
        }
    }

    /// Takes the request back. A connection that has begun to leave still leaves, if it can soon.
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

    /// Returns whether the connection has begun to leave.
    #[inline]
    pub fn is_leaving(&self) -> bool {
        self.0.get() == State::Leaving
    }

    /// Notes that the connection has begun to leave.
    pub fn begin(&self) {
        self.0.set(State::Leaving);
    }

    /// Ends the request: the connection stays, or has left.
    pub fn clear(&self) {
        self.0.set(State::Idle);
    }
}
