use crate::attachments::Attachments;
use crate::completion::Outcome;
use crate::firmware::{Firmware, FirmwareCosts};
use crate::fused;
use crate::inventory::Inventory;
use crate::link::{Link, LinkTiming};
use crate::logical_blocks::LogicalBlocks as _;
use crate::namespace::Namespace;
use crate::queue::{QueuePair, Submission};
use crate::sanitizing::Sanitizing;
use crate::span_locks::SpanLocks;
use base::Key;
use clock::{Code, Cores, Gate, Group, Monitor};
use engine::Store;
use spec::{QualifiedName, Status};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// What the controller is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device's resources.
    pub group: Group,
    /// The link to the host.
    pub link: LinkTiming,
    /// How many commands the firmware handles at a time.
    pub handlers: u32,
    /// What handling them costs.
    pub costs: FirmwareCosts,
    /// The cores that code runs on.
    pub cores: Cores,
    /// What every command passes first: a collector that blocks the whole controller closes it.
    pub gate: Arc<Gate>,
    /// Inside of which everything is done that others may do at the same time in other reactors;
    /// `None` where there are none.
    pub monitor: Option<Arc<Monitor>>,
    /// Whether a loss of power may take what was answered and not flushed: a volatile write cache
    /// (Base 2.1, Volatile Write Cache), which is always on.
    pub has_volatile_cache: bool,
}

/// A controller of some namespaces, which may come and go.
pub struct Controller {
    pub(crate) link: Link,
    pub(crate) firmware: Firmware,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) attachments: Arc<Attachments>,
    pub(crate) sanitizing: Arc<Sanitizing>,
    pub(crate) span_locks: Arc<SpanLocks>,
    delete_reports_missing: Arc<AtomicBool>,
    lists_short_keys: Arc<AtomicBool>,
    kv: Option<Arc<Store>>,
    pub(crate) cores: Cores,
    pub(crate) gate: Arc<Gate>,
    monitor: Option<Arc<Monitor>>,
    has_volatile_cache: bool,
}

/// What the controllers of a device in several reactors have in common.
struct Common {
    inventory: Arc<Inventory>,
    attachments: Arc<Attachments>,
    sanitizing: Arc<Sanitizing>,
    span_locks: Arc<SpanLocks>,
    delete_reports_missing: Arc<AtomicBool>,
    lists_short_keys: Arc<AtomicBool>,
    kv: Option<Arc<Store>>,
}

impl Controller {
    /// A controller in front of `namespaces`, in the order of their ids from 1.
    pub fn new(namespaces: Vec<Namespace>, config: Config) -> Arc<Self> {
        let kv = namespaces.iter().find_map(|namespace| match namespace {
            Namespace::Kv(store) => Some(store.clone()),
            Namespace::Block(_) | Namespace::Zoned(_) => None,
        });
        let common = Common {
            inventory: Arc::new(Inventory::new(namespaces)),
            attachments: Arc::default(),
            sanitizing: Arc::default(),
            span_locks: Arc::default(),
            delete_reports_missing: Arc::default(),
            lists_short_keys: Arc::default(),
            kv,
        };
        Self::of(common, config)
    }

    /// A controller of the same namespaces in another reactor, whose resources those of `config`
    /// are.
    pub fn beside(&self, config: Config) -> Arc<Self> {
        let common = Common {
            inventory: self.inventory.clone(),
            attachments: self.attachments.clone(),
            sanitizing: self.sanitizing.clone(),
            span_locks: self.span_locks.clone(),
            delete_reports_missing: self.delete_reports_missing.clone(),
            lists_short_keys: self.lists_short_keys.clone(),
            kv: self.kv.clone(),
        };
        Self::of(common, config)
    }

    fn of(common: Common, config: Config) -> Arc<Self> {
        Arc::new(Self {
            inventory: common.inventory,
            attachments: common.attachments,
            sanitizing: common.sanitizing,
            span_locks: common.span_locks,
            delete_reports_missing: common.delete_reports_missing,
            lists_short_keys: common.lists_short_keys,
            kv: common.kv,
            link: Link::new(config.group, config.link),
            firmware: Firmware::new(config.group, config.handlers, config.costs),
            cores: config.cores,
            gate: config.gate,
            monitor: config.monitor,
            has_volatile_cache: config.has_volatile_cache,
        })
    }

    /// The namespace of this id, if there is one. What it has is nobody else's while this is held.
    #[inline]
    pub fn namespace(&self, nsid: u32) -> Option<Arc<Namespace>> {
        self.inventory.get(nsid)
    }

