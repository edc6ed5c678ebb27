use crate::attachments::Attachments;
use crate::completion::Outcome;
use crate::emulation::{Delays, Emulation};
use crate::inventory::Inventory;
use crate::logical_blocks::LogicalBlocks as _;
use crate::namespace::{Namespace, NamespaceInUse};
use crate::sanitizing::Sanitizing;
use crate::span_locks::SpanLocks;
use crate::submission::Submission;
use crate::{fused, kv};
use base::Key;
use engine::Store;
use spec::{Opcode, QualifiedName, Status};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The configuration of a controller.
#[derive(Clone, Debug)]
pub struct Config {
    /// The delays of an emulated device; `None` for a drive that takes the time that it takes.
    pub emulation: Option<Emulation>,
    /// Whether a loss of power can lose acknowledged, unflushed data: a volatile write cache (Base
    /// 2.1, Volatile Write Cache), which is always on.
    pub has_volatile_cache: bool,
}

/// A controller of namespaces, which hosts may create and delete. Reactors that share a drive on a
/// disk share its controller.
pub struct Controller {
    pub(crate) delays: Option<Delays>,
    pub(crate) inventory: Inventory,
    pub(crate) attachments: Attachments,
    pub(crate) sanitizing: Sanitizing,
    pub(crate) span_locks: SpanLocks,
    delete_reports_missing: AtomicBool,
    lists_short_keys: AtomicBool,
    kv: Option<Arc<Store>>,
    has_volatile_cache: bool,
}

impl Controller {
    /// Creates a controller of `namespaces`, in the order of their ids from 1.
    pub fn new(namespaces: Vec<Namespace>, config: Config) -> Arc<Self> {
        let kv = namespaces.iter().find_map(|namespace| match namespace {
            Namespace::Kv(store) => Some(store.clone()),
            Namespace::Block(_) | Namespace::Zoned(_) => None,
        });
        Arc::new(Self {
            delays: config.emulation.map(Delays::new),
            inventory: Inventory::new(namespaces),
            attachments: Attachments::default(),
            sanitizing: Sanitizing::default(),
            span_locks: SpanLocks::default(),
            delete_reports_missing: AtomicBool::default(),
            lists_short_keys: AtomicBool::default(),
            kv,
            has_volatile_cache: config.has_volatile_cache,
        })
    }

    /// Returns the namespace with this id, if any. While the caller holds the `Arc`, its media are
    /// not given to another namespace.
    #[inline]
    pub fn namespace(&self, nsid: u32) -> Option<Arc<NamespaceInUse>> {
        self.inventory.get(nsid)
    }

    /// Returns the namespace with this id, if it is attached to `host`.
    #[inline]
    pub(crate) fn namespace_of(
        &self,
        nsid: u32,
        host: &QualifiedName,
    ) -> Option<Arc<NamespaceInUse>> {
        self.namespace(nsid).filter(|_| self.attachments.are_of(nsid, host))
    }

    /// Returns the ids of the namespaces, in ascending order.
    pub fn namespace_ids(&self) -> Vec<u32> {
        self.inventory.ids()
    }

    /// Returns the store of all key-value namespaces, if the device has one.
    pub fn kv(&self) -> Option<&Arc<Store>> {
        self.kv.as_ref()
    }

    /// Returns the store of all key-value namespaces. Panics if there is none.
    pub fn store(&self) -> &Arc<Store> {
        self.kv().expect("only a device with a key-value namespace has a store")
    }

    /// Returns whether some commands may be answered without a task.
    #[inline]
    pub(crate) fn has_quick_commands(&self) -> bool {
        self.delays.is_none() && self.kv.is_some()
    }

    /// Returns whether reads of blocks may be answered without a task, if their medium can do that.
    #[inline]
    pub(crate) fn has_quick_reads(&self) -> bool {
        self.delays.as_ref().is_none_or(Delays::take_no_time)
    }

    /// Sets feature 20h, Key Value Configuration, bit 0 (EDNEK; default: off): whether a Delete of
    /// a missing key fails.
    pub fn set_delete_reports_missing(&self, reports: bool) {
        self.delete_reports_missing.store(reports, Ordering::Relaxed);
    }

    /// Makes List omit keys of more than 16 bytes (default: off). A fabrics host can neither name
    /// such a key nor continue a list after it.
    pub(crate) fn list_short_keys(&self) {
        self.lists_short_keys.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lists(&self, key: &Key) -> bool {
        !key.is_long() || !self.lists_short_keys.load(Ordering::Relaxed)
    }

    /// Returns that setting.
    pub fn delete_reports_missing(&self) -> bool {
        self.delete_reports_missing.load(Ordering::Relaxed)
    }

    /// Returns whether a loss of power can lose acknowledged, unflushed data.
    pub fn has_volatile_cache(&self) -> bool {
        self.has_volatile_cache
    }

    /// Flushes all namespaces. Data whose flush fails is not durable; no host is told.
    pub(crate) async fn flush_all(&self) {
        for namespace in self.namespace_ids().into_iter().filter_map(|id| self.namespace(id)) {
            match &**namespace {
                Namespace::Kv(store) => drop(store.flush().await),
                Namespace::Block(blocks) => drop(blocks.make_durable().await),
                Namespace::Zoned(zones) => zones.flush().await,
            }
        }
    }

    /// Executes a command and keeps its namespace alive until then.
    pub(crate) async fn execute(
        &self,
        namespace: Option<Arc<NamespaceInUse>>,
        submission: Submission,
    ) -> Outcome {
        if let Some(delays) = &self.delays {
            delays.begin(1).await;
        }
        let outcome = match namespace.as_deref().map(Deref::deref) {
            None => Err(Status::INVALID_NAMESPACE),
            Some(namespace) if submission.command.is_fused() => {
                Err(fused::refusal_alone(namespace, &submission.command))
            }
            Some(Namespace::Kv(store)) => match submission.command.opcode() {
                Opcode::STORE => self.store_value(store, &submission).await,
                Opcode::RETRIEVE => self.retrieve(store, &submission).await,
                Opcode::DELETE => self.delete(store, &submission).await,
                Opcode::EXIST => self.exist(store, &submission).await,
                Opcode::LIST => Box::pin(self.list(store, &submission)).await,
                Opcode::FLUSH => Box::pin(kv::flush(store)).await,
                _ => Err(Status::INVALID_OPCODE),
            },
            Some(Namespace::Block(blocks)) => self.execute_block(blocks, submission).await,
            Some(Namespace::Zoned(zones)) => self.execute_zoned(zones, submission).await,
        };
        if let Some(complete) = self.delays.as_ref().and_then(|delays| delays.complete(1)) {
            complete.await;
        }
        outcome.into()
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let namespaces = self.namespace_ids().into_iter().map(|id| (id, self.namespace(id)));
        f.debug_map().entries(namespaces).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the size in bytes of the result of `f`.
    fn size<A, B, C, D>(_: impl Fn(A, B, C) -> D) -> usize {
        size_of::<D>()
    }

    #[test]
    fn drive_without_emulation_has_nothing_to_wait_for() {
        reactor::Reactor::new(None).run(async {
            let config = Config { emulation: None, has_volatile_cache: false };
            let controller = Controller::new(Vec::new(), config);
            assert!(controller.delays.is_none());
            assert_eq!(clock::resources(), []);
        });
    }

    #[test]
    fn a_command_is_small_for_it_is_moved_when_it_begins() {
        let bytes = size(|controller: &'static Controller, of, what| controller.execute(of, what));
        assert!(bytes < 2_500, "what executes a command has {bytes} bytes");
    }
}
