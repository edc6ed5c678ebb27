//! An ordered map in nodes of a few KiB: a B+-tree whose inner nodes count what is below them, so
//! that it also knows its entries by their number.
//!
//! A node that is read stays in memory until the tree is written, as does what has changed. Of
//! neighbours that are joined the right one keeps its number, and of a node that is divided the
//! left part does. So the entries after a node with a number never move before it.

use super::node::{Child, Entry, Node, bytes};
use super::nodes::Nodes;
use crate::failure::Failure;
use base::Buf;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;

/// One of the trees of a collection.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(super) root: Node,
    /// By number.
    loaded: BTreeMap<u64, Loaded>,
    /// Nodes that are no more.
    gone: Vec<u64>,
}

#[derive(Debug)]
struct Loaded {
    node: Node,
    is_changed: bool,
}

/// A node by its number; the root has none.
type Place = Option<u64>;

/// One step down: from which node, to which of its children.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: Place,
    child: usize,
}

impl Tree {
    pub(super) const fn new(root: Node) -> Self {
        Self { root, loaded: BTreeMap::new(), gone: Vec::new() }
    }

    /// How many entries it has.
    pub(crate) fn len(&self) -> u64 {
        self.root.count()
    }

    /// Height and number of each node right below the root.
    pub(super) fn children(&self) -> Vec<(u8, u64)> {
        let below = self.root.height().saturating_sub(1);
        self.root.children().iter().map(|child| (below, child.id)).collect()
    }

    /// The value of `key`.
    pub(crate) async fn get(
        &mut self,
        nodes: &mut Nodes<'_>,
        key: &[u8],
    ) -> Result<Option<Buf>, Failure> {
        let (_, leaf) = self.descend(nodes, key).await?;
        let entries = self.entries(leaf);
        let found = find(entries, key).ok();
        Ok(found.map(|at| entries[at].value.clone()))
    }

    /// Gives `key` a value, and returns the one that it had.
    pub(crate) async fn insert(
        &mut self,
        nodes: &mut Nodes<'_>,
        entry: Entry,
    ) -> Result<Option<Buf>, Failure> {
        let (path, leaf) = self.descend(nodes, bytes(&entry.key)).await?;
        let before = match find(self.entries(leaf), bytes(&entry.key)) {
            Ok(at) => Some(std::mem::replace(&mut self.entries_mut(leaf)[at], entry).value),
            Err(at) => {
                self.entries_mut(leaf).insert(at, entry);
                None
            }
        };
        self.settle(nodes, path, leaf).await?;
        Ok(before)
    }

    /// Removes `key`, and returns the value that it had.
    pub(crate) async fn remove(
        &mut self,
        nodes: &mut Nodes<'_>,
        key: &[u8],
    ) -> Result<Option<Buf>, Failure> {
        let (path, leaf) = self.descend(nodes, key).await?;
        let Ok(at) = find(self.entries(leaf), key) else { return Ok(None) };
        let removed = self.entries_mut(leaf).remove(at);
        self.settle(nodes, path, leaf).await?;
        Ok(Some(removed.value))
    }

    /// How many keys are less than `key`.
    pub(crate) async fn rank(&mut self, nodes: &mut Nodes<'_>, key: &[u8]) -> Result<u64, Failure> {
        let (path, leaf) = self.descend(nodes, key).await?;
        let before = |step: &Step| {
            let children = self.node(step.from).children();
            children[..step.child].iter().map(|child| child.count).sum::<u64>()
        };
        let (Ok(at) | Err(at)) = find(self.entries(leaf), key);
        Ok(path.iter().map(before).sum::<u64>() + at as u64)
    }

    /// Up to `count` entries, in order, from the one that has `rank` before it.
    pub(crate) async fn slice(
        &mut self,
        nodes: &mut Nodes<'_>,
        rank: u64,
        count: u64,
    ) -> Result<Vec<Entry>, Failure> {
        let mut found = Vec::new();
        let end = rank.saturating_add(count).min(self.len());
        let mut rank = rank;
        while rank < end {
            let (leaf, skipped) = self.leaf_of(nodes, rank).await?;
            let rest = &self.entries(leaf)[skipped..];
            let taken = rest.len().min(usize::try_from(end - rank).unwrap_or(usize::MAX));
            found.extend_from_slice(&rest[..taken]);
            rank += taken as u64;
        }
        Ok(found)
    }

