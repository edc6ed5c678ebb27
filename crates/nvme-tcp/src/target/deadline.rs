use super::connection::Connection;
use base::Nanos;
use clock::Stage;
use net::Stream;
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// How often it is looked whether a connection is still there: a task cannot be woken before the
/// time it sleeps to, and it is not to outlive by much what it waits for, however many come and go.
const STEP: Nanos = Nanos::from_secs(1);

/// When a connection is over if nothing changes it.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    at: Cell<Option<Nanos>>,
    /// Whether a task sleeps until then, or until an earlier one. There is none for a connection
    /// that waits for nothing.
    is_watched: Cell<bool>,
}

impl Deadline {
    pub(super) fn set<S: Stream>(&self, at: Option<Nanos>, connection: &Rc<Connection<S>>) {
        self.at.set(at);
        if at.is_some() && !self.is_watched.replace(true) {
            clock::spawn(watch(Rc::downgrade(connection)));
        }
    }

    /// When to look again. `None`: there is nothing to look for any more, and `over` is called if
    /// the time has come.
    fn look(&self, over: impl FnOnce()) -> Option<Nanos> {
        let at = self.at.get().filter(|at| *at > clock::now());
        if at.is_none() {
            self.is_watched.set(false);
            if self.at.take().is_some() {
                over();
            }
        }
        at
    }
}

async fn watch<S: Stream>(connection: Weak<Connection<S>>) {
    loop {
        let next = connection
            .upgrade()
            .and_then(|connection| connection.deadline().look(|| connection.lose_patience()));
        let Some(at) = next else { return };
        clock::sleep_until(at.min(clock::now() + STEP), Stage::Queue).await;
    }
}
