//! Hashes and sorted sets: what a key holds besides a string.
//!
//! A collection is a root and, when that is more than a few KiB, nodes below it, all of them
//! records of key spaces that only this door knows (`hidden`). The root has the key of the
//! collection, so a small one is one record: read at once and written at once. A hash is a tree of
//! its fields; a sorted set is two, of its members and of its scores (`sorted_set`).
//!
//! The root's value: what it is (1 byte: 1 a hash, 2 a sorted set), the number of its grave or 0
//! (8), and the root of each tree (`node`).

pub(crate) mod grave;
mod node;
mod nodes;
pub(crate) mod sorted_set;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use node::Entry;
pub(crate) use nodes::{Nodes, name as node_key};
pub(crate) use tree::Tree;

use crate::failure::Failure;
use crate::hidden;
use crate::transaction::Transaction;
use base::{Buf, BufMut, Key};
use clock::UnixMillis;
use engine::KeySpaceId;
use grave::Grave;
use node::{Node, Reader};

const HEAD_BYTES: usize = 9;

/// Bytes of a field or member at most, as of a key: what divides nodes has to be short.
const NAME_BYTES_MAX: usize = 255;

/// Bytes of a node that one value is not.
const AROUND_VALUE: u32 = 1 << 10;

/// What a collection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash = 1,
    SortedSet = 2,
}

impl Kind {
    /// As TYPE says it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::SortedSet => "zset",
        }
    }

    const fn trees(self) -> usize {
        match self {
            Self::Hash => 1,
            Self::SortedSet => 2,
        }
    }
}

/// A collection that was read, or that is new.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) kind: Kind,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) trees: Vec<Tree>,
    /// The number of its grave, if it has one.
    grave: Option<u64>,
    /// What the grave says, as far as that is known.
    written: Option<Grave>,
}

impl Collection {
    pub(crate) fn new(kind: Kind) -> Self {
        let trees = (0..kind.trees()).map(|_| Tree::default()).collect();
        Self { kind, expires: None, trees, grave: None, written: None }
    }

    /// What `key` holds in the database of `strings`, if that is a collection.
    pub(crate) async fn open(
        transaction: &mut Transaction,
        strings: KeySpaceId,
        key: &Key,
    ) -> Result<Option<Self>, Failure> {
        let held = transaction.get(hidden::roots(strings), key).await?;
        let Some(held) = held else { return Ok(None) };
        let lost = "ERR I/O: the root of this hash or sorted set is lost";
        let mut read = Self::read(&held.value).ok_or_else(|| Failure::told(lost))?;
        read.expires = held.expires;
        read.written = read.grave_of(strings, key);
        Ok(Some(read))
    }

    /// What the root of a collection says it is.
    pub(crate) fn kind_of(root: &Buf) -> Option<Kind> {
        match Reader::new(root).array()? {
            [1] => Some(Kind::Hash),
            [2] => Some(Kind::SortedSet),
            _ => None,
        }
    }

    fn read(root: &Buf) -> Option<Self> {
        let kind = Self::kind_of(root)?;
        let mut from = Reader::new(root);
        let _kind: [u8; 1] = from.array()?;
        let grave = Some(from.number()?).filter(|id| *id > 0);
        let trees = (0..kind.trees()).map(|_| Node::read(&mut from).map(Tree::new));
        let trees = trees.collect::<Option<_>>()?;
        Some(Self { kind, expires: None, trees, grave, written: None })
    }

    /// Entries of it.
    pub(crate) fn len(&self) -> u64 {
        self.trees[0].len()
    }

    /// Whether the root is all of it.
    pub(crate) fn is_one_record(&self) -> bool {
        self.trees.iter().all(|tree| tree.children().is_empty())
    }

    /// What its grave has to say now, if it has to have one.
    fn grave_of(&self, strings: KeySpaceId, key: &Key) -> Option<Grave> {
        let nodes: Vec<_> = self.trees.iter().flat_map(Tree::children).collect();
        let date = self.expires.filter(|_| !nodes.is_empty())?;
        Some(Grave { date, strings, key: key.clone(), nodes })
    }

