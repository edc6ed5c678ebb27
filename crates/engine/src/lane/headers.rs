//! Headers of the records of a lane in memory, by the hashes of their keys and by their addresses:
//! the key that an index entry stands for is known without a read, where a store looks whether it
//! overwrites.
//!
//! A set has the headers of some hashes. When the index gets an entry, its header is noted in the
//! set of its hash, or what that set knew of its address is forgotten: an extent that was reset is
//! filled anew, and other records get the addresses that were there.

use crate::format::address::Address;
use crate::format::record::{Header, InBatch, Kind, Sequence};
use crate::hashed_key::hash_in_lane;
use crate::key_space::{KeySpaceId, TableId};
use crate::lane::locations::{self, Location};
use clock::UnixMillis;
use std::mem::offset_of;

/// Slots that an address may be in.
const WAYS: usize = 8;

/// What no address is: the slot is free.
const FREE: u64 = u64::MAX;

/// Bytes of a key, and of the date before one that expires: so a slot with its address takes 64.
const TAIL_BYTES: usize = 24;

/// A header, but for the offset of its value.
#[derive(Clone, Copy, Debug)]
struct Known {
    sequence: Sequence,
    value_len: u32,
    value_crc: u32,
    generation: u32,
    space: KeySpaceId,
    kind: Kind,
    batch: InBatch,
    /// The tail begins with a date.
    expires: bool,
    key_len: u8,
    tail: [u8; TAIL_BYTES],
}

impl Known {
    const NOTHING: Self = Self {
        sequence: Sequence(0),
        value_len: 0,
        value_crc: 0,
        generation: 0,
        space: KeySpaceId(0),
        kind: Kind::Lost,
        batch: InBatch { has_before: false, has_after: false },
        expires: false,
        key_len: 0,
        tail: [0; TAIL_BYTES],
    };

    /// `None` if the header is too long.
    fn of(header: &Header<'_>) -> Option<Self> {
        let mut tail = [0; TAIL_BYTES];
        let mut key_start = 0;
        if let (Some(date), Some(front)) = (header.expires, tail.first_chunk_mut()) {
            *front = date.0.to_le_bytes();
            key_start = front.len();
        }
        tail.get_mut(key_start..key_start + header.key.len())?.copy_from_slice(header.key);
        let Header { sequence, kind, table, value_len, value_crc, batch, .. } = *header;
        let (space, generation) = (table.space, table.generation);
        let (expires, key_len) = (header.expires.is_some(), u8::try_from(header.key.len()).ok()?);
        Some(Self {
            sequence,
            value_len,
            value_crc,
            generation,
            space,
            kind,
            batch,
            expires,
            key_len,
            tail,
        })
    }

    fn header(&self) -> Header<'_> {
        let Self { sequence, value_len, value_crc, kind, batch, .. } = *self;
        let date = self.tail.first_chunk().filter(|_| self.expires);
        let expires = date.map(|date| UnixMillis(u64::from_le_bytes(*date)));
        let key = &self.tail[date.map_or(0, |date| date.len())..][..usize::from(self.key_len)];
        let table = TableId { space: self.space, generation: self.generation };
        let value_offset = 0;
        Header { sequence, kind, table, value_len, value_crc, value_offset, expires, batch, key }
    }
}

/// Slots, with their addresses in a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Set {
    addresses: [u64; WAYS],
    headers: [Known; WAYS],
}

// A slot is a line of the cache.
const _: () = assert!(size_of::<Set>() == 64 * WAYS);

impl Set {
    const EMPTY: Self = Self { addresses: [FREE; WAYS], headers: [Known::NOTHING; WAYS] };

    fn position(&self, address: u64) -> Option<usize> {
        self.addresses.iter().position(|other| *other == address)
    }
}

