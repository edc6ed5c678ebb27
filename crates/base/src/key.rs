use crate::checksum::hash64;
use crate::limits::{KEY_BYTES_INLINE, KEY_BYTES_MAX};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A key of 1 to 255 bytes. Keys of up to 16 bytes cost no allocation.
///
/// Keys of different length are different keys; the order is that of their bytes.
#[derive(Clone)]
pub struct Key(Repr);

#[derive(Clone)]
enum Repr {
    Short { len: u8, bytes: [u8; KEY_BYTES_INLINE] },
    Long(Arc<[u8]>),
}

/// A key of no bytes, or of more than 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLengthError {
    /// The length that was asked for, in bytes.
    pub len: usize,
}

impl fmt::Display for KeyLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key has 1 to {KEY_BYTES_MAX} bytes, not {}", self.len)
    }
}

impl std::error::Error for KeyLengthError {}

impl Key {
    /// The key of these bytes.
    #[inline]
    pub fn new(bytes: &[u8]) -> Result<Self, KeyLengthError> {
        match bytes.len() {
            len @ 1..=KEY_BYTES_INLINE =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
                Ok(Self(Repr::Short { len: len as u8, bytes: padded(bytes) }))
            }
            17..=KEY_BYTES_MAX => Ok(Self(Repr::Long(bytes.into()))),
            len => Err(KeyLengthError { len }),
        }
    }

    /// The bytes of the key.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Repr::Short { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Long(bytes) => bytes,
        }
    }

    /// Whether these are the bytes of the key.
    #[inline]
    pub fn is(&self, other: &[u8]) -> bool {
        match (&self.0, other.try_into()) {
            // A comparison of a fixed length takes no call of memcmp.
            (Repr::Short { len, bytes }, Ok(other)) => {
                usize::from(*len) == KEY_BYTES_INLINE
                    && u128::from_ne_bytes(*bytes) == u128::from_ne_bytes(other)
            }
            _ => other == self.as_bytes(),
        }
    }

    /// XXH3 of the bytes: what lanes, indexes and latches place a key by.
    #[inline]
    pub fn hash(&self) -> u64 {
        hash64(self.as_bytes())
    }

    /// A number below 64 that differs for most keys: cheaper than [`Self::hash`].
    #[inline]
    pub fn mark(&self) -> u32 {
        // Odd, so that each bit of a word reaches the highest bits of the product.
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let bytes = match &self.0 {
            Repr::Short { bytes, .. } => bytes,
            Repr::Long(bytes) => bytes.last_chunk().expect("a long key is longer"),
        };
        let words = u128::from_le_bytes(*bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the halves of it")]
        let (low, high) = (words as u64, (words >> 64) as u64);
        let mixed = (low ^ high.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        u32::try_from(mixed >> 58).expect("6 bits")
    }

    /// True when the key does not fit a command and travels by a transfer of its own.
    #[inline]
    pub fn is_long(&self) -> bool {
        matches!(self.0, Repr::Long(_))
    }
}

/// `bytes`, of which there are at most [`KEY_BYTES_INLINE`], with zeros after them.
#[inline]
fn padded(bytes: &[u8]) -> [u8; KEY_BYTES_INLINE] {
    const HALF: usize = KEY_BYTES_INLINE / 2;
    let mut padded = [0; KEY_BYTES_INLINE];
    // Copies of a fixed length take no call of memcpy.
    if let Ok(all) = bytes.try_into() {
        return all;
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<HALF>(), bytes.last_chunk::<HALF>()) {
        padded[..HALF].copy_from_slice(first);
        padded[bytes.len() - HALF..bytes.len()].copy_from_slice(last);
    } else {
        padded[..bytes.len()].copy_from_slice(bytes);
    }
    padded
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Short { len, bytes }, Repr::Short { len: other_len, bytes: other_bytes }) => {
                len == other_len && u128::from_ne_bytes(*bytes) == u128::from_ne_bytes(*other_bytes)
            }
            (Repr::Long(bytes), Repr::Long(other_bytes)) => bytes == other_bytes,
            _ => false,
        }
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_to_255_bytes() {
        assert_eq!(Key::new(b"").unwrap_err().len, 0);
        assert_eq!(Key::new(&[7; 256]).unwrap_err().len, 256);
        for len in [1, 15, 16, 17, 255] {
            let key = Key::new(&vec![7; len]).unwrap();
            assert_eq!(key.as_bytes().len(), len);
            assert_eq!(key.is_long(), len > 16);
        }
    }

    #[test]
    fn keys_are_equal_if_their_bytes_are() {
        let long: Vec<u8> = (1..=255).collect();
        for len in 1..=40 {
            let key = Key::new(&long[..len]).unwrap();
            assert_eq!(key.as_bytes(), &long[..len]);
            assert_eq!(key, Key::new(&long[..len]).unwrap());
            assert!(key.is(&long[..len]) && !key.is(&long[1..=len]) && !key.is(&long[..len - 1]));
            assert!(!key.is(&long[..=len]));
            assert_ne!(key, Key::new(&long[..=len]).unwrap());
            let mut other = long[..len].to_vec();
            for at in 0..len {
                other[at] ^= 1;
                assert_ne!(key, Key::new(&other).unwrap());
                other[at] ^= 1;
            }
        }
    }

    #[test]
    fn marks_tell_most_keys_apart() {
        for pattern in ["key:000000000000", "k0", "a_long_key_before_a_number:0000"] {
            let marks = (0..1_000).map(|number: u32| {
                let digits = number.to_string();
                let key =
                    [&pattern[..pattern.len() - digits.len().min(pattern.len() - 1)], &digits];
                Key::new(key.concat().as_bytes()).unwrap().mark()
            });
            let mut counts = [0; 64];
            marks.for_each(|mark| counts[mark as usize] += 1);
            assert!(counts.iter().all(|count| *count < 60), "{pattern}: {counts:?}");
        }
    }

    #[test]
    fn a_prefix_is_another_key() {
        assert_ne!(Key::new(b"ab").unwrap(), Key::new(b"ab\0").unwrap());
        assert!(Key::new(b"ab").unwrap() < Key::new(b"ab\0").unwrap());
    }
}
