use crate::cells::Cells;
use crate::geometry::Ppa;
use crate::staged::Step;
use clock::TaskId;

/// A change of cells that an array has been asked for. When it is dropped in the middle of that, as
/// a loss of power does, the cells are left as such a cut leaves them.
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
    /// Of the current task, which is about to wait for the array.
    pub(crate) fn once_served(cells: &'a Cells, at: Ppa, step: Step) -> Self {
        Self { cells, at, step, task: Some(clock::current()) }
    }

    /// From now on.
    pub(crate) const fn from_now(cells: &'a Cells, at: Ppa, step: Step) -> Self {
        Self { cells, at, step, task: None }
    }

    /// The change came to its end.
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
