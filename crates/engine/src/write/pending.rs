use crate::format::address::Address;
use base::Nanos;
use clock::{Rank, Stage, Stages, TaskId};
use media::Page;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A page that is not durable yet, from its first record until its program is over.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// The page, once it is closed.
    page: OnceLock<Page>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The reactor that closed it, if the program's times are of that reactor's clock.
    home: Option<u32>,
    closed_at: Nanos,
    landed: Option<Landed>,
    waiters: SmallVec<[TaskId; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct Landed {
    /// The reactor of whose clock these times are, if they are of one.
    home: Option<u32>,
    closed_at: Nanos,
    at: Nanos,
    stages: Stages,
    result: Result<(), media::Error>,
}

impl State {
    fn land(&mut self, stages: Stages, result: Result<(), media::Error>) {
        let (home, closed_at, at) = (self.home, self.closed_at, clock::now());
        if home.is_some() {
            assert_eq!(stages.total(), at - closed_at, "a program's stages add up to its time");
        }
        self.landed = Some(Landed { home, closed_at, at, stages, result });
        self.waiters.drain(..).for_each(clock::wake);
    }
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more joins the page; its program starts at this instant.
    pub(crate) fn close(&self, page: Page) {
        let mut state = self.state();
        (state.home, state.closed_at) = (Some(clock::reactor_id()), clock::now());
        drop(state);
        self.page.set(page).expect("a page is closed once");
    }

    /// Returns the page, unless it is still being filled.
    pub(crate) fn page(&self) -> Option<&Page> {
        self.page.get()
    }

    /// The current task begins its program.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        let is_here = state.home == Some(clock::reactor_id()) && state.closed_at == clock::now();
        state.home = state.home.filter(|_| is_here);
    }

    /// Ends the program; `stages` is the time since the page was closed, by stage.
    pub(crate) fn land(&self, stages: Stages, result: Result<(), media::Error>) {
        self.state().land(stages, result);
    }

    /// Ends the program of a page that a disk has queued: all the time since it was closed is the
    /// array's.
    pub(crate) fn land_here(&self, result: Result<(), media::Error>) {
        let mut stages = Stages::default();
        let mut state = self.state();
        state.home = state.home.filter(|home| *home == clock::reactor_id());
        if state.home.is_some() {
            stages.add(Stage::Array, clock::now() - state.closed_at);
        }
        state.land(stages, result);
    }

    fn landed(&self) -> Option<Landed> {
        self.state().landed
    }

    /// Returns true when its program is over.
    pub(crate) fn has_landed(&self) -> bool {
        self.landed().is_some()
    }

    /// Waits until its program is over. The task may hold a latch: programs wait for dies and
    /// channels alone.
    pub(crate) async fn over(&self) {
        if !self.has_landed() {
            self.state().waiters.push(clock::current());
            clock::park(Rank::Array, Stage::Index).await;
        }
    }

    /// Waits until its program is over. The time is not accounted.
    pub(crate) async fn wait(&self) {
        if !self.has_landed() {
            self.state().waiters.push(clock::current());
            clock::park_unaccounted(Rank::Free).await;
            assert!(self.has_landed(), "waiters are woken when the page has landed");
        }
    }
}

/// Waits until all `pages` are durable, and accounts the time by [`outcome`].
pub(crate) async fn durable(pages: &[Arc<Pending>]) -> Result<(), media::Error> {
    let arrival = clock::now();
    for page in pages {
        page.wait().await;
    }
    let (result, spent) = outcome(pages, arrival).expect("all of them are over");
    clock::account(&spent);
    result
}

/// Returns how the programs of `pages` ended, and the stages of the time since `arrival`. `None`
/// while one of them is not over.
///
/// The program of the page that landed last counts by its stages, if it began after `arrival`; all
/// other time counts as batching. If another reactor, with a clock of its own, programs one
/// of the pages, all the time counts as the array's.
pub(crate) fn outcome(
    pages: &[Arc<Pending>],
    arrival: Nanos,
) -> Option<(Result<(), media::Error>, Stages)> {
    let mut last: Option<Landed> = None;
    let mut result = Ok(());
    let mut is_by_one_clock = true;
    for page in pages {
        let landed = page.landed()?;
        result = result.and(landed.result);
        is_by_one_clock &= landed.home == Some(clock::reactor_id());
        if last.is_none_or(|last| last.at <= landed.at) {
            last = Some(landed);
        }
    }
    let mut spent = Stages::default();
    let all = clock::now() - arrival;
    if !is_by_one_clock {
        spent.add(Stage::Array, all);
        return Some((result, spent));
    }
    if let Some(last) = last.filter(|last| last.closed_at >= arrival) {
        spent += &last.stages;
    }
    spent.add(Stage::Batch, all - spent.total());
    Some((result, spent))
}

/// A batch of which some page has not landed.
pub(crate) struct UnlandedBatch {
    pub(crate) first: Address,
    pub(crate) last: Address,
    pub(crate) pages: Arc<[Arc<Pending>]>,
}
