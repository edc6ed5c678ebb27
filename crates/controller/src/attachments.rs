use crate::shared::Shared;
use serde::{Deserialize, Serialize};
use spec::QualifiedName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// The attachments of a device's namespaces to hosts, for all of its subsystems.
///
/// A controller ends when its host disconnects. So a namespace is attached to the controller's
/// host: to all current and future controllers of that host.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    exceptions: Shared<Exceptions>,
    /// Whether there are any exceptions; every command reads this.
    are_there: AtomicBool,
}

/// The namespaces that are not attached to all hosts.
pub(crate) type Exceptions = BTreeMap<u32, Attachment>;

/// The hosts of a namespace that is not attached to all hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attachment {
    /// Whether it is attached to all hosts except `others`; otherwise to `others` only.
    is_to_all_but: bool,
    /// Names of hosts.
    others: BTreeSet<String>,
}

/// Maximum stored pairs of a host and a namespace.
const ENTRIES_MAX: usize = 4_096;

impl Attachment {
    fn is_to(&self, host: &str) -> bool {
        self.others.contains(host) != self.is_to_all_but
    }
}

impl Attachments {
    /// Returns whether the namespace is attached to the host.
    #[inline]
    pub(crate) fn are_of(&self, nsid: u32, host: &QualifiedName) -> bool {
        !self.are_there.load(Ordering::Relaxed)
            || self.exceptions.lock().get(&nsid).is_none_or(|it| it.is_to(name(host)))
    }

    /// Adds a new namespace, which is attached to no host.
    pub(crate) fn begin(&self, nsid: u32) {
        self.change(|exceptions| drop(exceptions.insert(nsid, Attachment::default())));
    }

    /// Forgets a deleted namespace.
    pub(crate) fn end(&self, nsid: u32) {
        self.change(|exceptions| drop(exceptions.remove(&nsid)));
    }

    /// Attaches the namespace to all of `hosts`, or detaches it. Returns false and changes nothing
    /// if [`ENTRIES_MAX`] would be exceeded.
    pub(crate) fn set(&self, nsid: u32, hosts: &[&QualifiedName], is_attached: bool) -> bool {
        self.change(|exceptions| {
            let mut changed = exceptions.clone();
            let to_all = || Attachment { is_to_all_but: true, others: BTreeSet::new() };
            let attachment = changed.entry(nsid).or_insert_with(to_all);
            for host in hosts {
                if is_attached == attachment.is_to_all_but {
                    attachment.others.remove(name(host));
                } else {
                    attachment.others.insert(name(host).to_owned());
                }
            }
            let has_room = changed.values().map(|it| it.others.len()).sum::<usize>() <= ENTRIES_MAX;
            if has_room {
                *exceptions = changed;
            }
            has_room
        })
    }

    pub(crate) fn save(&self) -> Exceptions {
        self.exceptions.lock().clone()
    }

    pub(crate) fn restore(&self, saved: Exceptions) {
        self.change(|exceptions| *exceptions = saved);
    }

    /// Changes them in one step: any reactor attaches namespaces.
    fn change<T>(&self, change: impl FnOnce(&mut Exceptions) -> T) -> T {
        let mut exceptions = self.exceptions.lock();
        let changed = change(&mut exceptions);
        self.are_there.store(!exceptions.is_empty(), Ordering::Relaxed);
        changed
    }
}

/// Returns the name of a connected host.
fn name(host: &QualifiedName) -> &str {
    host.as_str().unwrap_or_default()
}
