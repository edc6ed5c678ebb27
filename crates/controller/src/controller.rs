use crate::completion::Outcome;
use crate::firmware::{Firmware, FirmwareCosts};
use crate::link::{Link, LinkTiming};
use crate::queue::{QueuePair, Submission};
use clock::{Code, Cores, Group};
use engine::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the controller is made of.
#[derive(Clone, Copy, Debug)]
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
}

/// A controller with one key-value namespace for each key space of its store: the namespace's id is
/// the key space's.
pub struct Controller {
    pub(crate) store: Arc<Store>,
    pub(crate) link: Link,
    pub(crate) firmware: Firmware,
    cores: Cores,
    delete_reports_missing: AtomicBool,
}

impl Controller {
    /// A controller in front of `store`.
    pub fn new(store: Arc<Store>, config: Config) -> Arc<Self> {
        Arc::new(Self {
            store,
            link: Link::new(config.group, config.link),
            firmware: Firmware::new(config.group, config.handlers, config.costs),
            cores: config.cores,
            delete_reports_missing: AtomicBool::new(false),
        })
    }

    /// The store behind the controller.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Feature 20h, Key Value Configuration, bit 0 (EDNEK): whether a Delete of a key that does not
    /// exist fails. Off at the start.
    pub fn set_delete_reports_missing(&self, reports: bool) {
        self.delete_reports_missing.store(reports, Ordering::Relaxed);
    }

    pub(crate) fn delete_reports_missing(&self) -> bool {
        self.delete_reports_missing.load(Ordering::Relaxed)
    }

    /// A new queue pair.
    pub fn queue_pair(self: &Arc<Self>) -> QueuePair {
        QueuePair::new(self.clone())
    }

    pub(crate) async fn execute(&self, submission: Submission) -> Outcome {
        self.cores.charge(Code::Parse, 1).await;
        let outcome = self.execute_kv(submission).await;
        self.cores.charge(Code::Complete, 1).await;
        outcome.into()
    }

    pub(crate) async fn charge_probe(&self) {
        self.cores.charge(Code::Probe, 1).await;
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Controller({:?})", self.store)
    }
}
