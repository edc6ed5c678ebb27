//! A host with one queue pair on a device.

use base::{Buf, Key};
use controller::{Completion, QueuePair, Submission};
use node::Device;
use spec::{Command, ListReader, Status, StoreOptions};
use std::collections::BTreeSet;

const NSID: u32 = Device::NAMESPACE;

/// Longer than any list entry or value: everything is returned.
pub(crate) const ROOM: u32 = 2 << 20;

/// Submits commands and takes their completions.
pub(crate) struct Host {
    pub(crate) queue: QueuePair,
}

impl Host {
    pub(crate) fn new(device: &Device) -> Self {
        Self { queue: device.controller().queue_pair() }
    }

    /// Carries out one command with none beside it.
    pub(crate) async fn one(&self, submission: Submission) -> Completion {
        self.queue.submit(submission);
        self.queue.next().await
    }

    pub(crate) async fn store(&self, key: &Key, value: &Buf) -> Completion {
        self.one(store(key, value)).await
    }

    pub(crate) async fn retrieve(&self, key: &Key) -> Completion {
        self.one(retrieve(key, ROOM)).await
    }

    pub(crate) async fn delete(&self, key: &Key) -> Completion {
        self.one(delete(key)).await
    }

    pub(crate) async fn exist(&self, key: &Key) -> Completion {
        self.one(exist(key)).await
    }

    /// Every key that the device lists, by as many Lists as it takes into a buffer of `room` bytes.
    /// Each begins at the last key of the one before, which is there or not.
    pub(crate) async fn list_all(&self, room: u32) -> Vec<Key> {
        let (mut keys, mut seen): (Vec<Key>, BTreeSet<Key>) = Default::default();
        loop {
            let last = keys.last().cloned();
            let completion = self.one(list(last.as_ref(), room)).await;
            assert_eq!(completion.status, Status::SUCCESS);
            let more = listed(&completion).into_iter().filter(|key| Some(key) != last.as_ref());
            let before = keys.len();
            for key in more {
                assert!(seen.insert(key.clone()), "{key:?} was listed before");
                keys.push(key);
            }
            if keys.len() == before {
                return keys;
            }
        }
    }

    /// As [`Self::all`], with 64 outstanding; in the order of the submissions.
    pub(crate) async fn each(
        &self,
        submissions: impl Iterator<Item = Submission>,
    ) -> Vec<Completion> {
        let mut completions = self.all(submissions, 64).await;
        completions.sort_unstable_by_key(|completion| completion.id);
        completions
    }

    /// Carries out `submissions` with `depth` outstanding, and returns their completions in the
    /// order of posting.
    pub(crate) async fn all(
        &self,
        submissions: impl Iterator<Item = Submission>,
        depth: usize,
    ) -> Vec<Completion> {
        let mut submissions = submissions.fuse();
        let mut completions = Vec::new();
        loop {
            while self.queue.outstanding() < depth
                && let Some(submission) = submissions.next()
            {
                self.queue.submit(submission);
            }
            match self.queue.try_next() {
                Some(completion) => completions.push(completion),
                None if self.queue.outstanding() == 0 => return completions,
                None => completions.push(self.queue.next().await),
            }
        }
    }
}

pub(crate) fn store(key: &Key, value: &Buf) -> Submission {
    let command = Command::store(NSID, key.as_bytes(), value.len(), StoreOptions::NONE);
    Submission::with_data(command, key, value.clone())
}

pub(crate) fn retrieve(key: &Key, room: u32) -> Submission {
    Submission::new(Command::retrieve(NSID, key.as_bytes(), room), key)
}

pub(crate) fn delete(key: &Key) -> Submission {
    Submission::new(Command::delete(NSID, key.as_bytes()), key)
}

pub(crate) fn exist(key: &Key) -> Submission {
    Submission::new(Command::exist(NSID, key.as_bytes()), key)
}

/// A List from `start` on, itself included, or from the first key.
pub(crate) fn list(start: Option<&Key>, room: u32) -> Submission {
    let bytes = start.map_or(&[][..], Key::as_bytes);
    let command = Command::list(NSID, bytes, room);
    let long_key = start.filter(|key| key.is_long()).cloned();
    Submission { command, long_key, data: Buf::phantom(0, 0) }
}

/// The keys that a List returned.
pub(crate) fn listed(completion: &Completion) -> Vec<Key> {
    let bytes = completion.data.bytes().expect("a list has bytes");
    let keys = ListReader::new(bytes).expect("a list begins with a count");
    keys.map(|key| Key::new(key.expect("a whole entry")).expect("of a key")).collect()
}

/// A key of `len` bytes, at least 8, that ends in `number`.
pub(crate) fn key(number: u64, len: usize) -> Key {
    let mut bytes = vec![b'k'; len];
    bytes[len - 8..].copy_from_slice(&number.to_be_bytes());
    Key::new(&bytes).expect("1 to 255 bytes")
}
