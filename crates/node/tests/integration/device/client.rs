//! A host that changes a device and keeps account of it.

use crate::device::host::{Host, delete, store};
use crate::device::model::Model;
use base::{Key, Nanos};
use clock::Stage;
use controller::Completion;
use node::Device;
use spec::Status;
use std::collections::BTreeMap;

/// Operations outstanding at a time.
const DEPTH: usize = 64;

/// A change of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Store { version: u64, len: u32 },
    Delete,
}

/// Changes that did not go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Stores for which there was no space.
    pub(crate) stores: u64,
    /// Deletes for which there was no space.
    pub(crate) deletes: u64,
    /// Changes of a key whose record could not be read.
    pub(crate) damaged: u64,
}

/// Submits changes, one at a time of each key, and applies to its model what is acknowledged.
pub(crate) struct Client {
    pub(crate) host: Host,
    pub(crate) model: Model,
    /// Changes that have not completed, by command and by key.
    pub(crate) outstanding: BTreeMap<u64, (Key, Change)>,
    pub(crate) refused: Refused,
    busy: BTreeMap<Key, u64>,
    versions: u64,
}

impl Client {
    pub(crate) fn new(device: &Device, model: Model) -> Self {
        let versions = model.pairs.values().map(|(version, _)| version + 1).max().unwrap_or(0);
        Self {
            host: Host::new(device),
            model,
            outstanding: BTreeMap::new(),
            refused: Refused::default(),
            busy: BTreeMap::new(),
            versions,
        }
    }

    /// Stores a new version of `key`, as soon as no other change of it and not too much else is
    /// outstanding.
    pub(crate) async fn store(&mut self, key: &Key, len: u32) {
        self.wait_for(key).await;
        let version = self.versions;
        self.versions += 1;
        let id = self.host.queue.submit(store(key, &self.model.value(key, version, len)));
        self.note(id, key, Change::Store { version, len });
    }

    /// Deletes `key`, likewise.
    pub(crate) async fn delete(&mut self, key: &Key) {
        self.wait_for(key).await;
        let id = self.host.queue.submit(delete(key));
        self.note(id, key, Change::Delete);
    }

    /// Submits changes from `next` as fast as they complete, until `end`: then as many as may be
    /// are outstanding. Changes of a key that is being changed are left out.
    pub(crate) async fn run_until(
        &mut self,
        end: Nanos,
        mut next: impl FnMut() -> (Key, Option<u32>),
    ) {
        while clock::now() < end {
            while self.outstanding.len() < DEPTH {
                match next() {
                    (key, _) if self.busy.contains_key(&key) => {}
                    (key, Some(len)) => self.store(&key, len).await,
                    (key, None) => self.delete(&key).await,
                }
            }
            let step = Nanos::from_micros(20).min(end - clock::now());
            clock::sleep(step, Stage::Core).await;
            while let Some(completion) = self.host.queue.try_next() {
                self.complete(&completion);
            }
        }
    }

    /// Waits for all completions.
    pub(crate) async fn finish(&mut self) {
        while !self.outstanding.is_empty() {
            let completion = self.host.queue.next().await;
            self.complete(&completion);
        }
    }

    async fn wait_for(&mut self, key: &Key) {
        while self.outstanding.len() >= DEPTH || self.busy.contains_key(key) {
            let completion = self.host.queue.next().await;
            self.complete(&completion);
        }
    }

    fn note(&mut self, id: u64, key: &Key, change: Change) {
        self.outstanding.insert(id, (key.clone(), change));
        self.busy.insert(key.clone(), id);
    }

    fn complete(&mut self, completion: &Completion) {
        let done = self.outstanding.remove(&completion.id);
        let (key, change) = done.expect("a command completes once");
        self.busy.remove(&key);
        match (completion.status, change) {
            (Status::SUCCESS, _) => self.model.apply(&key, change),
            (Status::CAPACITY_EXCEEDED, Change::Store { .. }) => self.refused.stores += 1,
            (Status::CAPACITY_EXCEEDED, Change::Delete) => self.refused.deletes += 1,
            (Status::UNRECOVERED_ERROR, _) => self.refused.damaged += 1,
            (status, change) => panic!("{change:?} of {key:?} ended with {status}"),
        }
    }
}
