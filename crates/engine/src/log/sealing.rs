//! Full extents that the medium is still to note as sealed.

use clock::TaskId;

/// Their number, and the tasks that wait until there is none.
#[derive(Debug, Default)]
pub(crate) struct Sealing {
    extents: u32,
    waiters: Vec<TaskId>,
}

impl Sealing {
    pub(crate) fn begin(&mut self) {
        self.extents += 1;
    }

    /// Takes an extent off. The last one wakes the tasks that wait.
    pub(crate) fn end(&mut self) {
        assert!(self.extents > 0, "each extent that is being sealed is counted");
        self.extents -= 1;
        if self.extents == 0 {
            self.waiters.drain(..).for_each(clock::wake);
        }
    }

    /// Adds the current task to those that wait, unless there is no extent.
    pub(crate) fn await_all(&mut self) -> bool {
        let waits = self.extents > 0;
        if waits {
            self.waiters.push(clock::current());
        }
        waits
    }
}
