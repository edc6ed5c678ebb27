use core::fmt;

const COUNT_BYTES: usize = size_of::<u32>();
const KEY_LENGTH_BYTES: usize = size_of::<u16>();

/// Bytes of an entry: its key length, its key, and zeros to the next multiple of four. Some other
/// emulators pad by the remainder itself, which is right for keys of even length only.
#[inline]
const fn entry_bytes(key_len: usize) -> usize {
    (KEY_LENGTH_BYTES + key_len).next_multiple_of(4)
}

/// Writes the data of a List reply into a host's buffer (KV 1.0d, List command, List data
/// structure): the number of keys in 4 bytes, then for each key its length in 2, its bytes, and
/// padding.
#[derive(Debug)]
pub struct ListWriter<'a> {
    buffer: &'a mut [u8],
    len: usize,
    count: u32,
}

impl<'a> ListWriter<'a> {
    /// An empty list at the front of `buffer`, or `None` where not even that fits: 4 bytes.
    pub fn new(buffer: &'a mut [u8]) -> Option<Self> {
        buffer.get_mut(..COUNT_BYTES)?.fill(0);
        Some(Self { buffer, len: COUNT_BYTES, count: 0 })
    }

    /// Appends `key`, of 1 to 255 bytes, and says true; or changes nothing and says false, if the
    /// whole entry does not fit. The buffer holds a valid list after each call.
    pub fn push(&mut self, key: &[u8]) -> bool {
        let key_length = u8::try_from(key.len()).expect("a key has at most 255 bytes");
        assert!(key_length > 0, "a key has at least 1 byte");
        let end = self.len + entry_bytes(key.len());
        let Some(entry) = self.buffer.get_mut(self.len..end) else { return false };
        let (length, rest) = entry.split_at_mut(KEY_LENGTH_BYTES);
        let (bytes, padding) = rest.split_at_mut(key.len());
        length.copy_from_slice(&u16::from(key_length).to_le_bytes());
        bytes.copy_from_slice(key);
        padding.fill(0);
        self.len = end;
        self.count += 1;
        self.buffer[..COUNT_BYTES].copy_from_slice(&self.count.to_le_bytes());
        true
    }

    /// Bytes written so far, the count of keys included: what is transferred to the host.
    #[expect(clippy::len_without_is_empty, reason = "the count is always there")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Keys written so far.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// Bytes that are no List data structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListError {
    /// The bytes end within the count of keys or within an entry.
    Truncated {
        /// Where the count or the entry starts, in bytes.
        offset: usize,
    },
    /// An entry has a key of no bytes.
    EmptyKey {
        /// Where the entry starts, in bytes.
        offset: usize,
    },
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => {
                write!(f, "the list ends within what starts at byte {offset}")
            }
            Self::EmptyKey { offset } => {
                write!(f, "the entry at byte {offset} of the list has an empty key")
            }
        }
    }
}

impl core::error::Error for ListError {}

/// Reads the keys of a List reply, in its order. It ends after the keys that the reply counts, or
/// after the first error.
#[derive(Clone, Debug)]
pub struct ListReader<'a> {
    bytes: &'a [u8],
    offset: usize,
    left: u32,
}

impl<'a> ListReader<'a> {
    /// The keys of the list at the front of `bytes`; what follows it is not looked at.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ListError> {
        let count = bytes.first_chunk().ok_or(ListError::Truncated { offset: 0 })?;
        Ok(Self { bytes, offset: COUNT_BYTES, left: u32::from_le_bytes(*count) })
    }

    fn entry(&mut self) -> Result<&'a [u8], ListError> {
        let offset = self.offset;
        let truncated = ListError::Truncated { offset };
        let rest = &self.bytes[offset..];
        let length = rest.first_chunk().ok_or(truncated)?;
        let key_len = usize::from(u16::from_le_bytes(*length));
        let entry = rest.get(..entry_bytes(key_len)).ok_or(truncated)?;
        if key_len == 0 {
            return Err(ListError::EmptyKey { offset });
        }
        self.offset += entry.len();
        Ok(&entry[KEY_LENGTH_BYTES..KEY_LENGTH_BYTES + key_len])
    }
}

impl<'a> Iterator for ListReader<'a> {
    type Item = Result<&'a [u8], ListError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.entry();
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn read(bytes: &[u8]) -> Result<Vec<&[u8]>, ListError> {
        ListReader::new(bytes)?.collect()
    }

    /// KV 1.0d, List command, List data structure: NRK 4, then keys of 1, 2, 3 and 6 bytes, which
    /// take 1, 0, 3 and 0 bytes of padding.
    const FOUR_KEYS: &[u8] = b"\x04\0\0\0\
        \x01\0a\0\
        \x02\0bc\
        \x03\0def\0\0\0\
        \x06\0ghijkl";

