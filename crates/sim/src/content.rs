use base::limits::BLOCK_BYTES;
use base::{Buf, BufMut};

/// What a block says of itself, at both of its ends. Zeros are a block that was never written.
pub(crate) type Name = [u64; 2];

const NAME_BYTES: usize = size_of::<Name>();

/// Blocks of these names, one after the other.
pub(crate) fn content(names: &[Name]) -> Buf {
    let mut data = BufMut::unpooled(names.len() * BLOCK_BYTES as usize);
    let bytes = data.as_mut();
    bytes.fill(0);
    for (name, block) in names.iter().zip(bytes.chunks_exact_mut(BLOCK_BYTES as usize)) {
        let [front, back] = [0, block.len() - NAME_BYTES];
        for (word, at) in name.iter().flat_map(|word| [word, word]).zip([
            front,
            back,
            front + NAME_BYTES / 2,
            back + NAME_BYTES / 2,
        ]) {
            block[at..at + NAME_BYTES / 2].copy_from_slice(&word.to_le_bytes());
        }
    }
    data.freeze()
}

/// The names of the blocks of `data`.
///
/// # Panics
/// When a block is put together of two.
pub(crate) fn names(data: &Buf) -> Vec<Name> {
    let bytes = data.bytes().expect("blocks are written with their bytes");
    let blocks = bytes.chunks_exact(BLOCK_BYTES as usize);
    blocks
        .map(|block| {
            let [front, back] = [&block[..NAME_BYTES], &block[block.len() - NAME_BYTES..]];
            assert!(front == back, "a block is of two parts: {front:?} and {back:?}");
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            [word(&front[..NAME_BYTES / 2]), word(&front[NAME_BYTES / 2..])]
        })
        .collect()
}
