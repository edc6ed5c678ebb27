use spec::QualifiedName;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Which hosts have which namespaces attached.
///
/// A host's controller is gone when it disconnects, so that what is attached to a controller is
/// attached to its host: to all controllers that it has, and will have.
#[derive(Debug, Default)]
pub(crate) struct Attachments(RefCell<BTreeMap<u32, Attachment>>);

/// To which hosts a namespace is attached that is not attached to all.
#[derive(Clone, Debug, Default)]
struct Attachment {
    /// Whether `others` are those that do not have it, and all else do.
    is_to_all_but: bool,
    others: BTreeSet<Name>,
}

/// A host by its name.
type Name = [u8; 256];

/// Hosts that are remembered of a namespace at most.
pub(crate) const HOSTS_MAX: usize = 1_024;

impl Attachment {
    fn is_to(&self, host: &Name) -> bool {
        self.others.contains(host) != self.is_to_all_but
    }
}

impl Attachments {
    /// Whether the host has the namespace.
    #[inline]
    pub(crate) fn are_of(&self, nsid: u32, host: &QualifiedName) -> bool {
        let exceptions = self.0.borrow();
        exceptions.is_empty()
            || exceptions.get(&nsid).is_none_or(|attachment| attachment.is_to(&name(host)))
    }

    /// No host has the namespace, which is new.
    pub(crate) fn begin(&self, nsid: u32) {
        self.0.borrow_mut().insert(nsid, Attachment::default());
    }

    /// There is no such namespace any more.
    pub(crate) fn end(&self, nsid: u32) {
        self.0.borrow_mut().remove(&nsid);
    }

    /// Attaches the namespace to the host, or detaches it. False when too many hosts would have to
    /// be remembered.
    pub(crate) fn set(&self, nsid: u32, host: &QualifiedName, is_attached: bool) -> bool {
        let mut exceptions = self.0.borrow_mut();
        let to_all = || Attachment { is_to_all_but: true, others: BTreeSet::new() };
        let attachment = exceptions.entry(nsid).or_insert_with(to_all);
        if is_attached == attachment.is_to_all_but {
            attachment.others.remove(&name(host));
            return true;
        }
        attachment.others.insert(name(host));
        let has_room = attachment.others.len() <= HOSTS_MAX;
        if !has_room {
            attachment.others.remove(&name(host));
        }
        has_room
    }
}

fn name(host: &QualifiedName) -> Name {
    zerocopy::transmute!(*host)
}
