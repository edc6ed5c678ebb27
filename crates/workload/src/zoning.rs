/// How the zones of a namespace lie, in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zoning {
    /// Logical blocks from the start of a zone to that of the next.
    pub zone_blocks: u64,
    /// Writable logical blocks of a zone, from its start on.
    pub capacity_blocks: u64,
}

impl Zoning {
    /// Returns how many blocks of `blocks` logical blocks each a zone holds.
    pub const fn per_zone(self, blocks: u32) -> u64 {
        self.capacity_blocks / blocks as u64
    }

    /// Returns the first logical block of block number `number`, of `blocks` logical blocks each.
    #[inline]
    pub(crate) const fn lba(self, number: u64, blocks: u32) -> u64 {
        let per_zone = self.per_zone(blocks);
        number / per_zone * self.zone_blocks + number % per_zone * blocks as u64
    }

    /// Returns the first logical block of the zone of logical block `lba`.
    #[inline]
    pub(crate) const fn start(self, lba: u64) -> u64 {
        lba - lba % self.zone_blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zone of 16 that holds 12: three blocks of four, or two of five and a rest that stays
    /// empty.
    #[test]
    fn blocks_lie_one_after_the_other_in_the_capacity_of_each_zone() {
        let zoning = Zoning { zone_blocks: 16, capacity_blocks: 12 };
        let lbas = |blocks| (0..7).map(|number| zoning.lba(number, blocks)).collect::<Vec<_>>();
        assert_eq!(lbas(4), [0, 4, 8, 16, 20, 24, 32]);
        assert_eq!(lbas(5), [0, 5, 16, 21, 32, 37, 48]);
        assert_eq!([0, 11, 16, 31, 40].map(|lba| zoning.start(lba)), [0, 0, 16, 16, 32]);
    }
}
