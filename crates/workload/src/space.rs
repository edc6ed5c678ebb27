use crate::kind::Kind;
use crate::zoning::Zoning;

/// What the numbers of a plan's keys stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Keys of a key-value namespace.
    Pairs,
    /// Blocks of a block namespace, all as long as the plan's values are and one after the other.
    Blocks,
    /// The same in a zoned namespace, one after the other within the capacity of each zone.
    Zones(Zoning),
}

impl Space {
    /// What writing one is called.
    pub(crate) const fn write_kind(self) -> Kind {
        match self {
            Self::Pairs => Kind::Store,
            Self::Blocks | Self::Zones(_) => Kind::Write,
        }
    }

    /// What reading one is called.
    pub(crate) const fn read_kind(self) -> Kind {
        match self {
            Self::Pairs => Kind::Retrieve,
            Self::Blocks | Self::Zones(_) => Kind::Read,
        }
    }

    /// The first logical block of block number `number`, of `blocks` logical blocks each.
    #[inline]
    pub(crate) const fn lba(self, number: u64, blocks: u32) -> u64 {
        match self {
            Self::Zones(zoning) => zoning.lba(number, blocks),
            Self::Pairs | Self::Blocks => number * blocks as u64,
        }
    }
}
