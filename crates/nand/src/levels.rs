use crate::page_map::PageMap;
use base::Nanos;

/// The times of pages of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// From the cells to a register: `t_R`.
    pub read: Nanos,
    /// From a register to the cells: `t_PROG`.
    pub program: Nanos,
}

/// The levels of a cell, from one (SLC) to four (QLC). A cell of several bits has one page of each
/// level, with different times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    levels: [Level; PageMap::LEVELS_MAX],
    map: PageMap,
}

impl Levels {
    /// Returns the same times for all pages.
    pub const fn uniform(read: Nanos, program: Nanos) -> Self {
        let level = Level { read, program };
        Self { levels: [level; PageMap::LEVELS_MAX], map: PageMap::interleaved(1) }
    }

    /// Assigns 1 to 4 `levels` to the pages of a block by `map`, which names only levels that
    /// exist: see [`PageMap::levels`].
    pub fn new(levels: &[Level], map: PageMap) -> Self {
        assert!(
            (1..=PageMap::LEVELS_MAX).contains(&levels.len()) && map.levels() <= levels.len(),
            "a page map names the levels that there are, 1 to 4, not {} of {}",
            map.levels(),
            levels.len()
        );
        let mut all = [Level::default(); PageMap::LEVELS_MAX];
        all[..levels.len()].copy_from_slice(levels);
        Self { levels: all, map }
    }

    /// Returns the times of page `page` of a block.
    #[inline]
    pub fn of(&self, page: u32) -> Level {
        self.levels[self.map.level(page)]
    }
}
