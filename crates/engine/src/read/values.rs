//! Values in memory, by their keys: what was lately written or read need not be read.
//!
//! An entry says where the record is that it was made of, and is used only by a look-up of that
//! address: the index says which record of a key is the newest. An extent that is filled anew has
//! another life, and what was noted of its records before is worth nothing.

use crate::format::address::Address;
use crate::format::record::{Header, Sequence};
use crate::key_space::TableId;
use base::checksum::hash64;
use base::{Buf, Divisor, Key, mix};
use clock::UnixMillis;
use media::{ExtentId, Shape};
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0 ^ hash64(bytes));
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

#[derive(Debug)]
struct Kept {
    /// By the hash of table and key: of two keys that have one, one is known.
    entries: Entries,
    hits: u64,
    misses: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Values {
    kept: Option<Mutex<Kept>>,
    /// How often each extent has begun to be filled.
    lives: Vec<AtomicU32>,
    pages_per_extent: Divisor,
}

fn slot(table: TableId, key: &[u8]) -> u64 {
    let table = u64::from(table.generation) << 32 | u64::from(table.space.0);
    mix(hash64(key) ^ mix(table))
}

impl Values {
    /// At most so many bytes, of records on a medium of this shape; with 0 nothing is kept.
    pub(crate) fn new(bytes: u64, shape: &Shape) -> Self {
        let items = usize::try_from(bytes / VALUE_BYTES).expect("it is memory of this machine");
        let entries = || {
            let hasher = BuildHasherDefault::default();
            Cache::with(items.max(1), bytes, Bytes, hasher, DefaultLifecycle::default())
        };
        let kept = || Mutex::new(Kept { entries: entries(), hits: 0, misses: 0 });
        let kept = (bytes > 0).then(kept);
        let extents = if kept.is_some() { shape.extents } else { 0 };
        let lives = (0..extents).map(|_| AtomicU32::new(0)).collect();
        let pages_per_extent = Divisor::new(shape.pages_per_extent.into());
        Self { kept, lives, pages_per_extent }
    }

    /// Whether any is kept.
    pub(crate) const fn are_kept(&self) -> bool {
        self.kept.is_some()
    }

