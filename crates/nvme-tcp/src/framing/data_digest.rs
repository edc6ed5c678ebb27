use base::checksum::{crc32c, crc32c_append};

/// Data digests are padded to a multiple of this many bytes, where they are.
const UNIT: usize = 4;

/// Which bytes a data digest covers. It makes no difference for data of a multiple of 4 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataDigest {
    /// The data, as the specification says (TCP 1.1, Data Digest).
    #[default]
    Exact,
    /// The data and zeros up to the next multiple of 4 bytes. SPDK's host and target compute it so.
    Padded,
}

impl DataDigest {
    /// The digest of `len` bytes of data whose CRC-32C is `crc`.
    pub(super) fn of(self, crc: u32, len: usize) -> u32 {
        match self {
            Self::Padded if !len.is_multiple_of(UNIT) => {
                crc32c_append(crc, &[0; UNIT][..UNIT - len % UNIT])
            }
            _ => crc,
        }
    }
}

/// Which bytes the digests of a peer cover, once its PDUs have shown that.
#[derive(Debug, Default)]
pub(super) struct PeerDigest(Option<DataDigest>);

impl PeerDigest {
    /// What the first PDU has shown whose length makes a difference.
    pub(super) fn learned(&self) -> Option<DataDigest> {
        self.0
    }

    /// Returns whether `data` agrees with `digest` in one way or the other.
    #[inline]
    pub(super) fn accept(&mut self, digest: u32, data: &[u8]) -> bool {
        let exact = crc32c(data);
        let is_exact = digest == exact;
        if data.len().is_multiple_of(UNIT) || (is_exact && self.0.is_some()) {
            return is_exact;
        }
        let padded = DataDigest::Padded.of(exact, data.len());
        // Two of the 2^32 sums stay the same under padding: they show nothing.
        if exact != padded && (is_exact || digest == padded) {
            self.0.get_or_insert(if is_exact { DataDigest::Exact } else { DataDigest::Padded });
        }
        is_exact || digest == padded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32C of some bytes with zeros after them, by its definition.
    fn sum(data: &[u8], zeros: usize) -> u32 {
        crc32c(&[data, &vec![0; zeros]].concat())
    }

    #[test]
    fn padded_digest_covers_zeros_to_four_bytes() {
        let data: Vec<u8> = (1..=40).collect();
        for len in 1..=data.len() {
            let data = &data[..len];
            assert_eq!(DataDigest::Exact.of(crc32c(data), len), sum(data, 0));
            assert_eq!(DataDigest::Padded.of(crc32c(data), len), sum(data, (4 - len % 4) % 4));
        }
    }

    #[test]
    fn peer_accepts_both_digests_and_keeps_the_first() {
        for (zeros, way) in [(0, DataDigest::Exact), (1, DataDigest::Padded)] {
            let mut peer = PeerDigest::default();
            assert!(peer.accept(sum(b"four", 0), b"four"));
            assert!(!peer.accept(sum(b"abc", 2), b"abc"), "too many zeros");
            assert!(!peer.accept(sum(b"abd", zeros), b"abc"));
            assert!(!peer.accept(sum(b"four", 4), b"four"));
            assert_eq!(peer.learned(), None, "damaged data and whole dwords show nothing");
            assert!(peer.accept(sum(b"abc", zeros), b"abc"));
            assert_eq!(peer.learned(), Some(way));
            assert!(peer.accept(sum(b"abc", 1 - zeros), b"abc"));
            assert_eq!(peer.learned(), Some(way));
        }
    }

    #[test]
    fn digest_that_padding_does_not_change_shows_nothing() {
        // CRC adds data to its register: four bytes equal to the register leave zeros in it, and
        // zeros after them keep it so.
        let register = !crc32c(b"x");
        let data = [b"x", &register.to_le_bytes()[..]].concat();
        assert_eq!(sum(&data, 0), sum(&data, 3));
        let mut peer = PeerDigest::default();
        assert!(peer.accept(sum(&data, 0), &data));
        assert_eq!(peer.learned(), None);
    }
}
