//! Values of a lane's keys in memory: what was lately written or read need not be read.
//!
//! An entry says where the record is that it was made of, and is used only by a look-up of that
//! address: the index says which record of a key is the newest. An extent that is filled anew has
//! another life, and what was noted of its records before is worth nothing.

use crate::format::address::Address;
use crate::format::record::{Header, Sequence};
use crate::hashed_key::HashedKey;
use crate::key_space::TableId;
use base::{Buf, Divisor, Key, mix};
use clock::UnixMillis;
use media::{ExtentId, Shape};
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that an entry takes beside its value.
const ENTRY_BYTES: usize = 128;

/// What a value is expected to have, to know how many there may be.
const VALUE_BYTES: u64 = 1 << 10;

/// A value with what its record's header says.
#[derive(Clone, Debug)]
pub(crate) struct CachedValue {
    pub(crate) value: Buf,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) sequence: Sequence,
}

/// A value of the cache, and which record it is of.
#[derive(Clone, Debug)]
struct Cached {
    table: TableId,
    key: Key,
    place: Place,
    known: CachedValue,
}

impl Cached {
    fn is_of(&self, table: TableId, key: &Key) -> bool {
        (self.table, &self.key) == (table, key)
    }
}

/// Where a record is, in which life of its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    address: Address,
    life: u32,
}

/// What a cache of values has done, and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Values that were not read, since they were known.
    pub hits: u64,
    /// Values that were not known.
    pub misses: u64,
    /// Memory that values take.
    pub bytes: u64,
}

/// A hash already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        panic!("a slot is a number");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// By the memory that a value keeps in use.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<u64, Cached> for Bytes {
    fn weight(&self, _: &u64, cached: &Cached) -> u64 {
        (cached.known.value.held_bytes() + ENTRY_BYTES) as u64
    }
}

type Entries = Cache<u64, Cached, Bytes, BuildHasherDefault<Hashed>, DefaultLifecycle<u64, Cached>>;

/// How often each extent has begun to be filled.
#[derive(Debug)]
pub(crate) struct Lives {
    lives: Vec<AtomicU32>,
    pages_per_extent: Divisor,
}

impl Lives {
    /// Counts for the extents of a medium of this shape.
    pub(crate) fn new(shape: &Shape) -> Self {
        let lives = (0..shape.extents).map(|_| AtomicU32::new(0)).collect();
        Self { lives, pages_per_extent: Divisor::new(shape.pages_per_extent.into()) }
    }

