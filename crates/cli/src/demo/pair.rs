use base::checksum::hash128;

/// A stored pair, and the expected result of reading it back.
#[derive(Debug)]
pub(super) struct Pair {
    /// Index of the file in the list.
    pub(super) file: usize,
    /// Index of the chunk in a long file.
    pub(super) chunk: Option<u32>,
    /// Length of the value.
    pub(super) bytes: u32,
    /// Checksum of the value, computed before the store.
    pub(super) checksum: u128,
    pub(super) is_stored: bool,
}

impl Pair {
    /// Returns the pair of `value`, before it is stored.
    pub(super) fn new(file: usize, chunk: Option<u32>, value: &[u8]) -> Self {
        let bytes = u32::try_from(value.len()).expect("a chunk is shorter than 4 GiB");
        Self { file, chunk, bytes, checksum: hash128(value), is_stored: false }
    }
}
