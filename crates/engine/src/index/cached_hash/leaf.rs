//! A leaf: the entries of a range of hashes, sorted, 11 bytes each in memory as on flash.

use crate::format::address::Address;
use crate::key_space::{KeySpaceId, TableId};
use base::Buf;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bits of a key's hash that an entry keeps.
pub(super) const HASH_BITS: u32 = 40;

const HASH_BYTES: usize = 5;
const ADDRESS_BYTES: usize = 6;
/// Bytes of an entry: five of the hash, six of the address, each with its greatest first.
pub(super) const ENTRY_BYTES: usize = HASH_BYTES + ADDRESS_BYTES;

/// Bytes before the entries: a mark, the table, the first hash of the range, how many there are.
pub(super) const HEAD_BYTES: usize = 16;
const MARK: u8 = 0x4C;

/// Entries that memory is taken for at a time.
const ENTRIES_AHEAD: usize = 32;

/// Most bytes of a leaf on flash. With its record's header and the page's own it fits 4 KiB without
/// a spare area, and four of them fit 16 KiB.
pub(super) const LEAF_BYTES_MAX: usize = 4_000;

/// Returns the bits of `hash` that an entry keeps: the upper ones, so that their order is that of
/// hashes.
#[inline]
pub(super) const fn kept(hash: u64) -> u64 {
    hash >> (64 - HASH_BITS)
}

/// A hash and an address, in the bytes that flash has. Their order is that of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry([u8; ENTRY_BYTES]);

impl Entry {
    pub(super) fn new(hash: u64, address: Address) -> Self {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..HASH_BYTES].copy_from_slice(&hash.to_be_bytes()[8 - HASH_BYTES..]);
        bytes[HASH_BYTES..].copy_from_slice(&address.to_bits().to_be_bytes()[8 - ADDRESS_BYTES..]);
        Self(bytes)
    }

    /// Returns the entry that [`Self::bytes`] gave.
    pub(super) const fn of_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        Self(bytes)
    }

    /// As flash has it.
    pub(super) const fn bytes(self) -> [u8; ENTRY_BYTES] {
        self.0
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[8 - HASH_BYTES..].copy_from_slice(&self.0[..HASH_BYTES]);
        u64::from_be_bytes(bytes)
    }

    #[inline]
    pub(super) fn address(self) -> Address {
        let mut bytes = [0; 8];
        bytes[8 - ADDRESS_BYTES..].copy_from_slice(&self.0[HASH_BYTES..]);
        Address::from_bits(u64::from_be_bytes(bytes))
    }
}

/// Which leaf: its table and the first hash of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct LeafId {
    pub(super) table: TableId,
    pub(super) first: u64,
}

impl LeafId {
    /// Returns the name of its record in the log. The leaf's bytes on flash begin with it, but for
    /// the count.
    pub(super) fn name(self) -> [u8; HEAD_BYTES] {
        let mut name = [0; HEAD_BYTES];
        name[0] = MARK;
        name[1..3].copy_from_slice(&self.table.space.0.to_be_bytes());
        name[3..7].copy_from_slice(&self.table.generation.to_be_bytes());
        name[7..12].copy_from_slice(&self.first.to_be_bytes()[8 - HASH_BYTES..]);
        name
    }

    fn named(name: &[u8; HEAD_BYTES]) -> Option<Self> {
        let [MARK, s0, s1, g0, g1, g2, g3, f0, f1, f2, f3, f4, ..] = *name else { return None };
        let table = TableId {
            space: KeySpaceId(u16::from_be_bytes([s0, s1])),
            generation: u32::from_be_bytes([g0, g1, g2, g3]),
        };
        Some(Self { table, first: u64::from_be_bytes([0, 0, 0, f0, f1, f2, f3, f4]) })
    }
}

/// The entries of a leaf. Entries of equal hash are in the order of insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaf(Vec<Entry>);

impl Leaf {
    /// The most entries of a leaf on flash.
    pub(super) const ENTRIES_MAX: usize = (LEAF_BYTES_MAX - HEAD_BYTES) / ENTRY_BYTES;

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the entries whose hash is at least `hash`.
    pub(super) fn from(&self, hash: u64) -> &[Entry] {
        &self.0[self.0.partition_point(|entry| entry.hash() < hash)..]
    }

    /// Returns the addresses of the entries whose hash is `hash`.
    #[inline]
    pub(super) fn of(&self, hash: u64) -> impl Iterator<Item = Address> {
        self.0[self.run(hash)].iter().map(|entry| entry.address())
    }

    #[inline]
    fn run(&self, hash: u64) -> Range<usize> {
        let start = self.0.partition_point(|entry| entry.hash() < hash);
        let len = self.0[start..].iter().take_while(|entry| entry.hash() == hash).count();
        start..start + len
    }

    fn position(&self, hash: u64, address: Address) -> Option<usize> {
        self.run(hash).find(|at| self.0[*at].address() == address)
    }

