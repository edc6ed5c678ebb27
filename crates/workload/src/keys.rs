use base::limits::KEY_BYTES_MAX;
use base::{Key, mix};
use std::fmt;

/// The keys of a run: one of a fixed length for each number below a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    bytes: usize,
    order: Order,
}

/// The relation of the order of keys to that of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Unrelated: neighbouring numbers have distant keys.
    Spread,
    /// The same: a key is its number, big endian, with leading zeros.
    Rising,
}

/// Why such keys cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// No key can have this length.
    Length {
        /// The requested length.
        bytes: usize,
    },
    /// There are too few different keys of this length.
    TooMany {
        /// Bytes of a key.
        bytes: usize,
        /// The requested number of keys.
        count: u64,
    },
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => {
                write!(f, "a key has 1 to {KEY_BYTES_MAX} bytes, not {bytes}")
            }
            Self::TooMany { bytes, count } => {
                write!(f, "there are fewer than {count} different keys of {bytes} bytes")
            }
        }
    }
}

impl std::error::Error for KeysError {}

/// Keys of at least this length can hold any number.
const WORD_BYTES: usize = size_of::<u64>();

/// 2^64 over the golden ratio: multiples of it, and of its high bits modulo as many, lie far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Keys {
    /// Returns `count` keys of `bytes` bytes each; neighbouring numbers have distant keys.
    pub const fn new(bytes: usize, count: u64) -> Result<Self, KeysError> {
        if bytes == 0 || bytes > KEY_BYTES_MAX {
            return Err(KeysError::Length { bytes });
        }
        if count > Self::count_max(bytes) {
            return Err(KeysError::TooMany { bytes, count });
        }
        Ok(Self { bytes, order: Order::Spread })
    }

    /// As [`Self::new`], but in the order of their numbers.
    pub const fn rising(bytes: usize, count: u64) -> Result<Self, KeysError> {
        match Self::new(bytes, count) {
            Ok(keys) => Ok(Self { order: Order::Rising, ..keys }),
            Err(error) => Err(error),
        }
    }

    /// Whether `key` is one that a run makes, in either order: runs number keys with 32 bits. Any
    /// key of up to 4 bytes is.
    pub fn may_be_of_a_run(key: &[u8]) -> bool {
        let bytes = key.len();
        let is_number = |order| Self { bytes, order }.number(key).is_some_and(|n| n >> 32 == 0);
        (1..=KEY_BYTES_MAX).contains(&bytes)
            && [Order::Spread, Order::Rising].map(is_number) != [false; 2]
    }

    /// How many keys of `bytes` bytes there can be.
    pub(crate) const fn count_max(bytes: usize) -> u64 {
        if bytes < WORD_BYTES { 1 << (bytes * 8) } else { u64::MAX }
    }

    /// Returns the key of `number`, different for each number.
    #[inline]
    pub fn key(&self, number: u64) -> Key {
        let mut bytes = [0; KEY_BYTES_MAX + 1];
        if self.order == Order::Rising {
            let end = self.bytes.max(WORD_BYTES);
            bytes[end - WORD_BYTES..end].copy_from_slice(&number.to_be_bytes());
            return Key::new(&bytes[end - self.bytes..end]).expect("the length was checked in new");
        }
        if self.bytes < WORD_BYTES {
            let unused = (WORD_BYTES - self.bytes) * 8;
            let word = number.wrapping_mul(short_factor(unused)) << unused;
            bytes[..WORD_BYTES].copy_from_slice(&word.to_be_bytes());
        } else {
            let mut word = number;
            let words = self.bytes.div_ceil(WORD_BYTES);
            for place in &mut bytes.as_chunks_mut::<WORD_BYTES>().0[..words] {
                word = mix(word);
                *place = word.to_be_bytes();
            }
        }
        Key::new(&bytes[..self.bytes]).expect("the length was checked in new")
    }

    /// Returns the number of `key`, if it is a key of this set.
    pub fn number(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.bytes {
            return None;
        }
        let mut word = [0; WORD_BYTES];
        let number = if self.order == Order::Rising {
            let used = self.bytes.min(WORD_BYTES);
            word[WORD_BYTES - used..].copy_from_slice(&key[self.bytes - used..]);
            u64::from_be_bytes(word)
        } else if self.bytes < WORD_BYTES {
            word[..self.bytes].copy_from_slice(key);
            let unused = (WORD_BYTES - self.bytes) * 8;
            let product = u64::from_be_bytes(word) >> unused;
            product.wrapping_mul(inverse(short_factor(unused))) << unused >> unused
        } else {
            word.copy_from_slice(&key[..WORD_BYTES]);
            unmix(u64::from_be_bytes(word))
        };
        (self.key(number).as_bytes() == key).then_some(number)
    }
}

/// Returns the factor for the numbers of keys that leave `unused` bits of a word. It is odd, so
/// that products of different numbers differ in the remaining bits.
#[inline]
const fn short_factor(unused: usize) -> u64 {
    SPREAD >> unused | 1
}

/// Returns the inverse of `factor`, which is odd, modulo 2^64.
const fn inverse(factor: u64) -> u64 {
    // The first value is right in the lowest 3 bits; each step doubles the right bits.
    let mut inverse = factor;
    let mut right = 3;
    while right < u64::BITS {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(factor.wrapping_mul(inverse)));
        right *= 2;
    }
    inverse
}

