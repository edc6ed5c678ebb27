//! Values in memory, by the addresses of their records: what was lately read or written need not be
//! read.
//!
//! As with `headers`, whatever is appended is noted, or what was noted of its address before is
//! forgotten: an extent that was reset is filled anew, and other records get the addresses that
//! were there.

use crate::address::Address;
use crate::record::Header;
use base::{Buf, Key, mix};
use clock::UnixMillis;
use quick_cache::Weighter;
use quick_cache::unsync::{Cache, DefaultLifecycle};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that an entry takes beside its value.
const ENTRY_BYTES: usize = 128;

/// What a value is expected to have, to know how many there may be.
const VALUE_BYTES: u64 = 1 << 10;

/// A value with what its record's header says.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    pub(crate) key: Key,
    pub(crate) value: Buf,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) sequence: crate::record::Sequence,
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

/// Spreads addresses, in the same way each time.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }
}

/// By the memory that a value keeps in use.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<u64, Cached> for Bytes {
    fn weight(&self, _: &u64, cached: &Cached) -> u64 {
        (cached.value.held_bytes() + ENTRY_BYTES) as u64
    }
}

type Entries = Cache<u64, Cached, Bytes, BuildHasherDefault<Mixed>, DefaultLifecycle<u64, Cached>>;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Values(Option<Mutex<Entries>>);

impl Values {
    /// At most so many bytes; with 0 nothing is kept.
    pub(crate) fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / VALUE_BYTES).expect("it is memory of this machine");
        let entries = || {
            let hasher = BuildHasherDefault::default();
            Cache::with(items.max(1), bytes, Bytes, hasher, DefaultLifecycle::default())
        };
        Self((bytes > 0).then(|| Mutex::new(entries())))
    }

    /// Whether any is kept.
    pub(crate) const fn are_kept(&self) -> bool {
        self.0.is_some()
    }

    fn entries(&self) -> Option<MutexGuard<'_, Entries>> {
        let entries = self.0.as_ref()?;
        Some(entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes the value of the record that is at `address` from here on; without one, that it is
    /// another record.
    pub(crate) fn note(&self, address: Address, header: &Header<'_>, value: Option<&Buf>) {
        let Some(mut entries) = self.entries() else { return };
        let cached = value.and_then(|value| {
            let key = Key::new(header.key).ok()?;
            let (expires, sequence) = (header.expires, header.sequence);
            Some(Cached { key, value: alone(value)?, expires, sequence })
        });
        match cached {
            Some(cached) => entries.insert(address.to_bits(), cached),
            None => drop(entries.remove(&address.to_bits())),
        }
    }

    /// What the record at `address` holds, if that is known.
    pub(crate) fn get(&self, address: Address) -> Option<Cached> {
        self.entries()?.get(&address.to_bits()).cloned()
    }

    /// The same, and where it is not known nothing is counted.
    pub(crate) fn get_known(&self, address: Address) -> Option<Cached> {
        let entries = self.entries()?;
        entries.peek(&address.to_bits())?;
        entries.get(&address.to_bits()).cloned()
    }

    /// The record is at another address from here on.
    pub(crate) fn moved(&self, from: Address, to: Address) {
        let Some(mut entries) = self.entries() else { return };
        if let Some((_, cached)) = entries.remove(&from.to_bits()) {
            entries.insert(to.to_bits(), cached);
        }
    }

    /// Nothing points to the record any more.
    pub(crate) fn forget(&self, address: Address) {
        if let Some(mut entries) = self.entries() {
            entries.remove(&address.to_bits());
        }
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let counts = |entries: MutexGuard<'_, Entries>| CacheCounts {
            hits: entries.hits(),
            misses: entries.misses(),
            bytes: entries.weight(),
        };
        self.entries().map(counts).unwrap_or_default()
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
    use crate::key_space::TableId;
    use crate::record::{InBatch, Kind, Sequence};

    fn header(key: &[u8], value_len: u32) -> Header<'_> {
        Header {
            sequence: Sequence(1),
            kind: Kind::Value,
            table: TableId::STORE,
            value_len,
            value_crc: 0,
            value_offset: 0,
            expires: None,
            batch: InBatch::default(),
            key,
        }
    }

    fn value(values: &Values, address: u64) -> Option<Vec<u8>> {
        let cached = values.get(Address::from_bits(address))?;
        Some(cached.value.bytes().expect("it has bytes").to_vec())
    }

    #[test]
    fn an_address_has_the_value_that_was_noted_last() {
        let values = Values::new(1 << 20);
        let at = Address::from_bits;
        let note = |address, value: Option<&[u8]>| {
            let value = value.map(Buf::copy_from);
            values.note(at(address), &header(b"key", 1), value.as_ref());
        };
        note(1, Some(b"a"));
        note(2, Some(b"b"));
        note(1, Some(b"c"));
        assert_eq!(value(&values, 1).as_deref(), Some(&b"c"[..]));
        values.moved(at(2), at(3));
        assert_eq!((value(&values, 2), value(&values, 3)), (None, Some(b"b".to_vec())));
        note(1, None);
        values.forget(at(3));
        assert_eq!((value(&values, 1), value(&values, 3)), (None, None));
        assert_eq!(values.counts().bytes, 0);
    }

    #[test]
    fn values_take_no_more_memory_than_they_may() {
        const BYTES: u64 = 100_000;
        let values = Values::new(BYTES);
        let page = Buf::copy_from(&[7; 4_096]);
        for address in 0..10_000 {
            let part = page.slice(0..64);
            values.note(Address::from_bits(address), &header(b"key", 64), Some(&part));
        }
        let counts = values.counts();
        assert!(counts.bytes <= BYTES && counts.bytes > BYTES / 2, "{counts:?}");
        let kept = (0..10_000).filter(|at| value(&values, *at).is_some()).count();
        assert!(kept as u64 > BYTES / 2 / 200, "{kept} values do not keep their pages");
        let none = Values::new(0);
        none.note(Address::MIN, &header(b"key", 64), Some(&page));
        assert!(none.get(Address::MIN).is_none());
    }
}
