use nand::{BlockId, Geometry};
use std::ops::Range;

/// The part of a flash array that one translation layer uses: the same blocks of every plane of
/// every die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first block, by number within a plane.
    pub first: u32,
    /// Its blocks of each plane.
    pub count: u32,
}

impl Region {
    /// Returns the region that covers an array of this geometry.
    pub const fn all(geometry: &Geometry) -> Self {
        Self { first: 0, count: geometry.blocks_per_plane }
    }

    /// Returns the numbers, within a die, of the region's blocks: of all planes, which alternate.
    pub const fn blocks_of_die(self, geometry: &Geometry) -> Range<u32> {
        let planes = geometry.planes_per_die;
        self.first * planes..(self.first + self.count) * planes
    }

    /// Returns the numbers, within a die, of the region's blocks of one plane.
    pub fn blocks_of_plane(
        self,
        geometry: &Geometry,
        plane: u32,
    ) -> impl Iterator<Item = u32> + Clone + use<> {
        let planes = geometry.planes_per_die;
        (self.first..self.first + self.count).map(move |block| block * planes + plane)
    }

    /// True when `block` is in the region.
    pub fn has(self, geometry: &Geometry, block: BlockId) -> bool {
        self.blocks_of_die(geometry).contains(&block.block)
    }

    /// Panics unless the region has blocks and all of them exist in an array of this geometry.
    pub(crate) fn assert_fits(self, geometry: &Geometry) {
        assert!(
            self.count > 0 && self.first + self.count <= geometry.blocks_per_plane,
            "{self:?} is a part of the {} blocks of a plane",
            geometry.blocks_per_plane
        );
    }
}
