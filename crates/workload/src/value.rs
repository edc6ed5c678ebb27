use base::{Buf, BufPool, Rng, mix};
use std::fmt;

/// What becomes of the bytes of values on their way through the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Every byte is stored and returned.
    #[default]
    Full,
    /// Only a checksum of the bytes is kept. That of a generated value is its tag.
    Checksum,
    /// Only the tag of a generated value is kept.
    None,
}

/// Bytes at the start of a value that are its tag.
const TAG_BYTES: usize = size_of::<u64>();

/// Bytes of freed values of one size that are kept for the next: 64 values of 1 MiB.
const POOL_CLASS_BYTES_MAX: usize = 64 << 20;

/// Makes the value of each version of each key.
///
/// A value is its tag, little endian, followed by what [`Rng::new`] of the tag fills: so that a
/// value can be checked without knowing which it should be. A value of less than 8 bytes is as much
/// of the tag as fits, and its tag is that, in every payload mode.
#[derive(Clone, Debug)]
pub struct ValueGenerator {
    seed: u64,
    payload: Payload,
    pool: BufPool,
}

/// Bytes, or a tag, that no [`ValueGenerator`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is not the expansion of its own tag")
    }
}

impl std::error::Error for Damaged {}

impl ValueGenerator {
    /// The values that `seed` names, with their bytes only if `payload` keeps them.
    pub fn new(seed: u64, payload: Payload) -> Self {
        Self { seed, payload, pool: BufPool::new(POOL_CLASS_BYTES_MAX) }
    }

    /// The value of `len` bytes of `version` of key number `key`.
    #[inline]
    pub fn value(&self, key: u64, version: u32, len: u32) -> Buf {
        let tag = self.tag(key, version, len);
        if self.payload != Payload::Full {
            return Buf::phantom(len, tag);
        }
        let mut value = self.pool.take(len as usize);
        expand(tag, value.as_mut());
        value.freeze()
    }

    /// The tag of that value.
    #[inline]
    pub fn tag(&self, key: u64, version: u32, len: u32) -> u64 {
        expected_tag(self.seed, key, version, len)
    }
}

/// The tag of the value of `len` bytes that `seed` gives `version` of key number `key`.
#[inline]
pub const fn expected_tag(seed: u64, key: u64, version: u32, len: u32) -> u64 {
    masked(mix(mix(mix(seed) ^ key) ^ version as u64), len)
}

/// The tag of a generated value, after checking that real bytes are the expansion of their own tag.
#[inline]
pub fn checksum_of(value: &Buf) -> Result<u64, Damaged> {
    let (tag, is_whole) = match value.bytes() {
        None => (value.checksum(), masked(value.checksum(), value.len()) == value.checksum()),
        Some(bytes) => {
            let (head, rest) = bytes.split_at(bytes.len().min(TAG_BYTES));
            let mut tag = [0; TAG_BYTES];
            tag[..head.len()].copy_from_slice(head);
            let tag = u64::from_le_bytes(tag);
            (tag, is_expansion(tag, rest))
        }
    };
    if is_whole { Ok(tag) } else { Err(Damaged) }
}

/// As much of `tag` as a value of `len` bytes holds.
#[inline]
const fn masked(tag: u64, len: u32) -> u64 {
    if len as usize >= TAG_BYTES { tag } else { tag & ((1 << (len * 8)) - 1) }
}

fn expand(tag: u64, value: &mut [u8]) {
    let (head, rest) = value.split_at_mut(value.len().min(TAG_BYTES));
    head.copy_from_slice(&tag.to_le_bytes()[..head.len()]);
    // As Rng::fill, but in whole words, which is several times as fast.
    let mut rng = Rng::new(tag);
    let (words, tail) = rest.as_chunks_mut::<TAG_BYTES>();
    for word in words {
        *word = rng.next_u64().to_le_bytes();
    }
    rng.fill(tail);
}

