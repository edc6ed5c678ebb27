use crate::door::Door;
use crate::session::Session;
use crate::wire::{Ends, Wire};
use std::sync::Arc;

/// A client that a reactor serves next, without its stream: a new one, or one that has left another
/// reactor with all its requests answered. Dropping it ends its session.
#[derive(Debug)]
pub struct ArrivingClient {
    wire: Arc<Wire>,
    /// That of a client which has left another reactor. Boxed: several futures of each client have
    /// room for this.
    session: Option<Box<Session>>,
}

impl ArrivingClient {
    /// A new client with these addresses.
    pub fn new(ends: Ends) -> Self {
        Self { wire: Arc::new(Wire::new(ends)), session: None }
    }

    pub(crate) fn of(session: Session) -> Self {
        Self { wire: session.wire.clone(), session: Some(Box::new(session)) }
    }

    /// Returns whether another reactor has served it.
    pub fn has_moved(&self) -> bool {
        self.session.is_some()
    }

    /// Returns what counts the commands of the client that were executed.
    pub fn command_counter(&self) -> impl Fn() -> u64 + use<> {
        let wire = self.wire.clone();
        move || wire.commands()
    }

    /// Returns its session in the calling reactor. `None` if the door has as many clients as it may
    /// have.
    pub(crate) fn into_session(self, door: &Arc<Door>) -> Option<Session> {
        if let Some(session) = self.session {
            door.move_here(session.id);
            return Some(*session);
        }
        let session = Session::new(door, self.wire)?;
        door.counters().count_connection();
        Some(session)
    }
}
