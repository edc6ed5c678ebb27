use crate::ack::Ack;
use crate::log::State;
use crate::store::Store;
use std::sync::Arc;

/// A store or delete that has been accepted and is not in the log yet. A shared host page stays
/// open for it until its record joins a page or this drops.
#[must_use = "pages stay open for it until it drops"]
pub struct Announced {
    /// `None` where hosts are answered before their pages land: no page is padded early then.
    store: Option<Arc<Store>>,
    counted: bool,
    /// The write has waited for space, and has had its turn.
    pub(crate) has_waited: bool,
}

impl Announced {
    /// Stops counting this write while it waits for space: pages do not stay open for it.
    pub(crate) fn pause(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| self.counted) {
            self.counted = false;
            store.log.retract(&mut store.log.state());
        }
    }

    /// As [`Self::pause`], with the log's `state` locked.
    pub(crate) fn pause_in(&mut self, state: &mut State) {
        if let Some(store) = self.store.as_ref().filter(|_| self.counted) {
            self.counted = false;
            store.log.retract(state);
        }
    }

    /// Counts this write again.
    pub(crate) fn resume_in(&mut self, state: &mut State) {
        if self.store.is_some() && !self.counted {
            self.counted = true;
            state.buffer.announce();
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if clock::is_installed() {
            self.pause();
        }
    }
}

impl std::fmt::Debug for Announced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Announced({})", self.counted)
    }
}

impl Store {
    /// Announces a store or delete: call it when the command is accepted, before any other wait.
    pub fn announce(self: &Arc<Self>) -> Announced {
        let counted = self.config.ack == Ack::Program;
        if counted {
            self.log.state().buffer.announce();
        }
        Announced { store: counted.then(|| self.clone()), counted, has_waited: false }
    }
}
