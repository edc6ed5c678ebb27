use super::connection::Connection;
use base::Nanos;
use clock::Stage;
use net::Stream;
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// Interval at which a deadline's task checks that its connection still exists. A sleeping task
/// cannot be woken early, and it must not outlive the connection by much.
const STEP: Nanos = Nanos::from_secs(1);

/// The time at which a connection ends unless the deadline changes.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    at: Cell<Option<Nanos>>,
    /// Whether a task sleeps until this or an earlier deadline. A connection without a deadline has
    /// no task.
    is_watched: Cell<bool>,
}

impl Deadline {
    pub(super) fn set<S: Stream>(&self, at: Option<Nanos>, connection: &Rc<Connection<S>>) {
        self.at.set(at);
        if at.is_some() && !self.is_watched.replace(true) {
            clock::spawn(watch(Rc::downgrade(connection)));
        }
    }

    /// Returns when to check again. Returns `None` if no deadline is left, after calling `over` for
    /// one that has passed.
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
            .and_then(|connection| connection.deadline().look(|| connection.time_out()));
        let Some(at) = next else { return };
        clock::sleep_until(at.min(clock::now() + STEP), Stage::Queue).await;
    }
}
