//! The directory of a table: where its leaves lie, in the order of their hashes, 11 bytes each.

use super::leaf::{ENTRY_BYTES, Entry};
use crate::format::address::Address;
use serde::{Deserialize, Serialize};

/// Leaves of a chunk. Adding a leaf moves no more than these.
const CHUNK_LEAVES_MAX: usize = 256;

/// An address that no record has: a medium has fewer than 2^32 pages.
const NOWHERE: Address = Address::MAX;

/// The leaves of a table. The first begins with hash 0, and each ends where the next begins. No
/// leaf is ever removed: hashes are uniform, so an empty leaf gets new entries.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// Each with at least one leaf, in order.
    chunks: Vec<Vec<Entry>>,
}

/// A directory in a saved state, chunk by chunk: its bytes of memory depend on the chunks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedDirectory {
    capacity: usize,
    chunks: Vec<Vec<Entry>>,
}

/// A leaf as the directory has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The first hash of its range.
    pub(super) first: u64,
    /// Where it lies on flash, if it has been written.
    pub(super) address: Option<Address>,
}

impl Place {
    pub(super) fn of(entry: Entry) -> Self {
        let address = Some(entry.address()).filter(|address| *address != NOWHERE);
        Self { first: entry.hash(), address }
    }

    pub(super) fn entry(self) -> Entry {
        Entry::new(self.first, self.address.unwrap_or(NOWHERE))
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self { chunks: vec![vec![Place { first: 0, address: None }.entry()]] }
    }
}

impl Directory {
    /// Returns the bytes that a directory of `leaves` takes at most: its chunks have no room to
    /// spare and are half full at least, and of the list of chunks half may be empty.
    pub(super) const fn bytes_max(leaves: u64) -> u64 {
        let chunks = leaves / (CHUNK_LEAVES_MAX as u64 / 2) + 1;
        leaves * ENTRY_BYTES as u64 + chunks * 2 * size_of::<Vec<Entry>>() as u64
    }

    /// Returns the bytes that it takes now.
    pub(super) fn bytes(&self) -> u64 {
        let chunks = self.chunks.capacity() * size_of::<Vec<Entry>>();
        (chunks + self.chunks.iter().map(|chunk| chunk.capacity() * ENTRY_BYTES).sum::<usize>())
            as u64
    }

    /// Makes the directory of which [`Self::iter`] returned `places`; `None` when they are of no
    /// directory.
    pub(super) fn of(places: &[Place]) -> Option<Self> {
        let in_order = places.is_sorted_by(|a, b| a.first < b.first);
        if !in_order || places.first()?.first != 0 {
            return None;
        }
        let chunk = |places: &[Place]| places.iter().map(|place| place.entry()).collect();
        Some(Self { chunks: places.chunks(CHUNK_LEAVES_MAX * 3 / 4).map(chunk).collect() })
    }

    pub(super) fn save(&self) -> SavedDirectory {
        SavedDirectory { capacity: self.chunks.capacity(), chunks: self.chunks.clone() }
    }

    /// Restores what [`Self::save`] returned. `None` when it is no directory.
    pub(super) fn restored(saved: SavedDirectory) -> Option<Self> {
        let SavedDirectory { capacity, chunks: saved } = saved;
        let mut chunks = Vec::new();
        chunks.try_reserve_exact(capacity.max(saved.len())).ok()?;
        chunks.extend(saved.into_iter().map(|mut chunk| {
            chunk.shrink_to_fit();
            chunk
        }));
        let directory = Self { chunks };
        let is_whole = directory.chunks.iter().all(|chunk| !chunk.is_empty())
            && directory.iter().next().is_some_and(|place| place.first == 0)
            && directory.iter().is_sorted_by(|a, b| a.first < b.first);
        is_whole.then_some(directory)
    }

    /// Returns the chunk and the place in it of the leaf whose range has `hash`.
    #[inline]
    fn find(&self, hash: u64) -> (usize, usize) {
        let chunk = self.chunks.partition_point(|chunk| chunk[0].hash() <= hash) - 1;
        (chunk, self.chunks[chunk].partition_point(|entry| entry.hash() <= hash) - 1)
    }

    /// Returns the leaf whose range has `hash`.
    #[inline]
    pub(super) fn leaf_of(&self, hash: u64) -> Place {
        let (chunk, at) = self.find(hash);
        Place::of(self.chunks[chunk][at])
    }

