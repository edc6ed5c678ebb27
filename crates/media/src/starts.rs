use crate::extent::{ExtentId, PageId};
use clock::{Rank, Stage, TaskId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Extents whose first page has not landed yet, with the appends that wait for it: how a medium
/// makes a reset whole.
///
/// Nothing else of an extent is written before its first page is, and a reset takes that page away
/// before the others: so an extent without it was being reset, and the rest of it means nothing.
#[derive(Debug, Default)]
pub struct Starts(Mutex<BTreeMap<ExtentId, VecDeque<TaskId>>>);

impl Starts {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<ExtentId, VecDeque<TaskId>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `extent` has been opened.
    pub fn open(&self, extent: ExtentId) {
        self.waiting().insert(extent, VecDeque::new());
    }

    /// Waits until the first page of the extent of `at` has landed, unless that is `at` itself.
    /// Appends go on one after the other, in the order in which they came.
    pub async fn pass(&self, at: PageId) {
        if at.page == 0 || !self.waits(at.extent) {
            return;
        }
        clock::park(Rank::Credit, Stage::Queue).await;
        let mut starts = self.waiting();
        let queue = starts.get_mut(&at.extent).expect("it is there while somebody waits");
        queue.pop_front();
        match queue.front() {
            Some(next) => clock::wake(*next),
            None => drop(starts.remove(&at.extent)),
        }
    }

    /// Puts the current task in the extent's queue, if there is one.
    fn waits(&self, extent: ExtentId) -> bool {
        let mut starts = self.waiting();
        let Some(queue) = starts.get_mut(&extent) else { return false };
        queue.push_back(clock::current());
        true
    }

    /// The extents whose first page has not landed, for a saved state: nothing waits for them.
    pub fn save(&self) -> Vec<ExtentId> {
        self.waiting().keys().copied().collect()
    }

    /// As [`Self::open`], of extents that were saved.
    pub fn restore(&self, extents: &[ExtentId]) {
        for extent in extents {
            self.open(*extent);
        }
    }

    /// The first page of `extent` has landed.
    pub fn landed(&self, extent: ExtentId) {
        let mut starts = self.waiting();
        match starts.get(&extent).and_then(VecDeque::front) {
            Some(first) => clock::wake(*first),
            None => drop(starts.remove(&extent)),
        }
    }
}
