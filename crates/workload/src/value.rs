use base::{Buf, BufPool, Rng, mix};
use std::fmt;

/// What the device keeps of the bytes of values.
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

/// The most bytes of freed values of one size kept for reuse: 64 values of 1 MiB.
const POOL_CLASS_BYTES_MAX: usize = 64 << 20;

/// Makes the value of each version of each key.
///
/// A value is its tag, little endian, followed by what the tag expands to: so that a value can be
/// checked without knowing which it should be. Each 4 KiB of that are the same random words, but
/// each time exclusive-or another word that follows from the tag and the number of the 4 KiB: which
/// costs less than a generator of each word does, and looks as random to a disk that
/// compresses. A value of less than 8 bytes is as much of the tag as fits, and its tag is that, in
/// every payload mode.
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
    /// Returns the values of `seed`, with their bytes only if `payload` keeps them.
    pub fn new(seed: u64, payload: Payload) -> Self {
        Self { seed, payload, pool: BufPool::new(POOL_CLASS_BYTES_MAX) }
    }

    /// Returns the value of `len` bytes of `version` of key number `key`.
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

    /// Returns the tag of that value.
    #[inline]
    pub fn tag(&self, key: u64, version: u32, len: u32) -> u64 {
        expected_tag(self.seed, key, version, len)
    }
}

/// Returns the tag of the value of `len` bytes that `seed` gives `version` of key number `key`.
#[inline]
pub const fn expected_tag(seed: u64, key: u64, version: u32, len: u32) -> u64 {
    masked(mix(mix(mix(seed) ^ key) ^ version as u64), len)
}

/// Returns the tag of a generated value, after checking that real bytes are the expansion of their
/// own tag.
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

/// Whether `bytes`, from a multiple of 4 KiB of a value on, are of a generated value, whatever its
/// tag. Fewer than 24 bytes do not tell, and count as not generated.
pub fn is_generated(bytes: &[u8]) -> bool {
    let part = &bytes[..bytes.len().min(PAD_WORDS * TAG_BYTES)];
    // The first word is the tag, or the last of the 4 KiB before, which ends one word late.
    let words = part.as_chunks::<TAG_BYTES>().0.iter().skip(1);
    let mut keys = words.zip(&PAD).map(|(word, pad)| u64::from_le_bytes(*word) ^ pad);
    match (keys.next(), keys.next()) {
        (Some(first), Some(second)) => first == second && keys.all(|key| key == first),
        _ => false,
    }
}

/// As much of `tag` as a value of `len` bytes holds.
#[inline]
const fn masked(tag: u64, len: u32) -> u64 {
    if len as usize >= TAG_BYTES { tag } else { tag & ((1 << (len * 8)) - 1) }
}

/// What values are made of.
static PAD: [u64; PAD_WORDS] = pad();

const PAD_WORDS: usize = 512;

const fn pad() -> [u64; PAD_WORDS] {
    let mut rng = Rng::new(0);
    let mut pad = [0; PAD_WORDS];
    let mut at = 0;
    while at < PAD_WORDS {
        pad[at] = rng.next_u64();
        at += 1;
    }
    pad
}

/// What the pad is combined with, the first time, the second, and so on.
fn keys(tag: u64) -> impl Iterator<Item = u64> {
    (0..).map(move |number| mix(tag ^ mix(number)))
}

fn expand(tag: u64, value: &mut [u8]) {
    let (head, rest) = value.split_at_mut(value.len().min(TAG_BYTES));
    head.copy_from_slice(&tag.to_le_bytes()[..head.len()]);
    for (part, key) in rest.chunks_mut(PAD_WORDS * TAG_BYTES).zip(keys(tag)) {
        let (words, tail) = part.as_chunks_mut::<TAG_BYTES>();
        let next = PAD[words.len() % PAD_WORDS];
        for (word, pad) in words.iter_mut().zip(&PAD) {
            *word = (pad ^ key).to_le_bytes();
        }
        tail.copy_from_slice(&(next ^ key).to_le_bytes()[..tail.len()]);
    }
}

fn is_expansion(tag: u64, rest: &[u8]) -> bool {
    rest.chunks(PAD_WORDS * TAG_BYTES).zip(keys(tag)).all(|(part, key)| {
        let (words, tail) = part.as_chunks::<TAG_BYTES>();
        let next = PAD[words.len() % PAD_WORDS];
        // Collects all differences rather than stopping at the first: without a branch for each
        // word this is as fast as memory.
        let difference = words.iter().zip(&PAD).fold(0, |difference, (word, pad)| {
            difference | (u64::from_le_bytes(*word) ^ pad ^ key)
        });
        difference == 0 && *tail == (next ^ key).to_le_bytes()[..tail.len()]
    })
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
            let tag = mix(mix(mix(5) ^ 3) ^ 2);
            let mut model = tag.to_le_bytes().to_vec();
            let mut pad = [0; 4_096];
            Rng::new(0).fill(&mut pad);
            for at in 0..len as usize {
                let key = mix(tag ^ mix(at as u64 / 4_096)).to_le_bytes();
                model.push(pad[at % 4_096] ^ key[at % 8]);
            }
            model.truncate(len as usize);
            assert_eq!(value.bytes().unwrap(), model, "{len} bytes");
        }
    }

    /// All bytes are as frequent, and four in a row are repeated as seldom, as in random ones, also
    /// where a compressor sees one value after the other.
    #[test]
    fn values_cannot_be_compressed() {
        let values = ValueGenerator::new(9, Payload::Full);
        let all: Vec<u8> = (0..64)
            .flat_map(|key| values.value(key, 0, 16_384).bytes().unwrap().to_vec())
            .collect();
        let mut counts = [0_u32; 256];
        for byte in &all {
            counts[usize::from(*byte)] += 1;
        }
        let mean = u32::try_from(all.len()).unwrap() / 256;
        assert!(counts.iter().all(|count| count.abs_diff(mean) < mean / 10), "{counts:?}");
        let mut fours: Vec<&[u8]> = all.windows(4).collect();
        fours.sort_unstable();
        let repeated = fours.windows(2).filter(|pair| pair[0] == pair[1]).count();
        // Of so many random ones, n^2 / 2^33 are.
        assert!(repeated < 4 * (all.len().pow(2) >> 33), "{repeated} repeated");
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
    fn any_4_kib_of_a_generated_value_tell_that_it_is_one() {
        let value = ValueGenerator::new(3, Payload::Full).value(4, 2, 16_384);
        let bytes = value.bytes().unwrap();
        for start in [0, 4_096, 8_192, 12_288] {
            assert!(is_generated(&bytes[start..start + 4_096]), "{start}");
        }
        assert!(is_generated(&bytes[..24]) && !is_generated(&bytes[..23]));
        assert!(!is_generated(&bytes[8..4_104]), "it begins elsewhere");
        for at in 8..4_096 {
            let mut other = bytes[..4_096].to_vec();
            other[at] ^= 1;
            assert!(!is_generated(&other), "byte {at}");
        }
        assert!(!is_generated(&[0; 4_096]) && !is_generated(&[]));
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
