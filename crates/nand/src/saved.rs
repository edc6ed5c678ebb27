use crate::array::Nand;
use crate::cells::{Cells, Die};
use crate::counters::Counters;
use crate::fault::FaultPlan;
use crate::faults::State;
use crate::geometry::{DieId, Geometry};
use serde::{Deserialize, Serialize};

/// The saved content of a die.
#[derive(Serialize, Deserialize)]
pub struct SavedDie(Die);

/// The saved counters and faults of an array.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedNand {
    counters: Counters,
    faults: State,
}

impl Cells {
    /// Returns the content of `die`, for a saved state.
    pub fn save_die(&self, die: DieId) -> SavedDie {
        SavedDie(self.save(die))
    }

    /// Restores an array from all its saved `dies`, in their order. `None` when they do not fit the
    /// sizes.
    pub fn of_saved(geometry: Geometry, dies: Vec<SavedDie>) -> Option<Self> {
        Self::restored(geometry, dies.into_iter().map(|die| die.0).collect())
    }
}

impl Nand {
    /// Saves the array without its cells. No step may be in progress.
    pub fn save(&self) -> SavedNand {
        SavedNand { counters: self.counters(), faults: self.faults.save() }
    }

    /// Restores the counters and faults of a saved array. This one is new, over the cells saved
    /// with it, and was made with [`SavedNand::plan`].
    pub fn restore(&self, saved: SavedNand) {
        self.tally.restore(&saved.counters);
        self.faults.restore(saved.faults);
    }
}

impl SavedNand {
    /// Returns the fault plan that the array was made with.
    pub fn plan(&self) -> FaultPlan {
        self.faults.plan()
    }
}

impl std::fmt::Debug for SavedDie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SavedDie")
    }
}
