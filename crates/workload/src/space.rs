use crate::kind::Kind;
use crate::zoning::Zoning;

/// The meaning of the numbers of a plan's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Keys of a key-value namespace.
    Pairs,
    /// Consecutive blocks of a block namespace, each as long as the plan's values.
    Blocks,
    /// As [`Self::Blocks`], in a zoned namespace: consecutive within the capacity of each zone.
    Zones(Zoning),
}

impl Space {
    /// Returns the kind of a write.
    pub(crate) const fn write_kind(self) -> Kind {
        match self {
            Self::Pairs => Kind::Store,
            Self::Blocks | Self::Zones(_) => Kind::Write,
        }
    }

    /// Returns the kind of a read.
    pub(crate) const fn read_kind(self) -> Kind {
        match self {
            Self::Pairs => Kind::Retrieve,
            Self::Blocks | Self::Zones(_) => Kind::Read,
        }
    }

    /// Returns the first logical block of block number `number`, of `blocks` logical blocks each.
    #[inline]
    pub(crate) const fn lba(self, number: u64, blocks: u32) -> u64 {
        match self {
            Self::Zones(zoning) => zoning.lba(number, blocks),
            Self::Pairs | Self::Blocks => number * blocks as u64,
        }
    }
}
