use base::limits::BLOCK_BYTES;
use base::{Buf, Rng};
use media::{Segments, cut};

/// The content of a logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Zeros,
    /// The word, repeated.
    Words(u64),
    Phantom(u64),
}

impl Content {
    fn buf(self) -> Buf {
        match self {
            Self::Zeros => Buf::copy_from(&[0; BLOCK_BYTES as usize]),
            Self::Words(word) => Buf::copy_from(&word.to_le_bytes().repeat(512)),
            Self::Phantom(tag) => Buf::phantom(BLOCK_BYTES, tag),
        }
    }

    fn of(buf: &Buf) -> Self {
        let Some(bytes) = buf.bytes() else { return Self::Phantom(buf.checksum()) };
        let (words, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty() && words.iter().all(|word| *word == words[0]), "torn data");
        match u64::from_le_bytes(words[0]) {
            0 => Self::Zeros,
            word => Self::Words(word),
        }
    }

    /// Returns the content of each block of `data`.
    pub(crate) fn of_blocks(data: &Segments) -> Vec<Self> {
        let bytes: u32 = data.iter().map(Buf::len).sum();
        let blocks = (0..bytes / BLOCK_BYTES).map(|at| {
            let parts = cut(data, at * BLOCK_BYTES, BLOCK_BYTES).expect("within the data");
            Self::of(&Buf::join(&parts).expect("parts of one buffer"))
        });
        blocks.collect()
    }

    /// Returns data with `contents`, cut at random.
    pub(crate) fn data(contents: &[Self], rng: &mut Rng) -> Segments {
        let mut data = Segments::new();
        for content in contents {
            let (whole, mut at) = (content.buf(), 0);
            while at < BLOCK_BYTES {
                let left = u64::from(BLOCK_BYTES - at);
                let part = if rng.below(3) > 0 { left } else { 1 + rng.below(left) };
                let end = at + u32::try_from(part).expect("less than a block");
                data.push(whole.slice(at..end));
                at = end;
            }
        }
        data
    }

    /// Returns the content for `number`.
    pub(crate) fn numbered(number: u64) -> Self {
        if number.is_multiple_of(3) { Self::Phantom(number) } else { Self::Words(number) }
    }
}
