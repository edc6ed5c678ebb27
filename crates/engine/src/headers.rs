//! Headers of records in memory, by their addresses: the key that an index entry stands for is
//! known without a read, where a store looks whether it overwrites.
//!
//! Whatever is appended is noted, or what was noted of its address before is forgotten: an extent
//! that was reset is filled anew, and other records get the addresses that were there.

use crate::address::Address;
use crate::log::OwnedHeader;
use crate::record::Header;
use base::mix;
use prefetch_index::prefetch_index;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a header, so that with its address it takes 64: of keys of up to 24 bytes.
const HEADER_BYTES: usize = 56;

/// Slots that an address may be in.
const WAYS: usize = 8;

/// What no address is: the slot is free.
const FREE: u64 = u64::MAX;

/// What addresses of one set have in common: of headers that share a page 256 bytes.
const TOGETHER: u64 = !0x1F & Address::MAX.to_bits();

/// Locks at most, each of as many sets.
const LOCKS: usize = 64;

/// Slots, with their addresses in a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set {
    addresses: [u64; WAYS],
    headers: [[u8; HEADER_BYTES]; WAYS],
}

impl Set {
    const EMPTY: Self = Self { addresses: [FREE; WAYS], headers: [[0; HEADER_BYTES]; WAYS] };

    fn position(&self, address: u64) -> Option<usize> {
        self.addresses.iter().position(|other| *other == address)
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Headers {
    /// Few, so that they are in the processor's cache, where most sets are not.
    sets: Vec<Mutex<Vec<Set>>>,
    count: u64,
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
        Self { sets, count: (locks * each) as u64 }
    }

    /// How many can be kept.
    pub(crate) fn room(&self) -> usize {
        usize::try_from(self.count).expect("they are in memory") * WAYS
    }

    /// Small records that were written one after the other are in one set: it is in the processor's
    /// cache when the next one is noted.
    fn place(&self, address: Address) -> Option<Place> {
        let hash = mix(address.to_bits() & TOGETHER);
        let at = hash.checked_rem(self.count)?;
        let at = usize::try_from(at).expect("there are fewer sets");
        // Those that share a set do not drive out each other alone.
        let way = usize::try_from(mix(address.to_bits()) >> 61).expect("one of eight");
        Some(Place { lock: at % self.sets.len(), set: at / self.sets.len(), way })
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

    /// Notes the encoded header of the record at `address`, or that it is too long to be kept.
    pub(crate) fn note(&self, address: Address, header: &[u8]) {
        let Some(place) = self.place(address) else { return };
        let mut sets = self.sets(&place);
        let set = &mut sets[place.set];
        let known = set.position(address.to_bits());
        if header.len() > HEADER_BYTES {
            if let Some(at) = known {
                set.addresses[at] = FREE;
            }
            return;
        }
        let own = (set.addresses[place.way] == FREE).then_some(place.way);
        let at = known.or(own).or_else(|| set.position(FREE)).unwrap_or(place.way);
        set.addresses[at] = address.to_bits();
        set.headers[at][..header.len()].copy_from_slice(header);
    }

    /// The same of a header that was read.
    pub(crate) fn note_found(&self, address: Address, header: &Header<'_>) {
        if self.count == 0 {
            return;
        }
        let mut bytes = Vec::with_capacity(header.len());
        header.encode(&mut bytes);
        self.note(address, &bytes);
    }

    /// What is known of the record at `address`.
    pub(crate) fn get(&self, address: Address) -> Option<OwnedHeader> {
        let place = self.place(address)?;
        let sets = self.sets(&place);
        let set = &sets[place.set];
        let header = &set.headers[set.position(address.to_bits())?];
        Header::decode(header).map(|header| OwnedHeader::new(&header))
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

impl OwnedHeader {
    pub(crate) fn borrowed(&self) -> Header<'_> {
        let Self { sequence, kind, table, value_len, value_crc, expires, batch, .. } = *self;
        let key = self.key.as_bytes();
        Header { sequence, kind, table, value_len, value_crc, value_offset: 0, expires, batch, key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use crate::key_space::TableId;
    use crate::record::{InBatch, Kind, Sequence};
    use base::{Key, Rng};
    use clock::UnixMillis;
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
                    let found = headers.get(address).map(|header| header.sequence.0);
                    hits += u64::from(found.is_some());
                    assert!(found.is_none() || found == noted.get(&address).copied());
                }
                _ => {
                    let len = usize::try_from(1 + rng.below(40)).unwrap();
                    let expires = (rng.below(3) == 0).then_some(UnixMillis(count));
                    let header = header(count, &vec![7; len], expires);
                    headers.note_found(address, &header.borrowed());
                    let is_short = header.len() <= HEADER_BYTES;
                    noted.remove(&address);
                    noted.extend(is_short.then_some((address, count)));
                    let found = headers.get(address).map(|found| (found.sequence, found.key));
                    assert_eq!(found, is_short.then_some((header.sequence, header.key)));
                }
            }
        }
        assert!(hits > 500, "{hits} of some 5,000 were known");
    }

    #[test]
    fn nothing_is_kept_in_no_memory() {
        let headers = Headers::new(0);
        headers.note_found(Address::MIN, &header(1, b"key", None).borrowed());
        headers.forget(Address::MIN);
        assert!(headers.get(Address::MIN).is_none());
    }
}
