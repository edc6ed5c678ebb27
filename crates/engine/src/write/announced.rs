use crate::ack::Ack;
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