    /// The entries of the next leaves after the one of this number, `count` of them or somewhat
    /// more, and the number of the last leaf, unless that is the last of all. From the first one,
    /// if no leaf has this number.
    pub(crate) async fn step(
        &mut self,
        nodes: &mut Nodes<'_>,
        after: u64,
        count: usize,
    ) -> Result<(Vec<Entry>, Option<u64>), Failure> {
        let mut rank = match nodes.find(after).await? {
            Some(node @ Node::Leaf(_)) => {
                let first = self.rank(nodes, bytes(&node.first())).await?;
                first + node.count()
            }
            _ => 0,
        };
        let mut found = Vec::new();
        while rank < self.len() {
            let (leaf, skipped) = self.leaf_of(nodes, rank).await?;
            let rest = &self.entries(leaf)[skipped..];
            found.extend_from_slice(rest);
            rank += rest.len() as u64;
            if found.len() >= count && rank < self.len() {
                return Ok((found, leaf));
            }
        }
        Ok((found, None))
    }

    /// Writes what has changed, but for the root.
    pub(super) fn save(self, nodes: &mut Nodes<'_>) {
        for (id, loaded) in self.loaded {
            if loaded.is_changed {
                nodes.write(id, &loaded.node);
            }
        }
        for id in self.gone {
            nodes.delete(id);
        }
    }

    fn node(&self, place: Place) -> &Node {
        match place {
            None => &self.root,
            Some(id) => &self.loaded[&id].node,
        }
    }

    fn node_mut(&mut self, place: Place) -> &mut Node {
        let Some(id) = place else { return &mut self.root };
        let loaded = self.loaded.get_mut(&id).expect("it was loaded on the way");
        loaded.is_changed = true;
        &mut loaded.node
    }

    fn entries(&self, leaf: Place) -> &[Entry] {
        match self.node(leaf) {
            Node::Leaf(entries) => entries,
            Node::Inner { .. } => &[],
        }
    }

    fn entries_mut(&mut self, leaf: Place) -> &mut Vec<Entry> {
        match self.node_mut(leaf) {
            Node::Leaf(entries) => entries,
            Node::Inner { .. } => unreachable!("a way down ends at a leaf"),
        }
    }

    fn children_mut(&mut self, place: Place) -> &mut Vec<Child> {
        match self.node_mut(place) {
            Node::Inner { children, .. } => children,
            Node::Leaf(_) => unreachable!("a way down leads through inner nodes"),
        }
    }

    async fn load(&mut self, nodes: &mut Nodes<'_>, id: u64) -> Result<(), Failure> {
        if let Vacant(place) = self.loaded.entry(id) {
            place.insert(Loaded { node: nodes.read(id).await?, is_changed: false });
        }
        Ok(())
    }

    /// The way to the leaf where `key` is, or belongs.
    async fn descend(
        &mut self,
        nodes: &mut Nodes<'_>,
        key: &[u8],
    ) -> Result<(Vec<Step>, Place), Failure> {
        let (mut path, mut place) = (Vec::new(), None);
        loop {
            let children = self.node(place).children();
            let after = children.partition_point(|child| bytes(&child.first) <= key);
            let child = after.saturating_sub(1);
            let Some(next) = children.get(child).map(|child| child.id) else {
                return Ok((path, place));
            };
            path.push(Step { from: place, child });
            self.load(nodes, next).await?;
            place = Some(next);
        }
    }

