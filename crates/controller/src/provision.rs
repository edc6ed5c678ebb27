//! Creates, deletes and formats namespaces.

use crate::controller::Controller;
use crate::inventory::SavedNamespaces;
use crate::namespace::Namespace;
use crate::nvm::give_up;
use crate::span::Span;
use crate::status::{status_of, status_of_write, status_of_zones};
use clock::Stage;
use engine::{KeySpaceId, Store};
use ftl::ZoneAction;
use spec::{CommandSet, Status};
use std::sync::Arc;

impl Controller {
    /// Returns the namespaces and their attachments; `None` while one is being created or deleted.
    pub fn save_namespaces(&self) -> Option<SavedNamespaces> {
        let mut saved = self.inventory.save()?;
        saved.attachments = self.attachments.save();
        Some(saved)
    }

    /// Restores saved namespaces on a new device. Returns `None` if they are of another device.
    pub fn restore_namespaces(&self, saved: &SavedNamespaces) -> Option<()> {
        self.inventory.restore(saved)?;
        self.attachments.restore(saved.attachments.clone());
        Some(())
    }

    /// Creates an empty namespace of `set` with `size` logical blocks, or at most `size` bytes of
    /// pairs. Returns its id.
    pub(crate) async fn create_namespace(&self, set: CommandSet, size: u64) -> Result<u32, Status> {
        let nsid = self.inventory.reserve()?;
        match self.make(nsid, set, size).await {
            Ok(namespace) => {
                // It is attached to no host, before a command of another reactor can find it.
                self.attachments.begin(nsid);
                self.inventory.put(nsid, namespace);
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

    /// Deletes a namespace and its data after its commands in flight have ended.
    pub(crate) async fn delete_namespace(&self, nsid: u32) -> Result<(), Status> {
        // A late command could write after the wipe, and the next namespace on these blocks would
        // expose its data.
        let (namespace, users) = self.inventory.begin_end(nsid)?;
        users.end(Stage::Queue).await;
        let wiped = end(nsid, &namespace).await;
        match wiped {
            Ok(()) => self.inventory.end(nsid, &namespace),
            Err(_) => self.inventory.put(nsid, namespace),
        }
        wiped
    }

    /// Formats a namespace after its commands in flight have ended. Commands that arrive during the
    /// format fail.
    pub(crate) async fn format_namespace(&self, nsid: u32) -> Result<(), Status> {
        let (namespace, users) = self.inventory.begin_format(nsid)?;
        users.end(Stage::Queue).await;
        let wiped = wipe(nsid, &namespace).await;
        self.inventory.end_format(nsid);
        wiped
    }
}

/// Erases a namespace that is being deleted.
async fn end(nsid: u32, namespace: &Namespace) -> Result<(), Status> {
    match namespace {
        Namespace::Kv(store) => store.delete_key_space(key_space(nsid)).await.map_err(status_of),
        Namespace::Block(_) | Namespace::Zoned(_) => wipe(nsid, namespace).await,
    }
}

/// Erases the content of a namespace.
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
    // A Redis client may have created it by now, with new keys.
    store.ensure_key_space(space).await.map_err(status_of)
}

/// Returns the key space of a namespace, which has the same number.
fn key_space(nsid: u32) -> KeySpaceId {
    KeySpaceId(u16::try_from(nsid).expect("ids are small"))
}
