use clock::{Rank, Stage, TaskId};
use media::{Error, ExtentId, Page, PageId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A block of an extent: which extent, and its place in the stripe.
pub(crate) type Place = (ExtentId, u32);

/// The places whose block failed and is being replaced, with their waiting pages.
#[derive(Debug, Default)]
pub(crate) struct Repairs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Number of unfinished programs of each place.
    under_way: BTreeMap<Place, u32>,
    open: BTreeMap<Place, Repair>,
    /// Results of pages, until they are taken.
    results: BTreeMap<PageId, Result<(), Error>>,
}

#[derive(Debug, Default)]
struct Repair {
    /// By number within the extent: pages that are not on the flash yet.
    pages: BTreeMap<u32, Waiting>,
    /// The task that waits for the last program under way to end.
    repairer: Option<TaskId>,
}

#[derive(Debug)]
struct Waiting {
    page: Page,
    /// `None` for the page of the repairer.
    task: Option<TaskId>,
}

impl Repairs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a program of `at`. Returns false when the block is being replaced: the repair
    /// programs the page, and the caller waits in [`Self::landed`].
    pub(crate) fn begin(&self, place: Place, at: PageId, page: &Page) -> bool {
        let mut state = self.state();
        if let Some(repair) = state.open.get_mut(&place) {
            let task = Some(clock::current());
            repair.pages.insert(at.page, Waiting { page: page.clone(), task });
            return false;
        }
        *state.under_way.entry(place).or_default() += 1;
        true
    }

    /// Ends a program of `place`, whether it succeeded or failed.
    pub(crate) fn end(&self, place: Place) {
        let mut state = self.state();
        let under_way = state.under_way.get_mut(&place).expect("its program began");
        *under_way -= 1;
        if *under_way == 0 {
            state.under_way.remove(&place);
            let repair = state.open.get_mut(&place);
            if let Some(repairer) = repair.and_then(|repair| repair.repairer.take()) {
                clock::wake(repairer);
            }
        }
    }

    /// Adds `at`, whose program failed. Returns true for the first failure of its block, which the
    /// caller then replaces. Otherwise the caller waits in [`Self::landed`].
    pub(crate) fn open(&self, place: Place, at: PageId, page: Page) -> bool {
        let mut state = self.state();
        let is_first = !state.open.contains_key(&place);
        let task = (!is_first).then(clock::current);
        let repair = state.open.entry(place).or_default();
        repair.pages.insert(at.page, Waiting { page, task });
        is_first
    }

    /// Waits until another task has programmed `at` or given it up.
    pub(crate) async fn landed(&self, at: PageId) -> Result<(), Error> {
        clock::park(Rank::Credit, Stage::Queue).await;
        self.result(at)
    }

    /// Takes the result of `at`.
    pub(crate) fn result(&self, at: PageId) -> Result<(), Error> {
        self.state().results.remove(&at).expect("a repair ends with a result for each page")
    }

    /// Waits until no program of the place is unfinished.
    pub(crate) async fn quiet(&self, place: Place) {
        {
            let mut state = self.state();
            if !state.under_way.contains_key(&place) {
                return;
            }
            let repair = state.open.get_mut(&place).expect("the caller repairs it");
            repair.repairer = Some(clock::current());
        }
        clock::park(Rank::Credit, Stage::Queue).await;
    }

    /// Returns a page that is not on the flash yet.
    pub(crate) fn page(&self, place: Place, number: u32) -> Option<Page> {
        let state = self.state();
        state.open[&place].pages.get(&number).map(|waiting| waiting.page.clone())
    }

    /// Returns the first page of the place that is not on the flash. Without one, ends the repair.
    pub(crate) fn next(&self, place: Place) -> Option<(u32, Page)> {
        let mut state = self.state();
        let first = state.open[&place].pages.first_key_value();
        let next = first.map(|(number, waiting)| (*number, waiting.page.clone()));
        if next.is_none() {
            state.open.remove(&place);
        }
        next
    }

    /// Marks the pages of the place below number `end` as programmed.
    pub(crate) fn land_below(&self, place: Place, end: u32) {
        let mut state = self.state();
        let pages = &mut state.open.get_mut(&place).expect("it is under repair").pages;
        let rest = pages.split_off(&end);
        let landed = std::mem::replace(pages, rest);
        state.finish(place.0, landed, |_| Ok(()));
    }

    /// Ends the repair without its pages on the flash.
    pub(crate) fn give_up(&self, place: Place, error: impl Fn(PageId) -> Error) {
        let mut state = self.state();
        let repair = state.open.remove(&place).expect("it is under repair");
        state.finish(place.0, repair.pages, |at| Err(error(at)));
    }
}

impl State {
    fn finish(
        &mut self,
        extent: ExtentId,
        pages: BTreeMap<u32, Waiting>,
        result: impl Fn(PageId) -> Result<(), Error>,
    ) {
        for (page, waiting) in pages {
            let at = PageId { extent, page };
            self.results.insert(at, result(at));
            if let Some(task) = waiting.task {
                clock::wake(task);
            }
        }
    }
}
