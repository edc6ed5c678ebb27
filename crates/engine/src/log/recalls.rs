//! Extents of which the headers are to be recalled.

use media::ExtentId;
use std::collections::VecDeque;

/// They are recalled one after the other by a task, which exists while the list is `Some`.
#[derive(Debug, Default)]
pub(crate) struct Recalls(Option<VecDeque<ExtentId>>);

impl Recalls {
    /// Adds an extent. Returns true when the caller has to start the task.
    pub(crate) fn push(&mut self, extent: ExtentId) -> bool {
        let starts = self.0.is_none();
        self.0.get_or_insert_default().push_back(extent);
        starts
    }

    /// Returns the next extent. Without one, the task ends.
    pub(crate) fn next(&mut self) -> Option<ExtentId> {
        let next = self.0.as_mut().and_then(VecDeque::pop_front);
        if next.is_none() {
            self.0 = None;
        }
        next
    }
}
