//! Namespaces come, go, and are made new.

use crate::controller::Controller;
use crate::inventory::SavedNamespaces;
use crate::namespace::Namespace;
use crate::nvm::give_up;
use crate::span::Span;
use crate::status::{status_of, status_of_write, status_of_zones};
use base::Nanos;
use clock::Stage;
use engine::{KeySpaceId, Store};
use ftl::ZoneAction;
use spec::{CommandSet, Status};
use std::sync::Arc;

impl Controller {
    /// Which namespaces there are now and which hosts have them; `None` while one comes or goes.
    pub fn save_namespaces(&self) -> Option<SavedNamespaces> {
        let mut saved = self.inventory.save()?;
        saved.attachments = self.attachments.save();
        Some(saved)
    }

    /// Has the namespaces that were saved, on a device that was just made. `None` when they are not
    /// of this one.
    pub fn restore_namespaces(&self, saved: &SavedNamespaces) -> Option<()> {
        self.inventory.restore(saved)?;
        self.attachments.restore(saved.attachments.clone());
        Some(())
    }

    /// A new namespace of `set`, which is empty and has `size` logical blocks, or at most so many
    /// bytes of pairs. Returns its id.
    pub(crate) async fn create_namespace(&self, set: CommandSet, size: u64) -> Result<u32, Status> {
        let nsid = self.inventory.reserve()?;
        match self.inside(self.make(nsid, set, size)).await {
            Ok(namespace) => {
                self.inventory.put(nsid, Arc::new(namespace));
                Ok(nsid)
            }
            Err(status) => {
                self.inventory.release(nsid);
                Err(status)
            }
        }
    }

    async fn make(&self, nsid: u32, set: CommandSet, size: u64) -> Result<Namespace, Status> {
        match set {
            CommandSet::KEY_VALUE => {
                let store = self.kv().ok_or(Status::COMMAND_SET_NOT_SUPPORTED)?;
                if size > store.capacity_bytes() {
                    return Err(Status::NAMESPACE_INSUFFICIENT_CAPACITY);
                }
                store.create_key_space(key_space(nsid)).await.map_err(status_of)?;
                Ok(Namespace::Kv(store.clone()))
            }
            CommandSet::NVM => self.inventory.take_blocks(nsid, size),
            CommandSet::ZONED => self.inventory.take_zones(size),
            _ => Err(Status::COMMAND_SET_NOT_SUPPORTED),
        }
    }

    /// Ends a namespace with all its data, when the commands that are under way have ended.
    pub(crate) async fn delete_namespace(&self, nsid: u32) -> Result<(), Status> {
        let namespace = self.inventory.begin_end(nsid)?;
        until_unused(&namespace, 1).await;
        let wiped = self.inside(end(nsid, &namespace)).await;
        match wiped {
            Ok(()) => self.inventory.end(nsid, &namespace),
            Err(_) => self.inventory.put(nsid, namespace),
        }
        wiped
    }

    /// Makes a namespace empty, when the commands that are under way have ended. Those that come
    /// meanwhile are refused.
    pub(crate) async fn format_namespace(&self, nsid: u32) -> Result<(), Status> {
        let namespace = self.inventory.begin_format(nsid)?;
        until_unused(&namespace, 2).await;
        let wiped = self.inside(wipe(nsid, &namespace)).await;
        self.inventory.put(nsid, namespace);
        wiped
    }
}

/// How often it is looked whether commands have ended that are under way on a namespace.
const LOOK: Nanos = Nanos::from_micros(100);

/// Waits until no more than `holders` have the namespace: what a command wrote after it was wiped
/// would be found by whoever has its blocks next.
async fn until_unused(namespace: &Arc<Namespace>, holders: usize) {
    while Arc::strong_count(namespace) > holders {
        clock::sleep(LOOK, Stage::Queue).await;
    }
}

/// Leaves nothing of a namespace.
async fn end(nsid: u32, namespace: &Namespace) -> Result<(), Status> {
    match namespace {
        Namespace::Kv(store) => store.delete_key_space(key_space(nsid)).await.map_err(status_of),
        Namespace::Block(_) | Namespace::Zoned(_) => wipe(nsid, namespace).await,
    }
}

/// Leaves nothing in a namespace.
async fn wipe(nsid: u32, namespace: &Namespace) -> Result<(), Status> {
    match namespace {
        Namespace::Kv(store) => renew(store, key_space(nsid)).await,
        Namespace::Block(blocks) => {
            let all = Span { first: 0, count: blocks.shape().blocks };
            give_up(blocks, all).await
        }
        Namespace::Zoned(zones) => {
            let reset = zones.change_all(ZoneAction::Reset).await;
            reset.map_err(|error| status_of_zones(error, status_of_write))
        }
    }
}

async fn renew(store: &Arc<Store>, space: KeySpaceId) -> Result<(), Status> {
    store.delete_key_space(space).await.map_err(status_of)?;
    store.create_key_space(space).await.map_err(status_of)
}

/// A namespace is the key space of the same number.
fn key_space(nsid: u32) -> KeySpaceId {
    KeySpaceId(u16::try_from(nsid).expect("ids are small"))
}
