use base::Key;
use base::limits::LANES;

/// Bits of a hash that choose the lane: the highest.
pub(crate) const LANE_BITS: u32 = LANES.trailing_zeros();

/// A key with its hash, which is computed once for each command.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'a> {
    /// XXH3 of the key.
    pub hash: u64,
    /// The key.
    pub key: &'a Key,
}

impl<'a> HashedKey<'a> {
    /// Hashes `key`.
    #[inline]
    pub fn new(key: &'a Key) -> Self {
        Self { hash: key.hash(), key }
    }
}

impl<'a> From<&'a Key> for HashedKey<'a> {
    #[inline]
    fn from(key: &'a Key) -> Self {
        Self::new(key)
    }
}

/// Returns the number of the lane of `hash`.
#[inline]
pub(crate) const fn lane_of(hash: u64) -> usize {
    (hash >> (64 - LANE_BITS)) as usize
}

/// Returns the 32 bits of a hash below those that choose the lane.
#[inline]
pub(crate) const fn hash_in_lane(hash: u64) -> u32 {
    (hash << LANE_BITS >> 32) as u32
}