    /// Notes that the log begins to fill `extent`.
    pub(crate) fn begin(&self, extent: ExtentId) {
        self.lives[extent.0 as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn place(&self, address: Address) -> Place {
        let (extent, _) = self.pages_per_extent.split(address.page().0.into());
        let extent = usize::try_from(extent).expect("extents are few");
        let life = self.lives[extent].load(Ordering::Relaxed);
        Place { address, life }
    }
}

fn slot(table: TableId, hash: u64) -> u64 {
    let table = u64::from(table.generation) << 32 | u64::from(table.space.0);
    mix(hash ^ mix(table))
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Values {
    /// By the hash of table and key: of two keys that have one, one is known.
    entries: Entries,
    lives: Arc<Lives>,
    hits: u64,
    misses: u64,
}

impl Values {
    /// Makes a cache of at most `bytes`.
    pub(crate) fn new(bytes: u64, lives: Arc<Lives>) -> Self {
        let items = usize::try_from(bytes / VALUE_BYTES).expect("it is memory of this machine");
        let hasher = BuildHasherDefault::default();
        let entries = Cache::with(items.max(1), bytes, Bytes, hasher, DefaultLifecycle::default());
        Self { entries, lives, hits: 0, misses: 0 }
    }

    /// Notes the value of the record at `address`, which is the newest of its key. Without a value,
    /// forgets the one before it.
    pub(crate) fn note(
        &mut self,
        key: HashedKey<'_>,
        address: Address,
        header: &Header<'_>,
        value: Option<&Buf>,
    ) {
        let slot = slot(header.table, key.hash);
        match value.and_then(|value| self.cached(key.key, address, header, value)) {
            Some(cached) => self.entries.insert(slot, cached),
            None => drop(self.entries.remove(&slot)),
        }
    }

    /// As [`Self::note`], for a record that was read, unless a newer one of its key is known.
    pub(crate) fn note_read(
        &mut self,
        key: HashedKey<'_>,
        address: Address,
        header: &Header<'_>,
        value: &Buf,
    ) {
        let slot = slot(header.table, key.hash);
        let known = self.entries.peek(&slot);
        if known.is_none_or(|cached| cached.known.sequence <= header.sequence)
            && let Some(cached) = self.cached(key.key, address, header, value)
        {
            self.entries.insert(slot, cached);
        }
    }

    fn cached(
        &self,
        key: &Key,
        address: Address,
        header: &Header<'_>,
        value: &Buf,
    ) -> Option<Cached> {
        let (expires, sequence) = (header.expires, header.sequence);
        let known = CachedValue { value: alone(value)?, expires, sequence };
        let place = self.lives.place(address);
        Some(Cached { table: header.table, key: key.clone(), place, known })
    }

    /// Counts a value that was not known.
    pub(crate) const fn count_miss(&mut self) {
        self.misses += 1;
    }

    /// Returns what the record of `key` at `address` holds, if that is known.
    pub(crate) fn get(
        &mut self,
        table: TableId,
        key: HashedKey<'_>,
        address: Address,
    ) -> Option<CachedValue> {
        let cached = self.entries.get(&slot(table, key.hash))?;
        let may_be_it = cached.place.address == address && cached.is_of(table, key.key);
        let is_it = may_be_it && cached.place == self.lives.place(address);
        let known = is_it.then(|| cached.known.clone())?;
        self.hits += 1;
        Some(known)
    }

    /// Notes that cleaning has moved the newest record of a key.
    pub(crate) fn moved(&mut self, table: TableId, key: HashedKey<'_>, from: Address, to: Address) {
        let (from, to) = (self.lives.place(from), self.lives.place(to));
        if let Some(mut known) = self.entries.peek_mut(&slot(table, key.hash))
            && known.place == from
            && known.is_of(table, key.key)
        {
            known.place = to;
        }
    }

    /// Forgets the value of keys with this hash.
    pub(crate) fn forget(&mut self, table: TableId, hash: u64) {
        self.entries.remove(&slot(table, hash));
    }

    /// Forgets the values of `table`, which is dropped.
    pub(crate) fn forget_table(&mut self, table: TableId) {
        self.entries.retain(|_, known| known.table != table);
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        CacheCounts { hits: self.hits, misses: self.misses, bytes: self.entries.weight() }
    }
}

impl AddAssign for CacheCounts {
    fn add_assign(&mut self, more: Self) {
        self.hits += more.hits;
        self.misses += more.misses;
        self.bytes += more.bytes;
    }
}

/// A value in memory of little more than its own; `None` of one whose bytes are not kept.
fn alone(value: &Buf) -> Option<Buf> {
    let bytes = value.bytes()?;
    let is_alone = value.held_bytes() <= 2 * bytes.len() + ENTRY_BYTES;
    Some(if is_alone { value.clone() } else { Buf::copy_from(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::address::PageNumber;
    use crate::format::record::{InBatch, Kind};

    const PAGES: u32 = 16;

    fn values(bytes: u64) -> Values {
        let (page_bytes, spare_bytes, frames) = (4_096, 0, None);
        let (pages_per_extent, extents, parallelism) = (PAGES, 1_000, 1);
        let shape =
            Shape { page_bytes, spare_bytes, pages_per_extent, extents, parallelism, frames };
        Values::new(bytes, Arc::new(Lives::new(&shape)))
    }

    fn header(key: &[u8], sequence: u64) -> Header<'_> {
        Header {
            sequence: Sequence(sequence),
            kind: Kind::Value,
            table: TableId::STORE,
            value_len: 1,
            value_crc: 0,
            value_offset: 0,
            expires: None,
            batch: InBatch::default(),
            key,
        }
    }

    /// A record of page `number`.
    fn at(number: u32) -> Address {
        Address::new(PageNumber(number), 0)
    }

    fn key(bytes: &[u8]) -> Key {
        Key::new(bytes).expect("it is short")
    }

    fn note(values: &mut Values, key: &[u8], number: u32, value: Option<&[u8]>) {
        let value = value.map(Buf::copy_from);
        let header = header(key, number.into());
        values.note((&self::key(key)).into(), at(number), &header, value.as_ref());
    }

    fn value(values: &mut Values, key: &[u8], number: u32) -> Option<Vec<u8>> {
        let cached = values.get(TableId::STORE, (&self::key(key)).into(), at(number))?;
        Some(cached.value.bytes().expect("it has bytes").to_vec())
    }

    #[test]
    fn a_key_has_the_value_of_the_record_that_it_is_asked_for_at() {
        let values = &mut values(1 << 20);
        note(values, b"k", 1, Some(b"a"));
        note(values, b"l", 2, Some(b"b"));
        note(values, b"k", 3, Some(b"c"));
        let of_k = (value(values, b"k", 1), value(values, b"k", 3));
        assert_eq!(of_k, (None, Some(b"c".to_vec())));
        let of_other = (value(values, b"k", 2), value(values, b"l", 3));
        assert_eq!(of_other, (None, None), "of the other key");
        let other = TableId { generation: 1, ..TableId::STORE };
        assert!(values.get(other, (&key(b"k")).into(), at(3)).is_none(), "of another table");

        let l = key(b"l");
        values.moved(TableId::STORE, (&l).into(), at(2), at(4));
        values.moved(TableId::STORE, (&l).into(), at(2), at(5));
        assert_eq!((value(values, b"l", 2), value(values, b"l", 5)), (None, None));
        assert_eq!(value(values, b"l", 4), Some(b"b".to_vec()));

        note(values, b"m", 7, Some(b"d"));
        values.forget_table(other);
        assert_eq!(value(values, b"m", 7), Some(b"d".to_vec()));
        note(values, b"k", 6, None);
        values.forget(TableId::STORE, l.hash());
        assert_eq!((value(values, b"k", 3), value(values, b"l", 4)), (None, None));
        values.count_miss();
        let counts = values.counts();
        assert_eq!((counts.hits, counts.misses), (3, 1));
        assert!(counts.bytes > 0, "that of one key");
        values.forget_table(TableId::STORE);
        assert_eq!(values.counts().bytes, 0);
    }

    #[test]
    fn a_record_of_an_extent_that_was_filled_anew_is_not_the_one_before() {
        let values = &mut values(1 << 20);
        let extent = ExtentId(1);
        values.lives.begin(extent);
        note(values, b"k", PAGES, Some(b"a"));
        note(values, b"l", 0, Some(b"b"));
        values.lives.begin(extent);
        assert_eq!(value(values, b"k", PAGES), None);
        assert_eq!(value(values, b"l", 0), Some(b"b".to_vec()));
    }

    #[test]
    fn a_value_that_was_read_does_not_replace_one_that_was_written_during_the_read() {
        let values = &mut values(1 << 20);
        let k = key(b"k");
        note(values, b"k", 2, Some(b"new"));
        let (old, newer) = (Buf::copy_from(b"old"), Buf::copy_from(b"newer"));
        values.note_read((&k).into(), at(1), &header(b"k", 1), &old);
        assert_eq!(value(values, b"k", 2), Some(b"new".to_vec()));
        values.note_read((&k).into(), at(3), &header(b"k", 3), &newer);
        assert_eq!(value(values, b"k", 3), Some(b"newer".to_vec()));
    }

    #[test]
    fn values_take_no_more_memory_than_they_may() {
        const BYTES: u64 = 100_000;
        let values = &mut values(BYTES);
        let page = Buf::copy_from(&[7; 4_096]);
        let name = |number: u32| number.to_le_bytes();
        for number in 0..10_000 {
            let (bytes, part) = (name(number), page.slice(0..64));
            values.note((&key(&bytes)).into(), at(number), &header(&bytes, 1), Some(&part));
        }
        let counts = values.counts();
        assert!(counts.bytes <= BYTES && counts.bytes > BYTES / 2, "{counts:?}");
        let kept = (0..10_000).filter(|number| value(values, &name(*number), *number).is_some());
        let kept = kept.count();
        assert!(kept as u64 > BYTES / 2 / 200, "{kept} values do not keep their pages");
    }
}