fn is_expansion(tag: u64, rest: &[u8]) -> bool {
    let mut rng = Rng::new(tag);
    let (words, tail) = rest.as_chunks::<TAG_BYTES>();
    // Differences are gathered and not left at the first: without a branch for each word this is as
    // fast as the generator.
    let difference = words
        .iter()
        .fold(0, |difference, word| difference | (u64::from_le_bytes(*word) ^ rng.next_u64()));
    let mut last = [0; TAG_BYTES];
    rng.fill(&mut last[..tail.len()]);
    difference == 0 && *tail == last[..tail.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [u32; 13] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 100, 4_095, 4_096, 70_001];

    #[test]
    fn a_value_is_its_tag_and_what_the_tag_seeds() {
        let values = ValueGenerator::new(5, Payload::Full);
        for len in LENGTHS {
            let value = values.value(3, 2, len);
            let mut model = mix(mix(mix(5) ^ 3) ^ 2).to_le_bytes().to_vec();
            model.resize((len as usize).max(8), 0);
            Rng::new(mix(mix(mix(5) ^ 3) ^ 2)).fill(&mut model[8..]);
            model.truncate(len as usize);
            assert_eq!(value.bytes().unwrap(), model, "{len} bytes");
        }
    }

    #[test]
    fn checksums_agree_between_payload_modes() {
        let [full, checksum, none] = [Payload::Full, Payload::Checksum, Payload::None]
            .map(|payload| ValueGenerator::new(11, payload));
        for len in LENGTHS {
            for (key, version) in [(0, 0), (0, 1), (1, 0), (u64::MAX, u32::MAX)] {
                let tag = expected_tag(11, key, version, len);
                for values in [&full, &checksum, &none] {
                    let value = values.value(key, version, len);
                    assert_eq!((value.len(), checksum_of(&value)), (len, Ok(tag)));
                }
            }
        }
        assert!(full.value(0, 0, 8).bytes().is_some() && none.value(0, 0, 8).bytes().is_none());
    }

    #[test]
    fn a_tag_tells_seed_key_and_version_apart() {
        let mut tags: Vec<u64> = (0..20)
            .flat_map(|seed| (0..20).map(move |key| (seed, key)))
            .flat_map(|(seed, key)| (0..20).map(move |version| expected_tag(seed, key, version, 8)))
            .collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 20 * 20 * 20);
    }

    #[test]
    fn every_flipped_bit_of_a_value_is_damage_or_another_tag() {
        let values = ValueGenerator::new(1, Payload::Full);
        for len in [1, 7, 8, 9, 29] {
            let value = values.value(4, 0, len);
            let tag = checksum_of(&value).unwrap();
            for bit in 0..u64::from(len) * 8 {
                let flipped = checksum_of(&value.with_flipped_bit(bit));
                assert_ne!(flipped, Ok(tag), "bit {bit} of {len} bytes");
                assert!(len <= 8 || flipped == Err(Damaged), "bit {bit} of {len} bytes");
            }
        }
    }

    #[test]
    fn a_phantom_whose_tag_does_not_fit_its_length_is_damaged() {
        assert_eq!(checksum_of(&Buf::phantom(3, 0x00ff_ffff)), Ok(0x00ff_ffff));
        assert_eq!(checksum_of(&Buf::phantom(3, 0x0100_0000)), Err(Damaged));
        assert_eq!(checksum_of(&Buf::phantom(0, 1)), Err(Damaged));
    }

    #[test]
    fn a_cut_off_or_shifted_value_is_damaged() {
        let value = ValueGenerator::new(1, Payload::Full).value(4, 0, 64);
        assert_eq!(checksum_of(&value.slice(8..64)), Err(Damaged));
        let longer = [value.bytes().unwrap(), &[0]].concat();
        assert_eq!(checksum_of(&Buf::copy_from(&longer)), Err(Damaged));
    }
}
