use super::node::{Node, Reader};
use crate::failure::Failure;
use crate::hidden;
use crate::transaction::Transaction;
use base::Key;
use engine::KeySpaceId;

/// Bytes of a node at most, unless it has one entry alone: what is rewritten when an entry of a
/// large collection changes, and what is read to find one.
const NODE_BYTES: u32 = 4 << 10;

/// The nodes of one collection, as a transaction sees them.
///
/// Whatever changes a collection writes its root too, and each command asks for the root to be what
/// it was. So nothing is asked of the other nodes; one that is not there was removed in between.
pub(crate) struct Nodes<'a> {
    transaction: &'a mut Transaction,
    strings: KeySpaceId,
    key: &'a Key,
    bytes_max: usize,
}

impl<'a> Nodes<'a> {
    /// Those of what `key` holds in the database of `strings`.
    pub(crate) fn new(transaction: &'a mut Transaction, strings: KeySpaceId, key: &'a Key) -> Self {
        let max = transaction.value_bytes_max();
        let bytes_max = NODE_BYTES.min(max / 4) as usize;
        Self { transaction, strings, key, bytes_max }
    }

    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A number that no node has had.
    pub(super) async fn new_id(&self) -> Result<u64, Failure> {
        self.transaction.new_id().await
    }

    /// The node of this number.
    pub(super) async fn read(&mut self, id: u64) -> Result<Node, Failure> {
        match self.find(id).await? {
            Some(node) => Ok(node),
            None if self
                .transaction
                .is_overtaken(hidden::roots(self.strings), self.key)
                .await? =>
            {
                Err(Failure::Overtaken)
            }
            None => Err(self.damaged()),
        }
    }

    /// The node of this number, if there is one.
    pub(super) async fn find(&mut self, id: u64) -> Result<Option<Node>, Failure> {
        let value = self.transaction.fetch(hidden::nodes(self.strings), &name(id)).await?;
        let Some(value) = value else { return Ok(None) };
        let node = Node::read(&mut Reader::new(&value));
        node.map(Some).ok_or_else(|| self.damaged())
    }

    pub(super) fn write(&mut self, id: u64, node: &Node) {
        self.transaction.put(hidden::nodes(self.strings), &name(id), node.value(), None);
    }

    pub(super) fn delete(&mut self, id: u64) {
        self.transaction.delete(hidden::nodes(self.strings), &name(id));
    }

    #[expect(clippy::unused_self, reason = "it is said of these nodes")]
    pub(super) fn damaged(&self) -> Failure {
        Failure::told("ERR I/O: a part of this hash or sorted set is lost")
    }
}

/// The key of a node.
pub(crate) fn name(id: u64) -> Key {
    Key::new(&id.to_be_bytes()).expect("eight bytes are a key")
}
