use crate::region::Region;
use nand::{BlockId, DieId, Geometry};

/// The dies that the pages of an extent alternate between, with all their planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stripe {
    /// One die: small extents, each as fast as its die.
    Die,
    /// All dies of a channel.
    Channel,
    /// All dies: the largest extents, each as fast as the drive.
    All,
}

/// A plane of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) die: DieId,
    pub(crate) plane: u32,
}

/// The stripe sets of an array. Set `s` holds the dies `s`, `s + sets`, `s + 2 * sets` and so on.
/// Consecutive dies lie on different channels, so these are the dies that each kind of stripe
/// names. A stripe goes through the first planes of all its dies, then through the second ones.
/// Neighbours thus lie on different dies, and long runs give each die pages for all its planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sets {
    /// The number of sets.
    pub(crate) count: u32,
    /// Units of each set.
    pub(crate) width: u32,
    /// Dies of each set.
    dies: u32,
    planes: u32,
}

impl Sets {
    pub(crate) fn new(stripe: Stripe, geometry: &Geometry) -> Self {
        let count = match stripe {
            Stripe::Die => geometry.dies(),
            Stripe::Channel => geometry.channels,
            Stripe::All => 1,
        };
        let (dies, planes) = (geometry.dies() / count, geometry.planes_per_die);
        Self { count, width: dies * planes, dies, planes }
    }

    /// Returns the units of all sets, in the order of [`Self::index`].
    pub(crate) fn units(self) -> impl Iterator<Item = Unit> {
        let dies = (0..self.count * self.dies).map(DieId);
        dies.flat_map(move |die| (0..self.planes).map(move |plane| Unit { die, plane }))
    }

    #[inline]
    pub(crate) const fn unit(self, set: u32, position: u32) -> Unit {
        let die = DieId(set + position % self.dies * self.count);
        Unit { die, plane: position / self.dies }
    }

    /// Returns a number for each unit, from 0.
    #[inline]
    pub(crate) const fn index(self, unit: Unit) -> usize {
        (unit.die.0 * self.planes + unit.plane) as usize
    }

    /// Returns the set that has `unit`.
    pub(crate) const fn set_of(self, unit: Unit) -> u32 {
        unit.die.0 % self.count
    }

    pub(crate) const fn unit_of(self, block: BlockId) -> Unit {
        Unit { die: block.die, plane: block.block % self.planes }
    }
}

impl Unit {
    /// Returns the blocks of `region` in this unit.
    pub(crate) fn blocks(
        self,
        region: Region,
        geometry: &Geometry,
    ) -> impl Iterator<Item = BlockId> + Clone + use<> {
        let blocks = region.blocks_of_plane(geometry, self.plane);
        blocks.map(move |block| BlockId { die: self.die, block })
    }
}
