//! Checkpoints: every leaf is written, then the directories are the whole index.
//!
//! ```text
//! root:  | for each table: space 2 | generation 4 | entries 8 | leaves 8 | leaf | leaf | ...
//! leaf:  | first hash 5 | address 6, all ones for an empty leaf |
//! ```

use super::Shared;
use super::directory::{Directory, Place};
use super::leaf::{ENTRY_BYTES, Entry};
use super::state::{Old, State, Table};
use crate::error::Error;
use crate::index::Saved;
use crate::index::survivors::Survivors;
use crate::key_space::{KeySpaceId, TableId};
use clock::{Rank, Stage};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a table in the root, before its leaves.
const TABLE_BYTES: usize = 22;

impl Shared {
    /// Gives out no permit until all dirty leaves are on flash, and then copies the directories.
    /// Without room for the leaves it makes no copy, and [`Self::saved`] fails.
    pub(super) async fn freeze(&self) {
        self.take_writer().await;
        self.state().is_frozen = true;
        while self.state().has_permits_out() {
            self.state().freezer = Some(clock::current());
            clock::park(Rank::Free, Stage::Index).await;
        }
        let mut written = Ok(());
        while written.is_ok() && self.state().frames.has_dirty() {
            written = self.write_back(usize::MAX).await;
        }
        let mut state = self.state();
        state.snapshot = written.is_ok().then(|| state.as_saved());
        state.is_frozen = false;
        state.grant(self.frames_max);
        drop(state);
        self.give_writer();
    }

    pub(super) fn saved(&self) -> Result<Saved, Error> {
        self.state().snapshot.take().ok_or(Error::CapacityExceeded)
    }

    pub(super) fn restore(&self, root: &[u8], survivors: &Arc<Survivors>) -> Result<(), Error> {
        let mut tables = decode(root).ok_or(Error::Unrecovered)?;
        let mut state = self.state();
        for (id, table) in &mut tables {
            table.entries = table.entries.saturating_sub(survivors.gone(*id));
            for address in table.directory.iter().filter_map(|place| place.address) {
                *state.leaves_in.entry(self.tables().extent_of(address)).or_default() += 1;
            }
        }
        let extents = state.leaves_in.keys().copied().collect();
        state.old = Some(Old { extents, survivors: survivors.clone() });
        state.tables = tables;
        Ok(())
    }
}

impl State {
    /// Returns the bytes of the root.
    pub(super) fn root_bytes(&self) -> u64 {
        let bytes = |table: &Table| TABLE_BYTES + table.directory.len() * ENTRY_BYTES;
        self.tables.values().map(bytes).sum::<usize>() as u64
    }

    fn as_saved(&self) -> Saved {
        let mut root = Vec::new();
        for (id, table) in &self.tables {
            root.extend_from_slice(&id.space.0.to_be_bytes());
            root.extend_from_slice(&id.generation.to_be_bytes());
            root.extend_from_slice(&table.entries.to_be_bytes());
            root.extend_from_slice(&(table.directory.len() as u64).to_be_bytes());
            root.extend(table.directory.iter().flat_map(|place| place.entry().bytes()));
        }
        let extents = self.leaves_in.keys().copied().collect();
        Saved { root, extents, entries: self.entries() }
    }
}

/// Returns the tables of a root; `None` when it is not one.
fn decode(mut root: &[u8]) -> Option<BTreeMap<TableId, Table>> {
    let mut tables = BTreeMap::new();
    while let Some((head, rest)) = root.split_first_chunk::<TABLE_BYTES>() {
        let (space, head) = head.split_first_chunk()?;
        let (generation, head) = head.split_first_chunk()?;
        let (entries, head) = head.split_first_chunk()?;
        let leaves = u64::from_be_bytes(*head.first_chunk()?);
        let bytes = usize::try_from(leaves).ok()?.checked_mul(ENTRY_BYTES)?;
        let (leaves, rest) = rest.split_at_checked(bytes)?;
        let (leaves, _) = leaves.as_chunks::<ENTRY_BYTES>();
        let places: Vec<Place> =
            leaves.iter().map(|leaf| Place::of(Entry::of_bytes(*leaf))).collect();
        let id = TableId {
            space: KeySpaceId(u16::from_be_bytes(*space)),
            generation: u32::from_be_bytes(*generation),
        };
        let (entries, directory) = (u64::from_be_bytes(*entries), Directory::of(&places)?);
        tables.insert(id, Table { directory, entries });
        root = rest;
    }
    root.is_empty().then_some(tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::address::Address;

    #[test]
    fn the_tables_of_a_root_come_back_and_no_part_of_it_is_a_root() {
        let mut state = State::default();
        for space in 1..4 {
            let id = TableId { space: KeySpaceId(space), generation: 7 };
            let table = state.tables.entry(id).or_default();
            table.entries = 1_000 + u64::from(space);
            for first in 1..u64::from(space) {
                table.directory.split(first << 20);
                table.directory.point(first << 20, Some(Address::from_bits(first)));
            }
        }
        let Saved { root, .. } = state.as_saved();
        assert_eq!(root.len() as u64, state.root_bytes());
        let tables = decode(&root).unwrap();
        assert_eq!(tables.len(), 3);
        for (id, table) in &state.tables {
            let again = &tables[id];
            assert_eq!(again.entries, table.entries);
            assert!(again.directory.iter().eq(table.directory.iter()));
        }
        assert!((1..root.len()).all(|len| decode(&root[..len]).is_none_or(|t| t.len() < 3)));
        assert!((1..TABLE_BYTES + 11).all(|len| decode(&root[..len]).is_none()));
        assert_eq!(decode(&[]).map(|tables| tables.len()), Some(0), "an empty index");
    }
}
