use serde::{Deserialize, Serialize};
use std::fmt;

/// The sizes of a flash array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Buses between the controller and the dies.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Blocks of a plane, bad ones included.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Spare bytes of a page for the controller, without those of error correction.
    pub spare_bytes: u32,
}

impl Geometry {
    /// Returns the number of dies.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Returns the number of blocks of a die, over all its planes.
    pub const fn blocks_per_die(&self) -> u32 {
        self.planes_per_die * self.blocks_per_plane
    }

    /// Returns the number of planes of all dies.
    pub const fn units(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Returns the plane of `block` within its die.
    #[inline]
    pub const fn plane_of(&self, block: BlockId) -> u32 {
        block.block % self.planes_per_die
    }

    /// Returns the data bytes of the whole array, bad blocks included.
    pub const fn bytes(&self) -> u64 {
        let pages_per_die = self.blocks_per_die() as u64 * self.pages_per_block as u64;
        self.dies() as u64 * pages_per_die * self.page_bytes as u64
    }

    /// Returns the channel of `die`: consecutive dies lie on different channels.
    #[inline]
    pub const fn channel_of(&self, die: DieId) -> u32 {
        die.0 % self.channels
    }

    /// Panics unless `block` exists in the array.
    #[inline]
    pub(crate) fn assert_holds(&self, block: BlockId) {
        assert!(
            block.die.0 < self.dies() && block.block < self.blocks_per_die(),
            "{block} lies outside {self:?}"
        );
    }
}

/// A die, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DieId(pub u32);

/// A block of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId {
    /// Its die.
    pub die: DieId,
    /// Its number on the die, from 0 over all planes: it lies in plane `block % planes_per_die`.
    pub block: u32,
}

/// A physical page address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppa {
    /// Its block.
    pub block: BlockId,
    /// Its number in the block, from 0.
    pub page: u32,
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} of die {}", self.block, self.die.0)
    }
}

impl fmt::Display for Ppa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of {}", self.page, self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_from_the_sizes() {
        let geometry = Geometry {
            channels: 8,
            dies_per_channel: 8,
            planes_per_die: 2,
            blocks_per_plane: 128,
            pages_per_block: 256,
            page_bytes: 16384,
            spare_bytes: 1024,
        };
        assert_eq!((geometry.dies(), geometry.blocks_per_die()), (64, 256));
        assert_eq!(geometry.bytes(), 64 << 30);
        let channels: Vec<u32> = (0..9).map(|die| geometry.channel_of(DieId(die))).collect();
        assert_eq!(channels, [0, 1, 2, 3, 4, 5, 6, 7, 0]);
    }
}
