//! Work beside commands: removes the nodes of collections whose roots are gone, and empties
//! databases. Both continue after a restart.

use crate::collection::grave::Grave;
use crate::collection::{children_of, has_grave, node_key};
use crate::door::Door;
use crate::failure::Failure;
use crate::hidden::{self, NOTES};
use crate::upkeep::{grave, grave_id};
use base::{Buf, Key, Nanos};
use clock::{LocalFuture, Stage, UnixMillis};
use engine::{BatchOp, BatchWrite, Condition, Error, KeySpaceId, Store};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often it is looked for graves that are due.
const PERIOD: Nanos = Nanos::from_micros(50_000);

/// Milliseconds after which it is tried again to remove nodes, if they could not be removed.
const AGAIN: u64 = 1_000;

/// Milliseconds by which the clocks of reactors may differ: each follows the wall clock between its
/// polls.
const SKEW: u64 = 1_000;

/// Nodes that are removed at once.
const NODES: usize = 128;

impl Door {
    /// Finds the work that a restart has interrupted. Call it before the first client is served.
    pub async fn prepare(&self) -> Result<(), Error> {
        let mut keys = Vec::new();
        let take = |key: &Key| {
            keys.push(key.clone());
            true
        };
        match self.store().list(NOTES, None, take).await {
            Err(Error::NoKeySpace) => return Ok(()),
            listed => listed?,
        }
        for key in keys {
            if let Some(strings) = emptied(&key) {
                self.empty_collections(strings).await?;
            } else if let Some(id) = grave_id(&key)
                && let Some(found) = self.note(&key).await?
            {
                let date = Grave::read(&found).map_or(UnixMillis(0), |grave| grave.date);
                self.upkeep().add([(date, id)]);
            }
        }
        Ok(())
    }

    /// Removes what is left of collections that are gone, and ends connections that are past their
    /// limits, until the door is [closed](Self::close).
    pub async fn tend(&self) {
        let _tending = self.tending.add();
        while !self.is_closed() && self.store().count_expiring().await {
            self.sweep();
        }
        while !self.is_closed() {
            self.sweep();
            while let Some(id) = self.upkeep().next_due() {
                self.sweep();
                match self.reap(id).await {
                    Ok(None) => {}
                    Ok(Some(date)) => self.upkeep().add([(date, id)]),
                    Err(_) => {
                        let later = UnixMillis(clock::unix_now().0 + AGAIN);
                        self.upkeep().add([(later, id)]);
                        break;
                    }
                }
                if self.is_closed() {
                    break;
                }
            }
            clock::sleep(PERIOD, Stage::Queue).await;
        }
    }

    /// Ends the work beside commands. On return nothing uses the store, if no connection is open.
    pub async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.tending.end(Stage::Queue).await;
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Removes the nodes of a grave, and the grave; if it is too early, says when it will not be.
    async fn reap(&self, id: u64) -> Result<Option<UnixMillis>, Failure> {
        let mut transaction = self.transaction();
        let Some(held) = transaction.get(NOTES, &grave(id)).await? else { return Ok(None) };
        let Some(mut found) = Grave::read(&held.value) else { return Ok(None) };
        if found.date > UnixMillis(0) {
            let gone = UnixMillis(found.date.0 + SKEW);
            if gone > clock::unix_now() {
                return Ok(Some(gone));
            }
            // The collection has expired, by the clocks of all reactors: no command can give it a
            // later date.
            let roots = hidden::roots(found.strings);
            let root = transaction.get(roots, &found.key).await?;
            if root.is_some_and(|root| has_grave(&root.value, id)) {
                return Ok(Some(UnixMillis(clock::unix_now().0 + AGAIN)));
            }
            found.date = UnixMillis(0);
            transaction.put(NOTES, &grave(id), found.value(), None);
            transaction.commit().await?;
        }
        let nodes = hidden::nodes(found.strings);
        for (height, id) in &found.nodes {
            remove(self.store(), nodes, *height, *id).await?;
        }
        delete(self.store(), NOTES, &[grave(id)]).await?;
        Ok(None)
    }

    async fn note(&self, key: &Key) -> Result<Option<Buf>, Error> {
        match self.store().get(NOTES, key).await {
            Err(Error::KeyNotFound | Error::NoKeySpace) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Deletes all keys of a database. For NVMe hosts its key space exists again at once.
    pub(crate) async fn empty(&self, strings: KeySpaceId) -> Result<(), Error> {
        if self.store().has_key_space(hidden::roots(strings)) {
            let _alone = self.upkeep().begin_emptying().await;
            put(self.store(), &emptying(strings)).await?;
            self.empty_collections(strings).await?;
            self.upkeep().assumptions_end().await;
        }
        renew(self.store(), strings).await
    }

    /// Deletes all roots of a database and then all nodes, and what says that this is to be done.
    async fn empty_collections(&self, strings: KeySpaceId) -> Result<(), Error> {
        for space in [hidden::roots(strings), hidden::nodes(strings)] {
            renew(self.store(), space).await?;
        }
        delete(self.store(), NOTES, &[emptying(strings)]).await
    }
}

/// Says that a database is being emptied.
fn emptying(strings: KeySpaceId) -> Key {
    let [low, high] = strings.0.to_le_bytes();
    Key::new(&[b'e', low, high]).expect("three bytes are a key")
}

/// The database of which a note says that.
fn emptied(key: &Key) -> Option<KeySpaceId> {
    match key.as_bytes() {
        [b'e', low, high] => Some(KeySpaceId(u16::from_le_bytes([*low, *high]))),
        _ => None,
    }
}

/// Deletes all of a key space.
async fn renew(store: &Arc<Store>, space: KeySpaceId) -> Result<(), Error> {
    match store.delete_key_space(space).await {
        Err(Error::NoKeySpace) => Ok(()),
        deleted => {
            deleted?;
            store.ensure_key_space(space).await
        }
    }
}

/// Removes a node after those below it: a node that is there has all of them.
fn remove(
    store: &Arc<Store>,
    nodes: KeySpaceId,
    height: u8,
    id: u64,
) -> LocalFuture<'_, Result<(), Failure>> {
    Box::pin(async move {
        if height > 0 {
            let below = match store.get(nodes, &node_key(id)).await {
                Err(Error::KeyNotFound | Error::NoKeySpace) => return Ok(()),
                node => children_of(&node?),
            };
            if height > 1 {
                for child in below {
                    remove(store, nodes, height - 1, child).await?;
                }
            } else {
                let leaves: Vec<_> = below.into_iter().map(node_key).collect();
                for some in leaves.chunks(NODES) {
                    delete(store, nodes, some).await?;
                }
            }
        }
        Ok(delete(store, nodes, &[node_key(id)]).await?)
    })
}

async fn put(store: &Arc<Store>, note: &Key) -> Result<(), Error> {
    let value = Buf::copy_from(&[]);
    loop {
        let write = engine::Write::default();
        match store.put(NOTES, note, &value, write, store.announce()).await {
            Err(Error::NoKeySpace) => store.ensure_key_space(NOTES).await?,
            put => return put.map(drop),
        }
    }
}

async fn delete(store: &Arc<Store>, space: KeySpaceId, keys: &[Key]) -> Result<(), Error> {
    let delete = |key: &Key| {
        let op = BatchOp::Delete { condition: Condition::Always };
        BatchWrite { space, key: key.clone(), op }
    };
    match store.write_batch(keys.iter().map(delete).collect(), store.announce()).await {
        Err(Error::NoKeySpace) => Ok(()),
        deleted => deleted,
    }
}
