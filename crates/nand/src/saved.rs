use crate::array::Nand;
use crate::cells::{Cells, Die};
use crate::counters::Counters;
use crate::fault::FaultPlan;
use crate::faults::State;
use crate::geometry::{DieId, Geometry};
use serde::{Deserialize, Serialize};

/// What a die holds, in a saved state.
#[derive(Serialize, Deserialize)]
pub struct SavedDie(Die);

/// What an array has done and has yet to suffer, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedNand {
    counters: Counters,
    faults: State,
}

impl Cells {
    /// What `die` holds, for a saved state.
    pub fn save_die(&self, die: DieId) -> SavedDie {
        SavedDie(self.save(die))
    }

    /// The array of which all `dies` were saved, in their order. `None` when they are not those of
    /// an array of these sizes.
    pub fn of_saved(geometry: Geometry, dies: Vec<SavedDie>) -> Option<Self> {
        Self::restored(geometry, dies.into_iter().map(|die| die.0).collect())
    }
}

impl Nand {
    /// All there is to the array beside its cells, while no step is under way.
    pub fn save(&self) -> SavedNand {
        SavedNand { counters: self.counters(), faults: self.faults.save() }
    }

    /// Goes on where the array stopped that was saved. This one is new, over the cells that were
    /// saved with it, and has the plan that [`SavedNand::plan`] gives.
    pub fn restore(&self, saved: SavedNand) {
        self.tally.restore(&saved.counters);
        self.faults.restore(saved.faults);
    }
}

impl SavedNand {
    /// The faults that the array was to have from its beginning.
    pub fn plan(&self) -> FaultPlan {
        self.faults.plan()
    }
}

impl std::fmt::Debug for SavedDie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SavedDie")
    }
}
