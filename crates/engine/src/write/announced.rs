use crate::ack::Ack;
use crate::store::Store;
use std::sync::Arc;

/// A store or delete that has been accepted and is on its way to the log. Pages that others wait in
/// stay open for it until it has joined one or this drops.
#[must_use = "pages stay open for it until it drops"]
pub struct Announced {
    /// `None` where pages are not padded for those that wait: hosts are answered before.
    store: Option<Arc<Store>>,
    counted: bool,
    /// It has waited for space, and had its turn.
    pub(crate) has_waited: bool,
}

impl Announced {
    /// While this one waits for space the others do not wait for it.
    pub(crate) fn pause(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| self.counted) {
            self.counted = false;
            store.log.retract();
        }
    }

    pub(crate) fn resume(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| !self.counted) {
            self.counted = true;
            store.log.announce();
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
        let store = (self.config.ack == Ack::Program).then(|| self.clone());
        let mut announced = Announced { store, counted: false, has_waited: false };
        announced.resume();
        announced
    }
}
