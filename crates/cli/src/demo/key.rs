use base::Key;
use base::checksum::hash128;
use base::limits::KEY_BYTES_MAX;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes at the end of a shortened key: a tilde and 128 bits in hexadecimal.
const TAIL_BYTES: usize = 1 + 32;

/// The key of a pair.
#[derive(Debug)]
pub(super) struct PairKey {
    pub(super) key: Key,
    /// Whether the key was too long: then it is cut and ends in a checksum of the whole key.
    pub(super) is_shortened: bool,
}

/// Returns the key of a pair. For a file of one pair it is the path. For a chunk it is the path, a
/// zero byte, which no path contains, and the chunk's number in four bytes, big-endian.
pub(super) fn pair_key(path: &Path, chunk: Option<u32>) -> PairKey {
    let mut bytes = path.as_os_str().as_bytes().to_vec();
    if let Some(chunk) = chunk {
        bytes.push(0);
        bytes.extend(chunk.to_be_bytes());
    }
    let is_shortened = bytes.len() > KEY_BYTES_MAX;
    if is_shortened {
        let tail = format!("~{:032x}", hash128(&bytes));
        bytes.truncate(KEY_BYTES_MAX - TAIL_BYTES);
        bytes.extend(tail.into_bytes());
    }
    let key = Key::new(&bytes).expect("the path of a file has a byte, and long ones are cut");
    PairKey { key, is_shortened }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paths_are_keys() {
        let PairKey { key, is_shortened } = pair_key(Path::new("a/b.txt"), None);
        assert_eq!((key.as_bytes(), is_shortened), (&b"a/b.txt"[..], false));
    }

    #[test]
    fn chunks_have_their_number_behind_a_zero_byte() {
        let key = pair_key(Path::new("a"), Some(0x0102_0304)).key;
        assert_eq!(key.as_bytes(), b"a\0\x01\x02\x03\x04");
    }

    #[test]
    fn keys_of_more_than_255_bytes_end_in_a_checksum_of_the_whole() {
        let fits = "x".repeat(255);
        assert!(!pair_key(Path::new(&fits), None).is_shortened);
        let long = "x".repeat(256);
        let PairKey { key, is_shortened } = pair_key(Path::new(&long), None);
        assert!(is_shortened);
        // XXH3 with 128 bits of the whole key, computed by the library itself.
        let expected = format!("{}~{:032x}", "x".repeat(222), hash128(long.as_bytes()));
        assert_eq!(key.as_bytes(), expected.as_bytes());
        assert_ne!(key, pair_key(Path::new(&"x".repeat(257)), None).key);
    }

    #[test]
    fn chunks_of_a_long_path_have_different_keys() {
        let path = "y".repeat(251);
        let [first, second] = [0, 1].map(|chunk| pair_key(Path::new(&path), Some(chunk)));
        assert!(first.is_shortened && second.is_shortened);
        assert_ne!(first.key, second.key);
        assert!(!pair_key(Path::new(&"y".repeat(250)), Some(0)).is_shortened);
    }
}
