use base::{Buf, Key};
use engine::{Begun, HashedKey, KeySpaceId, Landing, Store, Write};
use std::sync::Arc;
use workload::{Chooser, Distribution};

/// Operations whose entries are prefetched before the first is executed, as of one read.
const TOGETHER: u64 = 32;

const SPACE: KeySpaceId = KeySpaceId(1);

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Store,
    Get,
}

/// What all reactors do together.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) kind: Kind,
    pub(crate) keys: u64,
    pub(crate) operations: u64,
    pub(crate) value_bytes: usize,
    pub(crate) distribution: Distribution,
    /// The store is on a drive, with durability `capacitor`, whose blocks are memory.
    pub(crate) is_on_blocks: bool,
}

pub(crate) fn key(number: u64) -> Key {
    Key::new(&number.to_le_bytes()).expect("eight bytes are a key")
}

impl Load {
    pub(crate) fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Store => "store",
            Kind::Get => "get",
        };
        let place = if self.is_on_blocks { "drive" } else { "memory" };
        let by = if self.distribution == Distribution::Zipfian { " zipfian" } else { "" };
        format!("{kind} {} B, {}{by} keys, {place}", self.value_bytes, self.keys)
    }

    fn value(&self) -> Buf {
        Buf::copy_from(&vec![7; self.value_bytes])
    }

    /// Stores all keys.
    pub(crate) async fn fill(&self, store: &Arc<Store>) {
        let value = self.value();
        for number in 0..self.keys {
            put_all(store, &[key(number)], &value).await;
            if number % TOGETHER == 0 {
                clock::give_way().await;
            }
        }
    }

    /// Executes `operations` on random keys.
    pub(crate) async fn execute(&self, store: &Arc<Store>, operations: u64, seed: u64) {
        let mut chooser = Chooser::new(self.distribution, self.keys, 0, seed);
        let value = self.value();
        let mut keys = Vec::new();
        for _ in 0..operations / TOGETHER {
            keys.clear();
            keys.extend((0..TOGETHER).map(|_| key(chooser.draw(self.keys))));
            for key in &keys {
                match self.kind {
                    Kind::Store => store.expect_write(SPACE, HashedKey::new(key)),
                    Kind::Get => store.expect(SPACE, HashedKey::new(key)),
                }
            }
            match self.kind {
                Kind::Store => put_all(store, &keys, &value).await,
                Kind::Get => {
                    for key in &keys {
                        get(store, key, self.value_bytes).await;
                    }
                }
            }
            clock::give_way().await;
        }
    }
}

/// Stores a value under each key. Waits for room where there is none, and for what has to land when
/// all are begun, as a server does with the commands of one read.
pub(crate) async fn put_all(store: &Arc<Store>, keys: &[Key], value: &Buf) {
    let mut landings = Vec::new();
    for key in keys {
        let hashed = HashedKey::new(key);
        match store.begin_put(SPACE, hashed, value, Write::default(), store.announce()) {
            Begun::Done(stored) => drop(stored.expect("there is room")),
            Begun::Landing(landing) => landings.push(landing),
            Begun::Wait(announced) => {
                // There is room when these have landed.
                land(store, &mut landings).await;
                let stored = store.put(SPACE, key, value, Write::default(), announced).await;
                stored.expect("there is room");
            }
        }
    }
    land(store, &mut landings).await;
}

async fn land(store: &Arc<Store>, landings: &mut Vec<Landing>) {
    for landing in landings.drain(..) {
        store.landed(landing).await.expect("no write fails");
    }
}

async fn get(store: &Arc<Store>, key: &Key, len: usize) {
    let mut found = None;
    let begun = store.begin_get(SPACE, HashedKey::new(key), |value| found = Some(value.len()));
    let found = match begun {
        Some(taken) => taken.map(|()| found.expect("it has a value")),
        None => store.get(SPACE, key).await.map(|value| value.len()),
    };
    assert_eq!(found.expect("it was stored") as usize, len);
}
