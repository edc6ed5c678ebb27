//! What hosts have asked for, and what the devices must have done then.

use base::Key;
use engine::{Error, KeySpaceId, Store};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A key of a host. Each host has its own, and one command of a key is outstanding at a time.
pub(super) type KeyBytes = [u8; 4];

/// A value: its bytes name the command that stored it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) command: u64,
    pub(super) len: u32,
}

impl Value {
    pub(super) fn bytes(self) -> Vec<u8> {
        let len = usize::try_from(self.len).expect("a few kilobytes");
        self.command.to_le_bytes().into_iter().cycle().take(len).collect()
    }
}

/// The commands of a device. Each that was submitted is executed, also if its connection closes
/// before the answer.
#[derive(Default)]
pub(super) struct Ledger {
    /// The value that each key has after the last command.
    values: RefCell<BTreeMap<KeyBytes, Option<Value>>>,
    /// Of keys and values, with those of the new store.
    stored_bytes: Cell<u64>,
    retrieved_bytes: Cell<u64>,
    commands: Cell<u64>,
    /// Of commands in flight when their connection closed.
    lost: RefCell<Lost>,
}

#[derive(Default)]
struct Lost {
    keys: BTreeSet<KeyBytes>,
    stored_bytes: u64,
    retrieved_bytes: u64,
}

impl Ledger {
    /// Notes the commands that `store` has executed before hosts use it.
    pub(super) fn begin(&self, store: &Store) {
        let (stored, retrieved) = executed_bytes(store);
        self.stored_bytes.set(stored);
        self.retrieved_bytes.set(retrieved);
    }

    /// Notes a Store. Returns its value, of this length.
    pub(super) fn store(&self, key: KeyBytes, len: u32) -> Value {
        let value = Value { command: self.count(), len };
        self.values.borrow_mut().insert(key, Some(value));
        self.stored_bytes.set(self.stored_bytes.get() + key.len() as u64 + u64::from(len));
        value
    }

    /// Notes a Retrieve. Returns the value that it must find.
    pub(super) fn retrieve(&self, key: KeyBytes) -> Option<Value> {
        self.count();
        let value = self.value(key);
        let len = value.map_or(0, |value| u64::from(value.len));
        self.retrieved_bytes.set(self.retrieved_bytes.get() + len);
        value
    }

    /// Notes a Delete.
    pub(super) fn delete(&self, key: KeyBytes) {
        self.count();
        self.values.borrow_mut().insert(key, None);
    }

    /// Notes that the connection closes before the answer to the Store that was the last change of
    /// a key.
    pub(super) fn lose_store(&self, key: KeyBytes) {
        let len = self.value(key).map_or(0, |value| u64::from(value.len));
        self.lost.borrow_mut().stored_bytes += key.len() as u64 + len;
        self.lose_delete(key);
    }

    /// The same of a Delete.
    pub(super) fn lose_delete(&self, key: KeyBytes) {
        self.lost.borrow_mut().keys.insert(key);
    }

    /// Notes that it closes before a Retrieve brings this value.
    pub(super) fn lose_retrieve(&self, value: Option<Value>) {
        let len = value.map_or(0, |value| u64::from(value.len));
        self.lost.borrow_mut().retrieved_bytes += len;
    }

    fn value(&self, key: KeyBytes) -> Option<Value> {
        self.values.borrow().get(&key).copied().flatten()
    }

    fn count(&self) -> u64 {
        self.commands.set(self.commands.get() + 1);
        self.commands.get()
    }

    pub(super) fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Checks that `store` has executed each command once, and that its keys have the last values.
    /// If it `may_lack` some, these are of the commands in flight when their connection closed.
    pub(super) async fn check(&self, store: &Arc<Store>, may_lack: bool) {
        let lost = if may_lack { self.lost.take() } else { Lost::default() };
        let (stored, retrieved) = executed_bytes(store);
        let [all_stored, all_retrieved] =
            [&self.stored_bytes, &self.retrieved_bytes].map(Cell::get);
        let is_right = (all_stored - lost.stored_bytes..=all_stored).contains(&stored)
            && (all_retrieved - lost.retrieved_bytes..=all_retrieved).contains(&retrieved);
        assert!(
            is_right,
            "{stored} bytes stored, not {all_stored}; {retrieved} retrieved, not {all_retrieved}"
        );
        let values = self.values.take();
        for (key, value) in values.into_iter().filter(|(key, _)| !lost.keys.contains(key)) {
            let found = store.get(KeySpaceId(1), &Key::new(&key).expect("a short key")).await;
            let found = match found {
                Ok(found) => Some(found.bytes().expect("values are in memory").to_vec()),
                Err(Error::KeyNotFound) => None,
                Err(error) => panic!("{key:?}: {error}"),
            };
            assert!(found == value.map(Value::bytes), "{key:?} has {found:?}, not {value:?}");
        }
    }
}

/// Returns the bytes that a store has stored and retrieved.
pub(super) fn executed_bytes(store: &Store) -> (u64, u64) {
    let work = store.work_by_reactor();
    let retrieved = work.iter().map(|work| work.retrieved_bytes).sum();
    (work.iter().map(|work| work.host_bytes).sum(), retrieved)
}