    pub(super) fn insert(&mut self, hash: u64, address: Address) {
        let at = self.run(hash).end;
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(ENTRIES_AHEAD);
        }
        self.0.insert(at, Entry::new(hash, address));
    }

    /// Points the entry at `old` to `new`; false when there is none.
    pub(super) fn replace(&mut self, hash: u64, old: Address, new: Address) -> bool {
        let at = self.position(hash, old);
        if let Some(at) = at {
            self.0[at] = Entry::new(hash, new);
        }
        at.is_some()
    }

    /// Removes the entry at `old`; false when there is none.
    pub(super) fn remove(&mut self, hash: u64, old: Address) -> bool {
        let at = self.position(hash, old);
        if let Some(at) = at {
            self.0.remove(at);
        }
        at.is_some()
    }

    /// Returns the leaf without the entries whose addresses are not among those that `keeps`.
    pub(super) fn retaining(mut self, keeps: impl Fn(Address) -> bool) -> Self {
        self.0.retain(|entry| keeps(entry.address()));
        self
    }

    /// Takes the upper half away, and returns it with its first hash. Entries of one hash stay
    /// together; `None` when all are.
    pub(super) fn split(&mut self) -> Option<(u64, Self)> {
        let middle = self.0.get(self.0.len() / 2)?.hash();
        let run = self.run(middle);
        // The end of the run nearer to the middle that leaves something on both sides.
        let half = self.0.len() / 2;
        let is_inner = |at: &usize| (1..self.0.len()).contains(at);
        let ends = [run.start, run.end];
        let at = ends.into_iter().filter(is_inner).min_by_key(|at| at.abs_diff(half))?;
        let upper = self.0.split_off(at);
        Some((upper[0].hash(), Self(upper)))
    }

    /// Returns the leaf as flash has it. Its record has a checksum.
    pub(super) fn encode(&self, id: LeafId) -> Buf {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.0.len() * ENTRY_BYTES);
        bytes.extend_from_slice(&id.name()[..HEAD_BYTES - 4]);
        let count = u32::try_from(self.0.len()).expect("a leaf has few entries");
        bytes.extend_from_slice(&count.to_be_bytes());
        for entry in &self.0 {
            bytes.extend_from_slice(&entry.bytes());
        }
        Buf::copy_from(&bytes)
    }

    /// Returns the leaf that `bytes` are, if they are leaf `id` and whole.
    pub(super) fn decode(id: LeafId, bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let [.., c0, c1, c2, c3] = *head;
        let count = usize::try_from(u32::from_be_bytes([c0, c1, c2, c3])).ok()?;
        let (entries, []) = rest.as_chunks::<ENTRY_BYTES>() else { return None };
        if LeafId::named(head) != Some(id) || entries.len() != count {
            return None;
        }
        let leaf = Self(entries.iter().copied().map(Entry::of_bytes).collect());
        let in_range = leaf.0.first().is_none_or(|entry| entry.hash() >= id.first);
        (in_range && leaf.0.is_sorted_by_key(|entry| entry.hash())).then_some(leaf)
    }
}

