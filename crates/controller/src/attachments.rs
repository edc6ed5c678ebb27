use serde::{Deserialize, Serialize};
use spec::QualifiedName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which hosts have which namespaces of a device attached, by whatever subsystem they come.
///
/// A host's controller is gone when it disconnects, so that what is attached to a controller is
/// attached to its host: to all controllers that it has, and will have.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    exceptions: Mutex<Exceptions>,
    /// Whether there are any, which every command asks.
    are_there: AtomicBool,
}

/// The namespaces that are not attached to all hosts.
pub(crate) type Exceptions = BTreeMap<u32, Attachment>;

/// To which hosts a namespace is attached that is not attached to all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attachment {
    /// Whether `others` are those that do not have it, and all else do.
    is_to_all_but: bool,
    /// By their names.
    others: BTreeSet<String>,
}

/// Pairs of a host and a namespace that are remembered at most.
const ENTRIES_MAX: usize = 4_096;

impl Attachment {
    fn is_to(&self, host: &str) -> bool {
        self.others.contains(host) != self.is_to_all_but
    }
}

impl Attachments {
    fn exceptions(&self) -> MutexGuard<'_, Exceptions> {
        self.exceptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the host has the namespace.
    #[inline]
    pub(crate) fn are_of(&self, nsid: u32, host: &QualifiedName) -> bool {
        !self.are_there.load(Ordering::Relaxed)
            || self.exceptions().get(&nsid).is_none_or(|it| it.is_to(name(host)))
    }

    /// No host has the namespace, which is new.
    pub(crate) fn begin(&self, nsid: u32) {
        self.change(|exceptions| exceptions.insert(nsid, Attachment::default()));
    }

    /// There is no such namespace any more.
    pub(crate) fn end(&self, nsid: u32) {
        self.change(|exceptions| exceptions.remove(&nsid));
    }

    /// Attaches the namespace to all of `hosts`, or detaches it. False, and nothing is changed,
    /// when too many would have to be remembered.
    pub(crate) fn set(&self, nsid: u32, hosts: &[&QualifiedName], is_attached: bool) -> bool {
        let mut changed = self.exceptions().clone();
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
            self.restore(changed);
        }
        has_room
    }

    pub(crate) fn save(&self) -> Exceptions {
        self.exceptions().clone()
    }

    pub(crate) fn restore(&self, saved: Exceptions) {
        self.change(|exceptions| *exceptions = saved);
    }

    fn change<T>(&self, change: impl FnOnce(&mut Exceptions) -> T) {
        let mut exceptions = self.exceptions();
        change(&mut exceptions);
        self.are_there.store(!exceptions.is_empty(), Ordering::Relaxed);
    }
}

/// A host that connects has a name.
fn name(host: &QualifiedName) -> &str {
    host.as_str().unwrap_or_default()
}