    /// The namespace of this id, if there is one and `host` has it.
    #[inline]
    pub(crate) fn namespace_of(&self, nsid: u32, host: &QualifiedName) -> Option<Arc<Namespace>> {
        self.namespace(nsid).filter(|_| self.attachments.are_of(nsid, host))
    }

    /// The ids of the namespaces, in ascending order.
    pub fn namespace_ids(&self) -> Vec<u32> {
        self.inventory.ids()
    }

    /// The store of all key-value namespaces, if the device was made with one.
    pub fn kv(&self) -> Option<&Arc<Store>> {
        self.kv.as_ref()
    }

    /// The store of all key-value namespaces. Panics where there is none.
    pub fn store(&self) -> &Arc<Store> {
        self.kv().expect("only a device with a key-value namespace has a store")
    }

    /// Feature 20h, Key Value Configuration, bit 0 (EDNEK): whether a Delete of a key that does not
    /// exist fails. Off at the start.
    pub fn set_delete_reports_missing(&self, reports: bool) {
        self.delete_reports_missing.store(reports, Ordering::Relaxed);
    }

    /// List omits keys of more than 16 bytes from here on: hosts of a fabric cannot name one, nor
    /// go on behind it. Off at the start.
    pub(crate) fn list_short_keys(&self) {
        self.lists_short_keys.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lists(&self, key: &Key) -> bool {
        !key.is_long() || !self.lists_short_keys.load(Ordering::Relaxed)
    }

    /// As it was set last.
    pub fn delete_reports_missing(&self) -> bool {
        self.delete_reports_missing.load(Ordering::Relaxed)
    }

    /// Whether a loss of power may take what was answered and not flushed.
    pub fn has_volatile_cache(&self) -> bool {
        self.has_volatile_cache
    }

    /// Does `work` inside of the monitor.
    pub(crate) async fn inside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| self.poll_inside(work.as_mut(), context)).await
    }

    /// Polls `work` inside of the monitor: as [`Self::inside`], which holds it twice, for what is
    /// large.
    pub(crate) fn poll_inside<F: Future>(
        &self,
        work: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let _inside = self.monitor.as_ref().map(Monitor::inside);
        work.poll(context)
    }

    /// Flushes all namespaces. What of that fails is not durable, and nobody can help it.
    pub(crate) async fn flush_all(&self) {
        self.inside(self.flush_each()).await;
    }

    async fn flush_each(&self) {
        for namespace in self.namespace_ids().into_iter().filter_map(|id| self.namespace(id)) {
            match &*namespace {
                Namespace::Kv(store) => drop(store.flush().await),
                Namespace::Block(blocks) => drop(blocks.make_durable().await),
                Namespace::Zoned(zones) => zones.flush().await,
            }
        }
    }

    /// A new queue pair.
    pub fn queue_pair(self: &Arc<Self>) -> QueuePair {
        QueuePair::new(self.clone())
    }

    /// Executes a command of a namespace, which ends no sooner. Polled inside.
    pub(crate) async fn execute(
        &self,
        namespace: Option<Arc<Namespace>>,
        submission: Submission,
    ) -> Outcome {
        self.gate.pass().await;
        self.cores.charge(Code::Parse, 1).await;
        let outcome = match namespace.as_deref() {
            None => Err(Status::INVALID_NAMESPACE),
            Some(namespace) if submission.command.is_fused() => {
                Err(fused::refusal_alone(namespace, &submission.command))
            }
            Some(Namespace::Kv(store)) => self.execute_kv(store, submission).await,
            Some(Namespace::Block(blocks)) => self.execute_block(blocks, submission).await,
            Some(Namespace::Zoned(zones)) => self.execute_zoned(zones, submission).await,
        };
        self.cores.charge(Code::Complete, 1).await;
        outcome.into()
    }

    pub(crate) async fn charge_probe(&self) {
        self.cores.charge(Code::Probe, 1).await;
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

    /// Bytes of what `f` returns.
    fn size<A, B, C, D>(_: impl Fn(A, B, C) -> D) -> usize {
        size_of::<D>()
    }

    #[test]
    fn a_command_is_small_for_it_is_moved_when_it_begins() {
        let bytes = size(|controller: &'static Controller, of, what| controller.execute(of, what));
        assert!(bytes < 2_500, "what executes a command has {bytes} bytes");
    }
}