    fn kept(&self) -> Option<MutexGuard<'_, Kept>> {
        let kept = self.kept.as_ref()?;
        Some(kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// `extent` is filled from its beginning.
    pub(crate) fn begin_life(&self, extent: ExtentId) {
        if let Some(life) = self.lives.get(extent.0 as usize) {
            life.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn place(&self, address: Address) -> Place {
        let (extent, _) = self.pages_per_extent.split(address.page().0.into());
        let extent = usize::try_from(extent).expect("it fits the page's number");
        let life = self.lives[extent].load(Ordering::Relaxed);
        Place { address, life }
    }

    /// Notes the value of the record at `address`, which is the newest of its key. Without a value,
    /// forgets the one before it.
    pub(crate) fn note(&self, address: Address, header: &Header<'_>, value: Option<&Buf>) {
        let Some(mut kept) = self.kept() else { return };
        let slot = slot(header.table, header.key);
        match value.and_then(|value| self.cached(address, header, value)) {
            Some(cached) => kept.entries.insert(slot, cached),
            None => drop(kept.entries.remove(&slot)),
        }
    }

    /// The same of a record that was read, unless a newer one of its key has come meanwhile.
    pub(crate) fn note_read(&self, address: Address, header: &Header<'_>, value: &Buf) {
        let Some(mut kept) = self.kept() else { return };
        let slot = slot(header.table, header.key);
        let known = kept.entries.peek(&slot);
        if known.is_none_or(|cached| cached.known.sequence <= header.sequence)
            && let Some(cached) = self.cached(address, header, value)
        {
            kept.entries.insert(slot, cached);
        }
    }

    fn cached(&self, address: Address, header: &Header<'_>, value: &Buf) -> Option<Cached> {
        let (key, place) = (Key::new(header.key).ok()?, self.place(address));
        let (expires, sequence) = (header.expires, header.sequence);
        let known = CachedValue { value: alone(value)?, expires, sequence };
        Some(Cached { table: header.table, key, place, known })
    }

    /// What the record of `key` at `address` holds, if that is known.
    pub(crate) fn get(&self, table: TableId, key: &Key, address: Address) -> Option<CachedValue> {
        let cached = self.get_known(table, key, address);
        if cached.is_none()
            && let Some(mut kept) = self.kept()
        {
            kept.misses += 1;
        }
        cached
    }

    /// The same, and where it is not known nothing is counted.
    pub(crate) fn get_known(
        &self,
        table: TableId,
        key: &Key,
        address: Address,
    ) -> Option<CachedValue> {
        let mut kept = self.kept()?;
        let cached = kept.entries.get(&slot(table, key.as_bytes()))?;
        let may_be_it = cached.place.address == address && cached.is_of(table, key);
        let is_it = may_be_it && cached.place == self.place(address);
        let known = is_it.then(|| cached.known.clone())?;
        kept.hits += 1;
        Some(known)
    }

    /// The newest record of a key is at another address from here on.
    pub(crate) fn moved(&self, table: TableId, key: &Key, from: Address, to: Address) {
        let Some(mut kept) = self.kept() else { return };
        let (from, to) = (self.place(from), self.place(to));
        if let Some(mut known) = kept.entries.peek_mut(&slot(table, key.as_bytes()))
            && known.place == from
            && known.is_of(table, key)
        {
            known.place = to;
        }
    }

    /// The newest record of a key is none that is known.
    pub(crate) fn forget(&self, table: TableId, key: &[u8]) {
        if let Some(mut kept) = self.kept() {
            kept.entries.remove(&slot(table, key));
        }
    }

    /// Forgets the values of `table`, which is dropped.
    pub(crate) fn forget_table(&self, table: TableId) {
        if let Some(mut kept) = self.kept() {
            kept.entries.retain(|_, known| known.table != table);
        }
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let counts = |kept: MutexGuard<'_, Kept>| CacheCounts {
            hits: kept.hits,
            misses: kept.misses,
            bytes: kept.entries.weight(),
        };
        self.kept().map(counts).unwrap_or_default()
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
        Values::new(bytes, &shape)
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

    fn value(values: &Values, key: &[u8], number: u32) -> Option<Vec<u8>> {
        let key = Key::new(key).expect("it is short");
        let cached = values.get(TableId::STORE, &key, at(number))?;
        Some(cached.value.bytes().expect("it has bytes").to_vec())
    }

    #[test]
    fn a_key_has_the_value_of_the_record_that_it_is_asked_for_at() {
        let values = values(1 << 20);
        let value_of = |key: &[u8], number| value(&values, key, number);
        let note = |key, number, value: Option<&[u8]>| {
            let value = value.map(Buf::copy_from);
            values.note(at(number), &header(key, number.into()), value.as_ref());
        };
        note(b"k", 1, Some(b"a"));
        note(b"l", 2, Some(b"b"));
        note(b"k", 3, Some(b"c"));
        assert_eq!((value_of(b"k", 1), value_of(b"k", 3)), (None, Some(b"c".to_vec())));
        assert_eq!((value_of(b"k", 2), value_of(b"l", 3)), (None, None), "of the other key");
        let other = TableId { generation: 1, ..TableId::STORE };
        assert!(values.get(other, &Key::new(b"k").unwrap(), at(3)).is_none(), "of another table");

        let key = Key::new(b"l").unwrap();
        values.moved(TableId::STORE, &key, at(2), at(4));
        values.moved(TableId::STORE, &key, at(2), at(5));
        assert_eq!((value_of(b"l", 2), value_of(b"l", 5)), (None, None));
        assert_eq!(value_of(b"l", 4), Some(b"b".to_vec()));

        note(b"m", 7, Some(b"d"));
        values.forget_table(other);
        assert_eq!(value_of(b"m", 7), Some(b"d".to_vec()));
        note(b"k", 6, None);
        values.forget(TableId::STORE, b"l");
        assert_eq!((value_of(b"k", 3), value_of(b"l", 4)), (None, None));
        let counts = values.counts();
        assert_eq!((counts.hits, counts.misses), (3, 8));
        assert!(counts.bytes > 0, "that of one key");
        values.forget_table(TableId::STORE);
        assert_eq!(values.counts().bytes, 0);
    }

    #[test]
    fn a_record_of_an_extent_that_was_filled_anew_is_not_the_one_before() {
        let values = values(1 << 20);
        let extent = ExtentId(1);
        values.begin_life(extent);
        values.note(at(PAGES), &header(b"k", 1), Some(&Buf::copy_from(b"a")));
        values.note(at(0), &header(b"l", 2), Some(&Buf::copy_from(b"b")));
        values.begin_life(extent);
        assert_eq!(value(&values, b"k", PAGES), None);
        assert_eq!(value(&values, b"l", 0), Some(b"b".to_vec()));
    }

    #[test]
    fn what_was_read_does_not_take_the_place_of_what_was_written_meanwhile() {
        let values = values(1 << 20);
        values.note(at(2), &header(b"k", 2), Some(&Buf::copy_from(b"new")));
        values.note_read(at(1), &header(b"k", 1), &Buf::copy_from(b"old"));
        assert_eq!(value(&values, b"k", 2), Some(b"new".to_vec()));
        values.note_read(at(3), &header(b"k", 3), &Buf::copy_from(b"newer"));
        assert_eq!(value(&values, b"k", 3), Some(b"newer".to_vec()));
    }

    #[test]
    fn values_take_no_more_memory_than_they_may() {
        const BYTES: u64 = 100_000;
        let values = values(BYTES);
        let page = Buf::copy_from(&[7; 4_096]);
        let key = |number: u32| number.to_le_bytes();
        for number in 0..10_000 {
            let part = page.slice(0..64);
            values.note(at(number), &header(&key(number), 1), Some(&part));
        }
        let counts = values.counts();
        assert!(counts.bytes <= BYTES && counts.bytes > BYTES / 2, "{counts:?}");
        let is_kept = |number: &u32| value(&values, &key(*number), *number).is_some();
        let kept = (0..10_000).filter(is_kept).count();
        assert!(kept as u64 > BYTES / 2 / 200, "{kept} values do not keep their pages");
        let none = self::values(0);
        none.note(at(0), &header(b"key", 1), Some(&page));
        assert_eq!(value(&none, b"key", 0), None);
    }
}
