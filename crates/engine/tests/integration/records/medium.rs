//! A medium on which the test decides which pages land, and which can be read.

use clock::{Class, LocalFuture, Rank, Stage, TaskId};
use media::{Error, ExtentId, ExtentInfo, Label, Media, Page, PageId, Select, Shape, Span, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// See the module's documentation. Pages land at once, unless they are held back.
pub(crate) struct Wary {
    shape: Shape,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    extents: BTreeMap<ExtentId, Extent>,
    holds: bool,
    held: Vec<(PageId, TaskId)>,
    holds_reads: bool,
    readers: Vec<TaskId>,
    unreadable: BTreeSet<PageId>,
    refused: BTreeSet<ExtentId>,
    refused_pages: BTreeSet<PageId>,
    keeps_refused: bool,
    resets: u64,
    /// What a loss of power leaves after each reset, where the test wants it.
    remains: Option<Vec<Arc<Wary>>>,
}

#[derive(Clone)]
struct Extent {
    label: Label,
    /// `None` is a page that has not landed.
    pages: Vec<Option<Page>>,
}

impl State {
    fn keep(&mut self, at: PageId, page: Page) {
        let extent = self.extents.get_mut(&at.extent).expect("an open extent");
        extent.pages[at.page as usize] = Some(page);
    }
}

impl Wary {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test has panicked")
    }

    /// Holds back all pages that are appended after this call.
    pub(crate) fn hold(&self) {
        self.state().holds = true;
    }

    /// Returns the pages that are held back, in the order of appending.
    pub(crate) fn held(&self) -> Vec<PageId> {
        self.state().held.iter().map(|(at, _)| *at).collect()
    }

    /// Returns the held pages of this stream.
    pub(crate) fn held_of(&self, stream: Stream) -> Vec<PageId> {
        let state = self.state();
        let held = state.held.iter().map(|(at, _)| *at);
        held.filter(|at| state.extents[&at.extent].label.stream == stream).collect()
    }

    /// Lets one of them land.
    pub(crate) fn land(&self, at: PageId) {
        let mut state = self.state();
        let which = state.held.iter().position(|(held, _)| *held == at).expect("a held page");
        let (_, task) = state.held.remove(which);
        clock::wake(task);
    }

    /// Lets all held pages land, and holds no further ones.
    pub(crate) fn release(&self) {
        self.state().holds = false;
        for at in self.held() {
            self.land(at);
        }
    }

    /// Holds back all reads after this call until [`Self::release_reads`].
    pub(crate) fn hold_reads(&self) {
        self.state().holds_reads = true;
    }

    /// Lets all held reads end, and holds no further ones.
    pub(crate) fn release_reads(&self) {
        let mut state = self.state();
        state.holds_reads = false;
        state.readers.drain(..).for_each(clock::wake);
    }

    /// Makes a page unreadable until its extent is reset.
    pub(crate) fn spoil(&self, at: PageId) {
        self.state().unreadable.insert(at);
    }

    /// Makes all held and later pages of the extents in use fail, until the extent is reset.
    pub(crate) fn refuse(&self) {
        let mut state = self.state();
        state.refused = state.extents.keys().copied().collect();
    }

    /// As [`Self::refuse`], but the refused pages can be read.
    pub(crate) fn refuse_and_keep(&self) {
        self.refuse();
        self.state().keeps_refused = true;
    }

    /// Makes this page fail; others of its extent may land.
    pub(crate) fn refuse_page(&self, at: PageId) {
        self.state().refused_pages.insert(at);
    }

    /// Turns over these bits of the spare bytes of all pages that lie at `page` of an extent and
    /// have landed.
    pub(crate) fn flip(&self, page: u32, bits: &[u64]) {
        let mut state = self.state();
        let pages =
            state.extents.values_mut().filter_map(|extent| extent.pages.get_mut(page as usize));
        for page in pages.flatten() {
            let mut spare = page.spare().to_vec();
            for bit in bits {
                spare[usize::try_from(bit / 8).expect("within the spare bytes")] ^= 1 << (bit % 8);
            }
            *page = Page::new(&spare, page.segments());
        }
    }

    /// Returns the number of extents reset so far.
    pub(crate) fn resets(&self) -> u64 {
        self.state().resets
    }

    /// Returns the medium that a loss of power at this instant would leave.
    pub(crate) fn remains(&self) -> Self {
        let mut state = self.state().clone();
        (state.holds, state.held, state.remains) = (false, Vec::new(), None);
        for extent in state.extents.values_mut() {
            let last = extent.pages.iter().rposition(Option::is_some);
            extent.pages.truncate(last.map_or(0, |last| last + 1));
        }
        Self { shape: self.shape, state: Mutex::new(state) }
    }

    /// Keeps what [`Self::remains`] returns after each later reset.
    pub(crate) fn keep_remains(&self) {
        self.state().remains = Some(Vec::new());
    }

    /// Returns what was kept.
    pub(crate) fn kept_remains(&self) -> Vec<Arc<Self>> {
        self.state().remains.take().expect("they are kept")
    }
}