    /// Writes it, or removes it if nothing is left in it. `key` holds no string.
    pub(crate) async fn save(
        mut self,
        transaction: &mut Transaction,
        strings: KeySpaceId,
        key: &Key,
    ) -> Result<(), Failure> {
        let is_empty = self.len() == 0;
        let grave = self.grave_of(strings, key).filter(|_| !is_empty);
        if grave != self.written {
            match (&grave, self.grave) {
                (Some(grave), before) => {
                    let id = match before {
                        Some(id) => id,
                        None => transaction.new_id().await?,
                    };
                    self.grave = Some(id);
                    transaction.bury(id, grave);
                }
                (None, Some(id)) => {
                    transaction.forget_grave(id);
                    self.grave = None;
                }
                (None, None) => {}
            }
        }
        let root = self.root();
        let mut nodes = Nodes::new(transaction, strings, key);
        for tree in self.trees {
            tree.save(&mut nodes);
        }
        let roots = hidden::roots(strings);
        match root {
            _ if is_empty => transaction.delete(roots, key),
            root => transaction.put(roots, key, root, self.expires),
        }
        Ok(())
    }

    /// The value of its root.
    fn root(&self) -> Buf {
        let len: usize = self.trees.iter().map(|tree| tree.root.len()).sum();
        let mut value = BufMut::unpooled(HEAD_BYTES + len);
        let out = value.as_mut();
        out[0] = self.kind as u8;
        out[1..HEAD_BYTES].copy_from_slice(&self.grave.unwrap_or(0).to_le_bytes());
        let trees = self.trees.iter();
        trees.fold(&mut out[HEAD_BYTES..], |out, tree| tree.root.write(out));
        value.freeze()
    }

    /// Removes it. What is below its root is removed later.
    pub(crate) async fn discard(
        self,
        transaction: &mut Transaction,
        strings: KeySpaceId,
        key: &Key,
    ) -> Result<(), Failure> {
        transaction.delete(hidden::roots(strings), key);
        let nodes: Vec<_> = self.trees.iter().flat_map(Tree::children).collect();
        match self.grave {
            None if nodes.is_empty() => {}
            Some(id) if nodes.is_empty() => transaction.forget_grave(id),
            before => {
                let id = match before {
                    Some(id) => id,
                    None => transaction.new_id().await?,
                };
                let (date, key) = (UnixMillis(0), key.clone());
                transaction.bury(id, &Grave { date, strings, key, nodes });
            }
        }
        Ok(())
    }

    /// Gives it another key, which holds nothing.
    pub(crate) async fn rename(
        mut self,
        transaction: &mut Transaction,
        strings: KeySpaceId,
        [from, to]: [&Key; 2],
    ) -> Result<(), Failure> {
        transaction.delete(hidden::roots(strings), from);
        self.written = None;
        self.save(transaction, strings, to).await
    }

    /// Another one with the same entries, for another key, which holds nothing.
    pub(crate) async fn copy(
        mut self,
        transaction: &mut Transaction,
        [from, to]: [(KeySpaceId, &Key); 2],
    ) -> Result<(), Failure> {
        let mut copy = Self { expires: self.expires, ..Self::new(self.kind) };
        for (tree, copied) in self.trees.iter_mut().zip(&mut copy.trees) {
            let mut nodes = Nodes::new(transaction, from.0, from.1);
            let entries = tree.slice(&mut nodes, 0, u64::MAX).await?;
            let mut nodes = Nodes::new(transaction, to.0, to.1);
            for entry in entries {
                copied.insert(&mut nodes, entry).await?;
            }
        }
        copy.save(transaction, to.0, to.1).await
    }
}

/// The nodes right below a node of this value.
pub(crate) fn children_of(value: &Buf) -> Vec<u64> {
    let node = Node::read(&mut Reader::new(value)).unwrap_or_default();
    node.children().iter().map(|child| child.id).collect()
}

/// Whether the grave of this number is that of the collection with this root.
pub(crate) fn has_grave(root: &Buf, id: u64) -> bool {
    Collection::read(root).is_some_and(|collection| collection.grave == Some(id))
}

/// A field or member, if it is not too long.
pub(crate) fn name_of(bytes: &[u8]) -> Result<Buf, Failure> {
    if bytes.len() > NAME_BYTES_MAX {
        let (max, len) = (NAME_BYTES_MAX, bytes.len());
        let text = format!("ERR a field or member has at most {max} bytes, not {len}");
        return Err(Failure::told(text));
    }
    Ok(Buf::copy_from(bytes))
}

/// Whether a value of this length may be that of a field.
pub(crate) fn check_value(transaction: &Transaction, len: u32) -> Result<(), Failure> {
    let max = transaction.value_bytes_max().saturating_sub(AROUND_VALUE);
    if len > max {
        return Err(Failure::told(format!("ERR a value of a field has at most {max} bytes")));
    }
    Ok(())
}