    /// The leaf that has the entry of this rank, and how many it has before that.
    async fn leaf_of(
        &mut self,
        nodes: &mut Nodes<'_>,
        rank: u64,
    ) -> Result<(Place, usize), Failure> {
        let (mut place, mut left) = (None, rank);
        loop {
            let mut next = None;
            for child in self.node(place).children() {
                if left < child.count {
                    next = Some(child.id);
                    break;
                }
                left -= child.count;
            }
            let Some(id) = next else {
                let skipped = usize::try_from(left).ok();
                let skipped = skipped.filter(|at| *at < self.entries(place).len());
                return Ok((place, skipped.ok_or_else(|| nodes.damaged())?));
            };
            self.load(nodes, id).await?;
            place = Some(id);
        }
    }

    /// Makes the nodes from `place` up right again, which has more or less than before.
    async fn settle(
        &mut self,
        nodes: &mut Nodes<'_>,
        mut path: Vec<Step>,
        mut place: Place,
    ) -> Result<(), Failure> {
        while let (Some(id), Some(step)) = (place, path.pop()) {
            let parts = self.node_mut(place).split(nodes.bytes_max());
            let node = self.node(place);
            let (count, is_empty) = (node.count(), node.is_empty());
            let is_small = node.len() < nodes.bytes_max() / 4;
            let new = self.add(nodes, parts).await?;
            let children = self.children_mut(step.from);
            children[step.child].count = count;
            let after = step.child + 1;
            children.splice(after..after, new);
            if is_empty {
                children.remove(step.child);
                self.forget(id);
            } else if is_small {
                self.join(nodes, step).await?;
            }
            place = step.from;
        }
        self.settle_root(nodes).await
    }

    /// Gives new nodes their numbers.
    async fn add(&mut self, nodes: &Nodes<'_>, parts: Vec<Node>) -> Result<Vec<Child>, Failure> {
        let mut added = Vec::with_capacity(parts.len());
        for node in parts {
            let id = nodes.new_id().await?;
            added.push(Child { first: node.first(), id, count: node.count() });
            self.loaded.insert(id, Loaded { node, is_changed: true });
        }
        Ok(added)
    }

    fn forget(&mut self, id: u64) -> Node {
        self.gone.push(id);
        self.loaded.remove(&id).expect("it was loaded on the way").node
    }

    /// Joins a small node with a neighbour, if both together are small.
    async fn join(&mut self, nodes: &mut Nodes<'_>, step: Step) -> Result<(), Failure> {
        let pairs = [Some(step.child), step.child.checked_sub(1)];
        for left in pairs.into_iter().flatten() {
            let ids = self.node(step.from).children().get(left..left + 2);
            let Some([left_id, right_id]) = ids.map(|pair| [pair[0].id, pair[1].id]) else {
                continue;
            };
            self.load(nodes, left_id).await?;
            self.load(nodes, right_id).await?;
            let together = self.node(Some(left_id)).len() + self.node(Some(right_id)).len();
            if together > nodes.bytes_max() / 4 * 3 {
                continue;
            }
            let before = self.forget(left_id);
            self.node_mut(Some(right_id)).prepend(before);
            let children = self.children_mut(step.from);
            let gone = children.remove(left);
            children[left].first = gone.first;
            children[left].count += gone.count;
            return Ok(());
        }
        Ok(())
    }

    async fn settle_root(&mut self, nodes: &mut Nodes<'_>) -> Result<(), Failure> {
        let parts = self.root.split(nodes.bytes_max());
        if !parts.is_empty() {
            let height = self.root.height() + 1;
            let first = std::mem::take(&mut self.root);
            let all = std::iter::once(first).chain(parts).collect();
            let children = self.add(nodes, all).await?;
            self.root = Node::Inner { height, children };
        }
        while let [only] = self.root.children() {
            let id = only.id;
            self.load(nodes, id).await?;
            if self.node(Some(id)).len() > nodes.bytes_max() {
                break;
            }
            self.root = self.forget(id);
        }
        if self.root.is_empty() {
            self.root = Node::default();
        }
        Ok(())
    }
}

/// Where `key` is, or where it belongs.
fn find(entries: &[Entry], key: &[u8]) -> Result<usize, usize> {
    entries.binary_search_by(|entry| bytes(&entry.key).cmp(key))
}
