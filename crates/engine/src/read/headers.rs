//! Headers of records in memory, by their addresses: the key that an index entry stands for is
//! known without a read, where a store looks whether it overwrites.
//!
//! Whatever is appended is noted, or what was noted of its address before is forgotten: an extent
//! that was reset is filled anew, and other records get the addresses that were there.

use crate::format::address::Address;
use crate::format::record::{Header, InBatch, Kind, Sequence};
use crate::key_space::{KeySpaceId, TableId};
use base::{Divisor, mix};
use clock::UnixMillis;
use prefetch_index::prefetch_index;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots that an address may be in.
const WAYS: usize = 8;

/// What no address is: the slot is free.
const FREE: u64 = u64::MAX;

/// The bits that all addresses of a set have in common. Addresses that differ in the others are
/// within 256 bytes of a page's headers.
const TOGETHER: u64 = !0x1F & Address::MAX.to_bits();

/// Locks at most, each of as many sets.
const LOCKS: usize = 64;

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
struct Set {
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

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Headers {
    /// Few, so that they are in the processor's cache, where most sets are not.
    sets: Vec<Mutex<Vec<Set>>>,
    /// How many sets there are, and locks, unless there are none.
    count: Option<(Divisor, Divisor)>,
}

/// Where an address belongs.
struct Place {
    lock: usize,
    set: usize,
    way: usize,
}

impl Headers {
    /// At most so many bytes; with 0 nothing is kept.
    pub(crate) fn new(bytes: u64) -> Self {
        let sets = usize::try_from(bytes).expect("it is memory of this machine") / size_of::<Set>();
        let locks = LOCKS.min(sets);
        let each = sets.checked_div(locks).unwrap_or_default();
        let sets = (0..locks).map(|_| Mutex::new(vec![Set::EMPTY; each])).collect();
        let count =
            (locks > 0).then(|| (Divisor::new((locks * each) as u64), Divisor::new(locks as u64)));
        Self { sets, count }
    }

    /// How many can be kept.
    pub(crate) fn room(&self) -> usize {
        let sets = self.count.map_or(0, |(sets, _)| sets.get());
        usize::try_from(sets).expect("they are in memory") * WAYS
    }

    /// Small records that were written one after the other are in one set: it is in the processor's
    /// cache when the next one is noted.
    fn place(&self, address: Address) -> Option<Place> {
        let (sets, locks) = self.count?;
        let (_, at) = sets.split(mix(address.to_bits() & TOGETHER));
        let (set, lock) = locks.split(at);
        let index = |number: u64| usize::try_from(number).expect("there are fewer sets");
        // Those that share a set do not drive out each other alone.
        let way = mix(address.to_bits()) >> 61;
        Some(Place { lock: index(lock), set: index(set), way: index(way) })
    }

    fn sets(&self, place: &Place) -> MutexGuard<'_, Vec<Set>> {
        self.sets[place.lock].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the processor for what is known of the record at `address`, ahead of it.
    pub(crate) fn prefetch(&self, address: Address) {
        if let Some(place) = self.place(address) {
            let sets = self.sets(&place);
            prefetch_index(&sets[..], place.set);
            prefetch_index(&sets[place.set].headers[..], place.way);
        }
    }

    /// Notes the header of the record at `address`, or that it is too long to be kept.
    pub(crate) fn note(&self, address: Address, header: &Header<'_>) {
        let Some(place) = self.place(address) else { return };
        let mut sets = self.sets(&place);
        let set = &mut sets[place.set];
        let known = set.position(address.to_bits());
        let Some(header) = Known::of(header) else {
            if let Some(at) = known {
                set.addresses[at] = FREE;
            }
            return;
        };
        let own = (set.addresses[place.way] == FREE).then_some(place.way);
        let at = known.or(own).or_else(|| set.position(FREE)).unwrap_or(place.way);
        set.addresses[at] = address.to_bits();
        set.headers[at] = header;
    }

    /// Returns what `read` makes of the header of the record at `address`, if that is known. Where
    /// its value begins is not.
    pub(crate) fn with<T>(
        &self,
        address: Address,
        read: impl FnOnce(&Header<'_>) -> T,
    ) -> Option<T> {
        let place = self.place(address)?;
        let sets = self.sets(&place);
        let set = &sets[place.set];
        Some(read(&set.headers[set.position(address.to_bits())?].header()))
    }

    /// Returns whether the header of the record at `address` is known.
    pub(crate) fn has(&self, address: Address) -> bool {
        self.with(address, |_| ()).is_some()
    }

    /// Nothing points to the record any more.
    pub(crate) fn forget(&self, address: Address) {
        let Some(place) = self.place(address) else { return };
        let set = &mut self.sets(&place)[place.set];
        if let Some(at) = set.position(address.to_bits()) {
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

    /// Few sets, so that addresses drive each other out.
    #[test]
    fn what_is_known_of_an_address_is_the_last_that_was_noted_there() {
        let (headers, mut rng) = (Headers::new(16 << 10), Rng::new(7));
        let (mut noted, mut hits) = (BTreeMap::new(), 0);
        for count in 0..20_000 {
            let address = Address::from_bits(rng.below(300));
            match rng.below(4) {
                0 => {
                    headers.forget(address);
                    noted.remove(&address);
                }
                1 => {
                    let found = headers.with(address, |header| header.sequence.0);
                    hits += u64::from(found.is_some());
                    assert!(found.is_none() || found == noted.get(&address).copied());
                }
                _ => {
                    let len = usize::try_from(1 + rng.below(40)).unwrap();
                    let expires = (rng.below(3) == 0).then_some(UnixMillis(count));
                    let header = header(count, &vec![7; len], expires);
                    headers.note(address, &header.borrowed());
                    let is_short = header.len() <= 56;
                    noted.remove(&address);
                    noted.extend(is_short.then_some((address, count)));
                    let found = headers
                        .with(address, |found| (found.sequence, Key::new(found.key).unwrap()));
                    assert_eq!(found, is_short.then_some((header.sequence, header.key)));
                }
            }
        }
        assert!(hits > 500, "{hits} of some 5,000 were known");
    }

    #[test]
    fn nothing_is_kept_in_no_memory() {
        let headers = Headers::new(0);
        headers.note(Address::MIN, &header(1, b"key", None).borrowed());
        headers.forget(Address::MIN);
        assert!(!headers.has(Address::MIN));
    }
}
