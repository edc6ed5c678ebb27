//! Pages and batches that have not landed.

use super::landers::Landers;
use crate::format::address::{Address, PageNumber};
use crate::write::pending::{Pending, UnlandedBatch};
use clock::TaskId;
use hashbrown::HashMap;
use media::{Page, PageId, Stream};
use std::collections::VecDeque;
use std::sync::Arc;

type Hasher = foldhash::fast::FixedState;

/// A closed page on its way to the medium.
pub(crate) struct Program {
    pub(crate) at: PageId,
    pub(crate) stream: Stream,
    pub(crate) pending: Arc<Pending>,
    pub(crate) page: Page,
}

/// Pages from the time that they are expected until they have landed.
pub(crate) struct UnlandedPages {
    /// Open pages too.
    pages: HashMap<PageNumber, Arc<Pending>, Hasher>,
    /// Closed pages whose programs are about to begin, in the order of their closing.
    programs: VecDeque<Program>,
    /// Pages that a disk has queued.
    pub(crate) landers: Landers,
    /// Batches of which some page has not landed.
    batches: Vec<UnlandedBatch>,
    /// Tasks that wait until a page lands or a record is undone.
    undecided: Vec<TaskId>,
    /// Pages that were programmed with room left, because no announced store was to join them.
    pub(crate) padded: u64,
    /// Page numbers that records were written to since the last checkpoint.
    pub(crate) numbers_since: u64,
}

impl UnlandedPages {
    pub(crate) fn new() -> Self {
        Self {
            pages: HashMap::with_hasher(Hasher::with_seed(0)),
            programs: VecDeque::new(),
            landers: Landers::default(),
            batches: Vec::new(),
            undecided: Vec::new(),
            padded: 0,
            numbers_since: 0,
        }
    }

    /// Returns how many there are, open pages included.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: PageNumber) -> Option<&Arc<Pending>> {
        self.pages.get(&number)
    }

    /// Returns true while the page, or another of the batch that has a record at `address`, has not
    /// landed.
    #[inline]
    pub(crate) fn has(&self, address: Address) -> bool {
        self.pages.contains_key(&address.page()) || self.batch_of(address).is_some()
    }

    /// Adds an open page.
    #[inline]
    pub(crate) fn expect(&mut self, number: PageNumber, pending: Arc<Pending>) {
        let before = self.pages.insert(number, pending);
        assert!(before.is_none(), "a page is expected once until it has landed");
    }

    /// Gives an open page another number.
    #[inline]
    pub(crate) fn renumber(&mut self, before: PageNumber, number: PageNumber) {
        let pending = self.pages.remove(&before).expect("it was expected");
        self.expect(number, pending);
    }

    /// Removes a page that has landed or is no longer expected.
    #[inline]
    pub(crate) fn remove(&mut self, number: PageNumber) {
        let before = self.pages.remove(&number);
        assert!(before.is_some(), "a page that lands was expected");
    }

    /// Returns the closed pages in any order.
    pub(crate) fn closed(&self) -> impl Iterator<Item = &Arc<Pending>> {
        self.pages.values().filter(|pages| pages.page().is_some())
    }

    /// Returns the closed pages in the order of their numbers.
    pub(crate) fn closed_in_order(&self) -> Vec<(PageNumber, Arc<Pending>)> {
        let closed = self.pages.iter().filter(|(_, pages)| pages.page().is_some());
        let mut closed: Vec<_> = closed.map(|(number, pages)| (*number, pages.clone())).collect();
        closed.sort_unstable_by_key(|(number, _)| *number);
        closed
    }

    /// Queues a program. The caller starts a task, which takes one.
    pub(crate) fn push_program(&mut self, program: Program) {
        self.programs.push_back(program);
    }

    pub(crate) fn take_program(&mut self) -> Program {
        self.programs.pop_front().expect("there is one for each task")
    }

    /// Notes a batch whose pages are on their way.
    pub(crate) fn add_batch(&mut self, batch: UnlandedBatch) {
        assert!(batch.first <= batch.last, "the records of a batch are in the log's order");
        self.batches.push(batch);
    }

    /// Forgets the batch that begins at `first`, which has landed or was undone.
    pub(crate) fn end_batch(&mut self, first: Address) {
        self.batches.retain(|batch| batch.first != first);
    }

    /// Returns all pages of the batch that has a record at `address`, unless all have landed.
    #[inline]
    pub(crate) fn batch_of(&self, address: Address) -> Option<Arc<[Arc<Pending>]>> {
        let is_in = |batch: &&UnlandedBatch| (batch.first..=batch.last).contains(&address);
        self.batches.iter().find(is_in).map(|batch| batch.pages.clone())
    }

    /// Adds the current task to those that wait for a decision.
    pub(crate) fn await_decision(&mut self) {
        self.undecided.push(clock::current());
    }

    /// Wakes the tasks that wait for a decision.
    pub(crate) fn decide(&mut self) {
        self.undecided.drain(..).for_each(clock::wake);
    }
}