/// Inverts [`mix`]: undoes its steps in reverse order.
const fn unmix(mixed: u64) -> u64 {
    let value = unshift(mixed, 31).wrapping_mul(inverse(0x94D0_49BB_1331_11EB));
    let value = unshift(value, 27).wrapping_mul(inverse(0xBF58_476D_1CE4_E5B9));
    unshift(value, 30).wrapping_sub(SPREAD)
}

/// Returns the value whose exclusive or with itself, shifted right by `shift`, is `value`.
const fn unshift(value: u64, shift: u32) -> u64 {
    let (mut value, mut shift) = (value, shift);
    while shift < u64::BITS {
        value ^= value >> shift;
        shift *= 2;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_number_has_a_key_of_its_own() {
        for (bytes, count) in [(1, 256), (2, 65_536), (3, 70_000), (7, 10_000), (8, 10_000)]
            .into_iter()
            .chain([9, 15, 16, 17, 24, 255].map(|bytes| (bytes, 5_000)))
        {
            let keys = Keys::new(bytes, count).unwrap();
            let all: BTreeSet<Key> = (0..count).map(|number| keys.key(number)).collect();
            assert_eq!(all.len() as u64, count, "{bytes} bytes");
            assert!(all.iter().all(|key| key.as_bytes().len() == bytes));
        }
    }

    #[test]
    fn a_length_that_cannot_tell_the_keys_apart_is_refused() {
        assert_eq!(Keys::new(0, 1), Err(KeysError::Length { bytes: 0 }));
        assert_eq!(Keys::new(256, 1), Err(KeysError::Length { bytes: 256 }));
        for bytes in 1..8 {
            let count = 256_u64.pow(u32::try_from(bytes).unwrap());
            assert!(Keys::new(bytes, count).is_ok());
            let error = KeysError::TooMany { bytes, count: count + 1 };
            assert_eq!(Keys::new(bytes, count + 1), Err(error));
        }
        assert!(Keys::new(8, u64::MAX).is_ok());
    }

    #[test]
    fn numbers_in_order_are_not_keys_in_order() {
        for bytes in [2, 4, 7, 8, 16, 40] {
            let keys = Keys::new(bytes, 1_000).unwrap();
            let all: Vec<Key> = (0..1_000).map(|number| keys.key(number)).collect();
            let rising = all.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert!((300..700).contains(&rising), "{bytes} bytes: {rising} of 999");
        }
    }

    #[test]
    fn rising_keys_are_their_numbers_in_order() {
        assert_eq!(Keys::rising(3, 9).unwrap().key(0x0001_0203).as_bytes(), [1, 2, 3]);
        let wide = Keys::rising(10, 9).unwrap().key(0x0102_0304_0506_0708);
        assert_eq!(wide.as_bytes(), [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        for bytes in [2, 7, 8, 9, 40, 255] {
            let keys = Keys::rising(bytes, 1_000).unwrap();
            let all: Vec<Key> = (0..1_000).map(|number| keys.key(number)).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(all.iter().all(|key| key.as_bytes().len() == bytes));
        }
        assert_eq!(Keys::rising(1, 257), Err(KeysError::TooMany { bytes: 1, count: 257 }));
    }

    #[test]
    fn a_key_tells_its_number() {
        for bytes in [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 255] {
            for keys in [Keys::new(bytes, 200).unwrap(), Keys::rising(bytes, 200).unwrap()] {
                let top = Keys::count_max(bytes) - 1;
                for number in (0..200).chain([top, top / 2, top / 3]) {
                    let key = keys.key(number);
                    assert_eq!(keys.number(key.as_bytes()), Some(number), "{bytes} bytes");
                    assert_eq!(keys.number(&key.as_bytes()[1..]), None);
                    if bytes > WORD_BYTES {
                        let place = if keys.order == Order::Rising { 0 } else { bytes - 1 };
                        let mut other = key.as_bytes().to_vec();
                        other[place] ^= 1;
                        assert_eq!(keys.number(&other), None, "{bytes} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn keys_of_runs_are_told_from_those_of_others() {
        for bytes in [1, 4, 5, 7, 8, 9, 16, 255] {
            for number in [0, 1, 77, 255].into_iter().chain((bytes > 3).then_some(u32::MAX)) {
                for keys in [Keys::new(bytes, 256).unwrap(), Keys::rising(bytes, 256).unwrap()] {
                    let key = keys.key(number.into());
                    assert!(Keys::may_be_of_a_run(key.as_bytes()), "{bytes} bytes, {number}");
                }
            }
        }
        let others: [&[u8]; 5] =
            [b"greeting", b"user:1000", b"key:000000000042", b"", &[b'x'; 256]];
        assert!(others.iter().all(|key| !Keys::may_be_of_a_run(key)));
        let beyond = Keys::new(16, 1).unwrap().key(1 << 32);
        assert!(!Keys::may_be_of_a_run(beyond.as_bytes()));
    }

    #[test]
    fn mixing_is_undone() {
        let mut word = 1;
        for _ in 0..1_000 {
            assert_eq!(unmix(mix(word)), word);
            word = mix(word);
        }
        assert_eq!((unmix(mix(0)), unmix(mix(u64::MAX))), (0, u64::MAX));
    }

    #[test]
    fn no_byte_of_a_long_key_is_the_same_in_all() {
        let keys = Keys::new(255, 100).unwrap();
        let first = keys.key(0);
        for place in 0..255 {
            assert!((1..100).any(|n| keys.key(n).as_bytes()[place] != first.as_bytes()[place]));
        }
    }
}
