use crate::page_ftl::PageFtl;
use crate::page_ftl::block::Phase;

/// Blocks cleaned for space between two that wear levelling moves. This keeps the added work below
/// an eighth of the flash's erases.
const VICTIMS_BETWEEN: u32 = 8;

impl PageFtl {
    /// Returns the least worn full block of a unit, if its blocks differ by more than the profile
    /// allows. Moving its long-lived data lets the block take its share of erases.
    pub(crate) fn choose_cold(&self, unit: u32) -> Option<u32> {
        let state = self.state();
        let gap = self.config.wear_gap;
        if gap == 0 || state.units[unit as usize].since_wear < VICTIMS_BETWEEN {
            return None;
        }
        let good = || {
            let blocks = self.layout.blocks_of(unit);
            let blocks = blocks.map(|number| (number, &state.blocks[number as usize]));
            blocks.filter(|(_, block)| block.phase != Phase::Bad && !block.doomed)
        };
        let most = good().map(|(_, block)| block.erases).max()?;
        let full = good()
            .filter(|(_, block)| block.phase == Phase::Full && block.landed == self.layout.pages);
        let (number, coldest) = full.min_by_key(|(_, block)| block.erases)?;
        (most - coldest.erases > gap).then_some(number)
    }
}