impl Media for Wary {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn free_extents(&self) -> u32 {
        self.shape.extents - u32::try_from(self.state().extents.len()).expect("there are few")
    }

    fn open(&self, label: Label) -> Result<ExtentId, Error> {
        let mut state = self.state();
        let mut ids = (0..self.shape.extents).map(ExtentId);
        let free = ids.find(|id| !state.extents.contains_key(id)).ok_or(Error::NoFreeExtent)?;
        state.extents.insert(free, Extent { label, pages: Vec::new() });
        Ok(free)
    }

    fn append(&self, at: PageId, page: Page, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let holds = {
                let mut state = self.state();
                let holds = state.holds;
                if holds {
                    state.held.push((at, clock::current()));
                }
                let extent = state.extents.get_mut(&at.extent).expect("an open extent");
                assert_eq!(extent.pages.len(), at.page as usize, "pages come in order");
                extent.pages.push(None);
                holds
            };
            if holds {
                clock::park(Rank::Array, Stage::Array).await;
            }
            let mut state = self.state();
            if state.refused.contains(&at.extent) || state.refused_pages.contains(&at) {
                if state.keeps_refused {
                    state.keep(at, page);
                }
                return Err(Error::Unrecovered(at));
            }
            state.keep(at, page);
            Ok(())
        })
    }

    fn read<'a>(
        &'a self,
        span: Span,
        _: Select<'a>,
        _: Class,
    ) -> LocalFuture<'a, Result<Page, Error>> {
        let at = span.at;
        let state = self.state();
        let page = state.extents[&at.extent].pages[at.page as usize].clone();
        let is_readable = !state.unreadable.contains(&at);
        let page = page.filter(|_| is_readable).ok_or(Error::Unrecovered(at));
        Box::pin(async move {
            if self.state().holds_reads {
                self.state().readers.push(clock::current());
                clock::park(Rank::Array, Stage::Array).await;
            }
            page
        })
    }

    fn reset(&self, extent: ExtentId, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        let mut state = self.state();
        state.extents.remove(&extent).expect("only an extent in use is reset");
        state.unreadable.retain(|at| at.extent != extent);
        state.refused.remove(&extent);
        state.refused_pages.retain(|at| at.extent != extent);
        state.resets += 1;
        let keeps_remains = state.remains.is_some();
        drop(state);
        if keeps_remains {
            let remains = Arc::new(self.remains());
            self.state().remains.iter_mut().for_each(|kept| kept.push(remains.clone()));
        }
        Box::pin(async { Ok(()) })
    }

    fn extents(&self) -> Vec<ExtentInfo> {
        let state = self.state();
        let info = |(id, extent): (&ExtentId, &Extent)| {
            let pages = extent.pages.iter().zip(0..);
            let holes = pages.filter_map(|(page, at)| page.is_none().then_some(at)).collect();
            let pages = u32::try_from(extent.pages.len()).expect("there are few");
            ExtentInfo { id: *id, label: extent.label, pages, holes, summary: None }
        };
        state.extents.iter().map(info).collect()
    }
}
