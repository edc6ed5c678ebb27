//! Checksums and hashes that are stored, sent or compared across runs.

use crc_fast::CrcAlgorithm::Crc32Iscsi;
use xxhash_rust::xxh3;

/// CRC-32C (Castagnoli; RFC 3720 appendix B.4) of `bytes`.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The CRC-32C of bytes whose [`crc32c`] is `crc`, followed by `more`.
pub fn crc32c_append(crc: u32, more: &[u8]) -> u32 {
    let mut digest = crc_fast::Digest::new_with_init_state(Crc32Iscsi, (!crc).into());
    digest.update(more);
    #[expect(clippy::cast_possible_truncation, reason = "a 32-bit checksum in a 64-bit return")]
    let crc = digest.finalize() as u32;
    crc
}

/// The polynomial of CRC-32C, its bits in the order in which messages have theirs.
const CASTAGNOLI: u32 = 0x82F6_3B78;

/// Which bit, if turned over, makes the CRC-32C of a message of `len` bytes differ from another by
/// `difference`: counted from the message's last one backwards. No two bits of less than 256 MiB
/// make the same difference.
pub fn crc32c_flipped_bit(difference: u32, len: u64) -> Option<u64> {
    let mut of_bit = CASTAGNOLI;
    (0..8 * len).find(|_| {
        let is_it = of_bit == difference;
        of_bit = (of_bit >> 1) ^ if of_bit & 1 == 1 { CASTAGNOLI } else { 0 };
        is_it
    })
}

/// XXH3, 64 bits, seed 0.
#[inline]
pub fn hash64(bytes: &[u8]) -> u64 {
    xxh3::xxh3_64(bytes)
}

/// XXH3, 128 bits, seed 0.
pub fn hash128(bytes: &[u8]) -> u128 {
    xxh3::xxh3_128(bytes)
}

/// An XXH3 digest of a sequence of words, in order.
#[derive(Clone, Default)]
pub struct Digest {
    state: xxh3::Xxh3,
}

impl Digest {
    /// Adds `words`.
    #[inline]
    pub fn add(&mut self, words: &[u64]) {
        for word in words {
            self.state.update(&word.to_le_bytes());
        }
    }

    /// The digest of all that was added.
    pub fn value(&self) -> u64 {
        self.state.digest()
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({:016x})", self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_gives_the_check_value_of_its_standard() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        // RFC 3720 B.4: 32 bytes of zeroes.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
    }

    #[test]
    fn a_checksum_continues_from_a_partial_one() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3_000).collect();
        for cut in [0, 1, 8, 100, 2_999, 3_000] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(crc32c_append(crc32c(head), tail), crc32c(&bytes), "{cut}");
        }
    }

    #[test]
    fn the_bit_is_found_that_was_turned_over_and_none_where_two_were() {
        for len in [1, 7, 300] {
            let message: Vec<u8> = (0..=255).cycle().take(len).collect();
            let bits = 8 * len as u64;
            let of = |flips: &[u64]| {
                let mut flipped = message.clone();
                for bit in flips {
                    let at = usize::try_from(bits - 1 - bit).unwrap();
                    flipped[at / 8] ^= 1 << (at % 8);
                }
                crc32c_flipped_bit(crc32c(&message) ^ crc32c(&flipped), len as u64)
            };
            for bit in 0..bits {
                assert_eq!(of(&[bit]), Some(bit));
                assert_eq!(of(&[bit, (bit + 1) % bits]), None);
            }
            assert_eq!(of(&[]), None);
        }
    }

    #[test]
    fn xxh3_gives_the_value_of_its_specification_for_no_input() {
        assert_eq!(hash64(b""), 0x2D06_8005_38D3_94C2);
    }

    #[test]
    fn digest_depends_on_order() {
        let (mut a, mut b) = (Digest::default(), Digest::default());
        a.add(&[1, 2]);
        b.add(&[2, 1]);
        assert_ne!(a.value(), b.value());
    }
}
