use base::Key;
use base::checksum::{hash64, hash128};
use base::limits::KEY_BYTES_MAX;
use hashbrown::HashTable;
use std::io::Write;

/// Keys by number, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyList {
    /// The keys, concatenated.
    bytes: Vec<u8>,
    /// The end of each key.
    ends: Vec<u64>,
}

impl KeyList {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of a key.
    #[inline]
    pub(super) fn bytes(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[place(start)..place(self.ends[number])]
    }

    /// The key itself.
    #[inline]
    pub(super) fn key(&self, number: u32) -> Key {
        Key::new(self.bytes(number)).expect("only keys of 1 to 255 bytes are added")
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u64);
    }
}

fn place(end: u64) -> usize {
    usize::try_from(end).expect("it was the length of a vector")
}

/// Gives keys numbers, in the order of their first appearance.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    list: KeyList,
    numbers: HashTable<u32>,
    shortened: u64,
}

/// Hex digits of 128 bits.
const DIGITS: usize = 32;

impl KeyTable {
    /// Returns the number of `key`, which has at least one byte.
    pub(super) fn number(&mut self, key: &[u8]) -> u32 {
        if key.len() <= KEY_BYTES_MAX {
            return self.number_of_short(key).0;
        }
        let (number, is_new) = self.number_of_short(&shortened(key));
        self.shortened += u64::from(is_new);
        number
    }

    /// Returns the number of a key that fits, and whether it is new.
    fn number_of_short(&mut self, key: &[u8]) -> (u32, bool) {
        let (list, hash) = (&self.list, hash64(key));
        if let Some(&number) = self.numbers.find(hash, |&number| list.bytes(number) == key) {
            return (number, false);
        }
        let number = u32::try_from(list.len()).expect("a trace has fewer than 2^32 keys");
        self.list.push(key);
        let list = &self.list;
        self.numbers.insert_unique(hash, number, |&number| hash64(list.bytes(number)));
        (number, true)
    }

    /// Returns the keys, and how many of them were shortened.
    pub(super) fn into_list(self) -> (KeyList, u64) {
        (self.list, self.shortened)
    }
}

/// Returns `key` with its end replaced by a hash of the whole, so that it fits.
fn shortened(key: &[u8]) -> Vec<u8> {
    let mut short = key[..KEY_BYTES_MAX - DIGITS].to_vec();
    write!(short, "{:0DIGITS$x}", hash128(key)).expect("memory can be written to");
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::HashMap;

    #[test]
    fn equal_keys_have_equal_numbers_in_the_order_of_their_first_appearance() {
        let (mut table, mut model) = (KeyTable::default(), HashMap::new());
        let mut rng = Rng::new(8);
        for _ in 0..20_000 {
            let mut key = vec![0; 1 + usize::try_from(rng.below(3)).unwrap()];
            rng.fill(&mut key);
            for byte in &mut key {
                *byte %= 16;
            }
            let next = u32::try_from(model.len()).unwrap();
            let number = table.number(&key);
            assert_eq!(number, *model.entry(key).or_insert(next));
        }
        let (list, shortened) = table.into_list();
        assert_eq!((list.len(), shortened), (model.len(), 0));
        assert!(model.iter().all(|(key, &number)| list.key(number).as_bytes() == key));
    }

    #[test]
    fn keys_that_are_too_long_are_shortened_to_255_bytes_and_stay_distinct() {
        let mut table = KeyTable::default();
        let long: Vec<Vec<u8>> =
            (0..100).map(|last| [&[b'a'; 300][..], &[last]].concat()).collect();
        let fits = [b'a'; 255];
        for _ in 0..2 {
            assert_eq!(table.number(&fits), 0);
            for (key, number) in long.iter().zip(1..) {
                assert_eq!(table.number(key), number);
            }
        }
        let (list, shortened) = table.into_list();
        assert_eq!((list.len(), shortened), (101, 100));
        for (key, number) in long.iter().zip(1..) {
            let expected = format!("{}{:032x}", "a".repeat(223), hash128(key));
            assert_eq!(list.key(number).as_bytes(), expected.as_bytes());
        }
    }
}
