use crate::shared::Shared;
use spec::NamespaceList;
use std::collections::BTreeSet;

/// Capacity of the Changed Namespace List log page.
const CHANGES_MAX: usize = 1_024;

/// The namespaces that have changed since the host last read the log page.
#[derive(Debug, Default)]
pub(crate) struct Changes(Shared<BTreeSet<u32>>);

impl Changes {
    pub(crate) fn add(&self, nsid: u32) {
        let mut changed = self.0.lock();
        if changed.len() <= CHANGES_MAX {
            changed.insert(nsid);
        }
    }

    /// Returns the log page.
    pub(super) fn page(&self) -> NamespaceList {
        let changed = self.0.lock();
        if changed.len() > CHANGES_MAX {
            return NamespaceList::too_many();
        }
        changed.iter().copied().collect()
    }

    /// Forgets them when the host has read the log page.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}
