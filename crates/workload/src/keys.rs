use base::limits::KEY_BYTES_MAX;
use base::{Key, mix};
use std::fmt;

/// The keys of a run: one of a fixed length for each number below a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    bytes: usize,
}

/// Why there are no such keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// Keys of this many bytes do not exist.
    Length {
        /// What was asked for.
        bytes: usize,
    },
    /// There are fewer different keys of this length.
    TooMany {
        /// Bytes of a key.
        bytes: usize,
        /// Keys that were asked for.
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

/// From this length on a key holds any number.
const WORD_BYTES: usize = size_of::<u64>();

/// 2^64 over the golden ratio: multiples of it, and of its high bits modulo as many, lie far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Keys {
    /// `count` keys of `bytes` bytes each.
    pub const fn new(bytes: usize, count: u64) -> Result<Self, KeysError> {
        if bytes == 0 || bytes > KEY_BYTES_MAX {
            return Err(KeysError::Length { bytes });
        }
        if bytes < WORD_BYTES && count > 1 << (bytes * 8) {
            return Err(KeysError::TooMany { bytes, count });
        }
        Ok(Self { bytes })
    }

    /// The key of `number`: another for each, and neighbours are nowhere near each other in the
    /// order of keys.
    #[inline]
    pub fn key(&self, number: u64) -> Key {
        let mut bytes = [0; KEY_BYTES_MAX + 1];
        if self.bytes < WORD_BYTES {
            let unused = (WORD_BYTES - self.bytes) * 8;
            // Odd, so that no two numbers have the same product in the bits that remain.
            let word = number.wrapping_mul(SPREAD >> unused | 1) << unused;
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
    fn no_byte_of_a_long_key_is_the_same_in_all() {
        let keys = Keys::new(255, 100).unwrap();
        let first = keys.key(0);
        for place in 0..255 {
            assert!((1..100).any(|n| keys.key(n).as_bytes()[place] != first.as_bytes()[place]));
        }
    }
}