    /// Returns the leaf after the one whose range has `hash`.
    pub(super) fn next(&self, hash: u64) -> Option<Place> {
        let (chunk, at) = self.find(hash);
        let next = self.chunks[chunk].get(at + 1);
        next.or_else(|| self.chunks.get(chunk + 1).map(|chunk| &chunk[0])).copied().map(Place::of)
    }

    /// Points the leaf that begins with `first` to `address`.
    pub(super) fn point(&mut self, first: u64, address: Option<Address>) {
        let (chunk, at) = self.find(first);
        let entry = &mut self.chunks[chunk][at];
        assert_eq!(entry.hash(), first, "a leaf stays in its directory");
        *entry = Place { first, address }.entry();
    }

    /// Adds a new leaf, not on flash yet, that takes the end of a leaf's range from `first` on.
    pub(super) fn split(&mut self, first: u64) {
        let (number, at) = self.find(first);
        let chunk = &mut self.chunks[number];
        assert!(chunk[at].hash() < first, "a leaf begins where no other does");
        chunk.reserve_exact(1);
        chunk.insert(at + 1, Place { first, address: None }.entry());
        if chunk.len() > CHUNK_LEAVES_MAX {
            let mut upper = chunk.split_off(CHUNK_LEAVES_MAX / 2);
            upper.shrink_to_fit();
            chunk.shrink_to_fit();
            self.chunks.insert(number + 1, upper);
        }
    }

    /// Returns how many leaves there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Returns the leaves, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Place> {
        self.chunks.iter().flatten().copied().map(Place::of)
    }
}

#[cfg(test)]
mod tests {
    use super::super::leaf::HASH_BITS;
    use super::*;
    use base::Rng;
    use std::collections::BTreeMap;

    fn places(model: &BTreeMap<u64, Option<Address>>) -> Vec<Place> {
        model.iter().map(|(first, address)| Place { first: *first, address: *address }).collect()
    }

    fn grown(seed: u64, leaves: u64) -> (Directory, BTreeMap<u64, Option<Address>>) {
        let mut rng = Rng::new(seed);
        let mut directory = Directory::default();
        let mut model = BTreeMap::from([(0, None)]);
        for bits in 0..leaves {
            let first = 1 + rng.below((1 << HASH_BITS) - 1);
            if model.insert(first, None).is_none() {
                directory.split(first);
            }
            let (first, address) =
                model.range_mut(..=rng.below(1 << HASH_BITS)).next_back().unwrap();
            *address = Some(Address::from_bits(bits));
            directory.point(*first, *address);
        }
        (directory, model)
    }

    #[test]
    fn a_directory_is_a_sorted_map_of_first_hashes() {
        for seed in 0..6 {
            let (directory, model) = grown(seed, 1_500);
            let all = places(&model);
            assert_eq!(directory.iter().collect::<Vec<_>>(), all);
            assert_eq!(directory.len(), all.len());
            let mut rng = Rng::new(seed + 100);
            for _ in 0..3_000 {
                let hash = rng.below(1 << HASH_BITS);
                let leaf = all.iter().rev().find(|place| place.first <= hash).copied();
                assert_eq!(Some(directory.leaf_of(hash)), leaf, "of {hash:x}");
                let next = all.iter().find(|place| place.first > hash).copied();
                assert_eq!(directory.next(hash), next, "after {hash:x}");
            }
        }
    }

    #[test]
    fn a_directory_is_made_again_of_its_leaves_and_of_no_others() {
        let (directory, model) = grown(9, 1_000);
        let mut all = places(&model);
        let again = Directory::of(&all).unwrap();
        assert_eq!(again.iter().collect::<Vec<_>>(), all);
        assert_eq!(again.leaf_of(u64::MAX >> 24), directory.leaf_of(u64::MAX >> 24));
        assert!(Directory::of(&[]).is_none(), "without a leaf");
        assert!(Directory::of(&all[1..]).is_none(), "without its beginning");
        all.swap(3, 4);
        assert!(Directory::of(&all).is_none(), "in disorder");
    }

    #[test]
    fn a_directory_takes_no_more_than_is_kept_for_it() {
        for leaves in [1, 10, 300, 5_000] {
            let (directory, model) = grown(leaves, leaves - 1);
            assert_eq!(model.len() as u64, leaves);
            assert!(directory.bytes() <= Directory::bytes_max(leaves), "{leaves}");
        }
    }
}