    #[test]
    fn a_list_has_the_specifications_bytes() {
        let mut buffer = [0xff; 29];
        let mut writer = ListWriter::new(&mut buffer).unwrap();
        for key in [&b"a"[..], b"bc", b"def", b"ghijkl"] {
            assert!(writer.push(key));
        }
        assert_eq!((writer.len(), writer.count()), (28, 4));
        assert_eq!(&buffer[..28], FOUR_KEYS);
        assert_eq!(buffer[28], 0xff, "bytes past the list stay as they were");
        assert_eq!(read(FOUR_KEYS).unwrap(), [&b"a"[..], b"bc", b"def", b"ghijkl"]);
    }

    #[test]
    fn an_empty_list_is_a_count_of_zero() {
        let mut buffer = [0xff; 5];
        assert_eq!(ListWriter::new(&mut buffer).unwrap().len(), 4);
        assert_eq!(buffer, [0, 0, 0, 0, 0xff]);
        assert_eq!(read(&buffer).unwrap(), Vec::<&[u8]>::new());
        assert!(ListWriter::new(&mut [0; 3]).is_none());
    }

    #[test]
    fn a_key_of_every_length_is_padded_with_zeros_to_a_multiple_of_four() {
        for key_len in 1..=255_u8 {
            let key = vec![key_len; usize::from(key_len)];
            let mut buffer = [0xff; 264];
            let mut writer = ListWriter::new(&mut buffer).unwrap();
            assert!(writer.push(&key));
            let len = writer.len();
            let padding = (4 - (2 + key.len()) % 4) % 4;
            assert_eq!(len, 4 + 2 + key.len() + padding);
            assert_eq!(buffer[..6], [1, 0, 0, 0, key_len, 0]);
            assert_eq!(buffer[6..6 + key.len()], key);
            assert!(buffer[6 + key.len()..len].iter().all(|&byte| byte == 0));
            assert_eq!(read(&buffer).unwrap(), [key]);
        }
    }

    #[test]
    fn an_entry_that_does_not_fit_changes_nothing() {
        // An entry of a 3-byte key takes 8 bytes, its padding included.
        for capacity in 4..20 {
            let mut buffer = vec![0xff; capacity];
            let mut writer = ListWriter::new(&mut buffer).unwrap();
            let fitting = (capacity - 4) / 8;
            for pushed in 0..3 {
                assert_eq!(writer.push(b"abc"), pushed < fitting);
            }
            assert_eq!((writer.count() as usize, writer.len()), (fitting, 4 + 8 * fitting));
            assert_eq!(read(&buffer).unwrap().len(), fitting);
            assert!(buffer[4 + 8 * fitting..].iter().all(|&byte| byte == 0xff));
        }
    }

    #[test]
    fn a_shorter_key_still_fits_after_one_that_did_not() {
        let mut buffer = [0; 8];
        let mut writer = ListWriter::new(&mut buffer).unwrap();
        assert!(!writer.push(b"abc"));
        assert!(writer.push(b"ab"));
        assert_eq!(buffer, *b"\x01\0\0\0\x02\0ab");
    }

    #[test]
    fn every_truncation_is_an_error_after_the_whole_entries() {
        let starts = [0, 4, 8, 12, 20, 28];
        for len in 0..FOUR_KEYS.len() {
            let whole = starts.iter().filter(|&&start| start <= len).count();
            let error = ListError::Truncated { offset: starts[whole - 1] };
            match ListReader::new(&FOUR_KEYS[..len]) {
                Err(early) => assert_eq!((len < 4, early), (true, error)),
                Ok(mut reader) => {
                    let keys = reader.by_ref().take_while(Result::is_ok).count();
                    assert_eq!(keys, whole - 2, "{len} bytes");
                    assert_eq!(reader.next(), None, "nothing follows an error");
                    assert_eq!(read(&FOUR_KEYS[..len]), Err(error));
                }
            }
        }
    }

    #[test]
    fn a_count_beyond_the_bytes_ends_with_an_error() {
        let bytes = b"\xff\xff\xff\xff\x02\0ab";
        let all: Vec<_> = ListReader::new(bytes).unwrap().take(3).collect();
        assert_eq!(all, [Ok(&b"ab"[..]), Err(ListError::Truncated { offset: 8 })]);
    }

    #[test]
    fn an_empty_key_is_an_error() {
        assert_eq!(read(b"\x01\0\0\0\0\0\0\0"), Err(ListError::EmptyKey { offset: 4 }));
    }

    #[test]
    fn arbitrary_bytes_yield_keys_from_within_them_or_an_error() {
        // A multiplicative generator (Park and Miller) gives bytes of every kind; small values are
        // made frequent, so that lengths are often plausible.
        let mut state = 1_u64;
        let mut byte = || {
            state = state * 48_271 % 0x7fff_ffff;
            let [low, high, ..] = state.to_le_bytes();
            if high < 128 { low % 8 } else { low }
        };
        for len in 0..5_000 {
            let bytes: Vec<u8> = (0..len % 97).map(|_| byte()).collect();
            let Ok(reader) = ListReader::new(&bytes) else { continue };
            let read: usize = reader.map_while(Result::ok).map(|key| entry_bytes(key.len())).sum();
            assert!(read <= bytes.len() - 4);
        }
    }
}