impl FromIterator<(u64, Address)> for Leaf {
    fn from_iter<T: IntoIterator<Item = (u64, Address)>>(entries: T) -> Self {
        let mut all: Vec<Entry> =
            entries.into_iter().map(|(hash, address)| Entry::new(hash, address)).collect();
        all.sort_by_key(|entry| entry.hash());
        Self(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::BTreeSet;

    const TABLE: TableId = TableId { space: KeySpaceId(7), generation: 3 };

    fn address(bits: u64) -> Address {
        Address::from_bits(bits)
    }

    fn entries(leaf: &Leaf) -> BTreeSet<(u64, u64)> {
        leaf.from(0).iter().map(|entry| (entry.hash(), entry.address().to_bits())).collect()
    }

    /// Few distinct hashes, so that several entries have one.
    fn random(seed: u64) -> (Leaf, BTreeSet<(u64, u64)>) {
        let mut rng = Rng::new(seed);
        let (mut leaf, mut model) = (Leaf::default(), BTreeSet::new());
        for bits in 0..300 {
            let hash = rng.below(40) << (HASH_BITS - 6);
            match rng.below(4) {
                0 | 1 => {
                    leaf.insert(hash, address(bits));
                    model.insert((hash, bits));
                }
                2 => {
                    let old = rng.below(bits + 1);
                    let known = model.remove(&(hash, old));
                    assert_eq!(leaf.replace(hash, address(old), address(bits)), known);
                    if known {
                        model.insert((hash, bits));
                    }
                }
                _ => {
                    let old = rng.below(bits + 1);
                    assert_eq!(leaf.remove(hash, address(old)), model.remove(&(hash, old)));
                }
            }
            assert!(leaf.from(0).is_sorted_by_key(|entry| entry.hash()), "in the order of hashes");
        }
        (leaf, model)
    }

    #[test]
    fn a_leaf_holds_what_a_set_of_entries_holds() {
        for seed in 0..200 {
            let (leaf, model) = random(seed);
            assert_eq!(entries(&leaf), model);
            for hash in (0..40).map(|n| n << (HASH_BITS - 6)) {
                let found: BTreeSet<_> = leaf.of(hash).map(|at| (hash, at.to_bits())).collect();
                let expected = model.range((hash, 0)..=(hash, u64::MAX)).copied().collect();
                assert_eq!(found, expected, "of one hash");
                let after: Vec<_> = leaf.from(hash).iter().map(|entry| entry.hash()).collect();
                let expected: Vec<_> = model.range((hash, 0)..).map(|entry| entry.0).collect();
                assert_eq!(after, expected, "from a hash on");
            }
        }
    }

    #[test]
    fn the_halves_of_a_leaf_are_the_whole_and_share_no_hash() {
        for seed in 0..200 {
            let (mut lower, model) = random(seed);
            let whole = lower.clone();
            let Some((first, upper)) = lower.split() else {
                assert!(model.first().map(|e| e.0) == model.last().map(|e| e.0));
                continue;
            };
            assert!(entries(&lower).iter().all(|entry| entry.0 < first));
            assert_eq!(entries(&upper).first().map(|entry| entry.0), Some(first));
            assert_eq!(&entries(&lower) | &entries(&upper), model);
            assert_eq!(lower.len() + upper.len(), whole.len());
        }
    }

    #[test]
    fn entries_of_one_hash_are_not_split() {
        let mut leaf: Leaf = (0..9).map(|bits| (5, address(bits))).collect();
        assert_eq!(leaf.split(), None);
        leaf.insert(6, address(100));
        let (first, upper) = leaf.split().unwrap();
        assert_eq!((first, upper.len(), leaf.len()), (6, 1, 9));
        let mut leaf: Leaf =
            [(1, address(1))].into_iter().chain((2..9).map(|n| (5, address(n)))).collect();
        let (first, upper) = leaf.split().unwrap();
        assert_eq!((first, upper.len(), leaf.len()), (5, 7, 1));
    }

    #[test]
    fn a_leaf_on_flash_is_its_name_its_count_and_its_entries() {
        let id = LeafId { table: TABLE, first: 0x01_0203_0405 };
        let leaf: Leaf = [(0x01_0203_0406, address(0xA1A2_A3A4_A5A6))].into_iter().collect();
        let bytes = leaf.encode(id);
        let expected = [
            0x4C, 0, 7, 0, 0, 0, 3, 1, 2, 3, 4, 5, 0, 0, 0, 1, // the head
            1, 2, 3, 4, 6, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6,
        ];
        assert_eq!(bytes.bytes().unwrap(), expected);
    }

    #[test]
    fn a_leaf_comes_back_from_flash_and_nothing_else_does() {
        let id = LeafId { table: TABLE, first: 0 };
        for seed in 0..50 {
            let (leaf, _) = random(seed);
            let bytes = leaf.encode(id).bytes().unwrap().to_vec();
            assert_eq!(Leaf::decode(id, &bytes), Some(leaf));
            let next = LeafId { first: 1, ..id };
            assert_eq!(Leaf::decode(next, &bytes), None, "another leaf");
            assert_eq!(Leaf::decode(id, &bytes[..bytes.len() - 1]), None, "cut off");
            assert_eq!(Leaf::decode(id, &bytes[..15]), None, "cut off in its head");
            let more = [&bytes[..], &[0; ENTRY_BYTES]].concat();
            assert_eq!(Leaf::decode(id, &more), None, "an entry too many");
        }
        let wrong_order = [&id.name()[..12], &[0, 0, 0, 2], &[9; 11], &[8; 11]].concat();
        assert_eq!(Leaf::decode(id, &wrong_order), None, "not sorted");
        let below = LeafId { first: 9 << 35, ..id };
        let bytes = [&below.name()[..12], &[0, 0, 0, 1], &[8; 11]].concat();
        assert_eq!(Leaf::decode(below, &bytes), None, "an entry below the range");
    }

    #[test]
    fn the_longest_leaf_fits_where_it_has_to() {
        let headers = crate::format::record::header_len(HEAD_BYTES + 8, None)
            + crate::format::layout::PROLOGUE_BYTES;
        assert!(LEAF_BYTES_MAX + headers <= 4_096);
        let full: Leaf = (0..Leaf::ENTRIES_MAX as u64).map(|n| (n, address(n))).collect();
        let bytes = full.encode(LeafId { table: TABLE, first: 0 }).len() as usize;
        assert!((LEAF_BYTES_MAX - ENTRY_BYTES..=LEAF_BYTES_MAX).contains(&bytes), "{bytes}");
    }
}