/// Returns the way that the header of a key takes if it is free, and the one from which it drives
/// another out.
#[inline]
const fn way(hash: u64) -> usize {
    hash_in_lane(hash) as usize % WAYS
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Headers {
    sets: Vec<Set>,
}

impl Headers {
    /// Makes a cache of at most `bytes`; with 0 nothing is kept.
    pub(crate) fn new(bytes: u64) -> Self {
        let sets = usize::try_from(bytes).expect("it is memory of this machine") / size_of::<Set>();
        Self { sets: vec![Set::EMPTY; sets] }
    }

    /// Returns how many can be kept.
    pub(crate) const fn room(&self) -> usize {
        self.sets.len() * WAYS
    }

    /// Returns the number of the set of a hash, of which 38 bits count: an index may keep no more.
    /// Sets are in the order of hashes, in which keys are listed.
    #[inline]
    fn number(&self, hash: u64) -> usize {
        locations::home(hash_in_lane(hash), self.sets.len())
    }

    #[inline]
    fn set(&self, hash: u64) -> Option<&Set> {
        self.sets.get(self.number(hash))
    }

    /// Returns where the sets are, which stay there.
    pub(crate) fn location(&self) -> Location<Set> {
        let location = Location::default();
        location.note(&self.sets, self.sets.len());
        location
    }

    /// Prefetches what is known of the records of keys with this hash. `sets` is the location of
    /// those of the key's lane.
    #[inline]
    pub(crate) fn prefetch(sets: &Location<Set>, hash: u64) {
        if let Some(set) = sets.home(hash) {
            let header = offset_of!(Set, headers) + way(hash) * size_of::<Known>();
            locations::prefetch(set.wrapping_add(offset_of!(Set, addresses)));
            locations::prefetch(set.wrapping_add(header));
        }
    }

    /// Notes the header of the record at `address`, to which the index points in place of the one
    /// at `old`, if there was one. A header that is too long is not kept.
    pub(crate) fn note(
        &mut self,
        hash: u64,
        old: Option<Address>,
        address: Address,
        header: &Header<'_>,
    ) {
        let number = self.number(hash);
        let Some(set) = self.sets.get_mut(number) else { return };
        let replaced = old.and_then(|old| set.position(old.to_bits()));
        let known = set.position(address.to_bits());
        for at in replaced.into_iter().chain(known) {
            set.addresses[at] = FREE;
        }
        let Some(header) = Known::of(header) else { return };
        let own = (set.addresses[way(hash)] == FREE).then_some(way(hash));
        let free = own.or(replaced).or_else(|| set.position(FREE));
        let at = free.unwrap_or(way(hash));
        set.addresses[at] = address.to_bits();
        set.headers[at] = header;
    }

    /// Returns what `read` makes of the header of the record at `address`, if that is known. Where
    /// its value begins is not.
    #[inline]
    pub(crate) fn with<T>(
        &self,
        hash: u64,
        address: Address,
        read: impl FnOnce(&Header<'_>) -> T,
    ) -> Option<T> {
        let set = self.set(hash)?;
        Some(read(&set.headers[set.position(address.to_bits())?].header()))
    }

    /// Returns whether the header of the record at `address` is known.
    pub(crate) fn has(&self, hash: u64, address: Address) -> bool {
        self.set(hash).is_some_and(|set| set.position(address.to_bits()).is_some())
    }

    /// Forgets the header of a record that the index no longer points to.
    pub(crate) fn forget(&mut self, hash: u64, address: Address) {
        let number = self.number(hash);
        if let Some(set) = self.sets.get_mut(number)
            && let Some(at) = set.position(address.to_bits())
        {
            set.addresses[at] = FREE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::record::OwnedHeader;
    use base::Key;
    use base::Rng;
    use std::collections::BTreeMap;

    fn header(count: u64, key: &[u8], expires: Option<UnixMillis>) -> OwnedHeader {
        OwnedHeader {
            sequence: Sequence(count),
            kind: Kind::Value,
            table: TableId { space: KeySpaceId(1), generation: 3 },
            value_len: 8_192,
            value_crc: 5,
            expires,
            batch: InBatch::default(),
            key: Key::new(key).unwrap(),
        }
    }

    #[test]
    fn what_is_prefetched_is_the_set_of_the_hash() {
        let headers = Headers::new(16 << 10);
        let location = headers.location();
        for n in 0..100 {
            let hash = base::mix(n);
            let set = headers.set(hash).map(|set| std::ptr::from_ref(set).addr());
            assert_eq!(location.home(hash), set);
        }
        assert_eq!(Headers::new(0).location().home(0), None);
    }

    /// Few sets, so that records drive each other out. An address has another key now and then.
    #[test]
    fn what_is_known_of_a_record_is_what_was_noted_last() {
        let (mut headers, mut rng) = (Headers::new(16 << 10), Rng::new(7));
        let (mut noted, mut hits) = (BTreeMap::new(), 0);
        for count in 0..20_000 {
            let address = Address::from_bits(rng.below(300));
            let known = noted.get(&address).copied();
            match rng.below(4) {
                0 => {
                    let (hash, _) = noted.remove(&address).unwrap_or_default();
                    headers.forget(hash, address);
                    assert!(!headers.has(hash, address));
                }
                1 => {
                    let Some((hash, count)) = known else { continue };
                    let found = headers.with(hash, address, |header| header.sequence.0);
                    assert_eq!(headers.has(hash, address), found.is_some());
                    hits += u64::from(found.is_some());
                    assert!(found.is_none() || found == Some(count));
                }
                _ => {
                    let len = usize::try_from(1 + rng.below(40)).unwrap();
                    let expires = (rng.below(3) == 0).then_some(UnixMillis(count));
                    let header = header(count, &vec![7; len], expires);
                    let (hash, old) = (rng.below(60) << 52, Address::from_bits(rng.below(300)));
                    headers.note(hash, Some(old), address, &header.borrowed());
                    assert!(old == address || !headers.has(hash, old));
                    noted.remove(&address);
                    let is_short = header.len() <= 56;
                    noted.extend(is_short.then_some((address, (hash, count))));
                    let read = |found: &Header<'_>| (found.sequence, Key::new(found.key).unwrap());
                    let found = headers.with(hash, address, read);
                    assert_eq!(found, is_short.then_some((header.sequence, header.key)));
                }
            }
        }
        assert!(hits > 500, "{hits} of some 5,000 were known");
    }

    /// Hashes of one set, and an address that one key's record had before another's.
    #[test]
    fn a_set_knows_one_record_at_an_address() {
        let mut headers = Headers::new(size_of::<Set>() as u64);
        let (long, at) = (header(2, &[8; 40], None), Address::from_bits(9));
        headers.note(1 << 40, None, at, &header(1, b"key", None).borrowed());
        headers.note(2 << 40, None, at, &long.borrowed());
        assert!(!headers.has(1 << 40, at) && !headers.has(2 << 40, at));
    }

    #[test]
    fn nothing_is_kept_in_no_memory() {
        let mut headers = Headers::new(0);
        headers.note(1, None, Address::MIN, &header(1, b"key", None).borrowed());
        headers.forget(1, Address::MIN);
        assert!(!headers.has(1, Address::MIN));
    }
}
