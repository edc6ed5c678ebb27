use crate::cells::Cells;
use crate::geometry::Ppa;
use crate::staged::Step;
use clock::TaskId;

/// A change of cells in progress. Dropping it unfinished, as a loss of power does, leaves the cells
/// as such a cut does.
#[must_use = "dropping it cuts the change off"]
#[derive(Debug)]
pub(crate) struct Torn<'a> {
    cells: &'a Cells,
    at: Ppa,
    step: Step,
    /// The task that the array may not have served yet.
    task: Option<TaskId>,
}

impl<'a> Torn<'a> {
    /// Returns the change of the current task, which is about to wait for the array.
    pub(crate) fn once_served(cells: &'a Cells, at: Ppa, step: Step) -> Self {
        Self { cells, at, step, task: Some(clock::current()) }
    }

    /// Returns a change that begins now.
    pub(crate) const fn from_now(cells: &'a Cells, at: Ppa, step: Step) -> Self {
        Self { cells, at, step, task: None }
    }

    /// Ends the change as complete.
    pub(crate) const fn whole(self) {
        std::mem::forget(self);
    }
}

impl Drop for Torn<'_> {
    fn drop(&mut self) {
        if !self.task.is_none_or(clock::was_at_work) {
            return;
        }
        match self.step {
            Step::Program | Step::Copyback => self.cells.tear(self.at),
            Step::Erase => self.cells.half_erase(self.at.block),
            Step::Read | Step::Retire => {}
        }
    }
}
