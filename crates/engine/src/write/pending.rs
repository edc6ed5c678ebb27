use crate::format::address::Address;
use crate::sync::{Mutex, MutexGuard};
use base::Nanos;
use clock::{Rank, Stage, Stages, TaskId};
use smallvec::SmallVec;
use std::sync::{Arc, PoisonError};

/// A page that is not durable yet, from its first record until its program is over.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The reactor that closed it, if the program's times are of that reactor's clock.
    home: Option<u32>,
    closed_at: Nanos,
    landed: Option<Landed>,
    waiters: SmallVec<[TaskId; 4]>,
}

#[derive(Debug)]
struct Landed {
    at: Nanos,
    /// Where the time since the page was closed went. `None`: all of it is the array's.
    stages: Option<Stages>,
    result: Result<(), media::Error>,
}

impl Pending {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more joins the page; its program starts at this instant.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        let (here, now) = clock::reactor_and_time();
        (state.home, state.closed_at) = (Some(here), now);
    }

    /// The current task begins its program.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        let is_here = state.home == Some(clock::reactor_id()) && state.closed_at == clock::now();
        state.home = state.home.filter(|_| is_here);
    }

    /// Ends the program; `stages` is the time since the page was closed, by stage.
    pub(crate) fn land(&self, stages: Stages, result: Result<(), media::Error>) {
        let (state, now) = (self.state(), clock::now());
        if state.home.is_some() {
            let took = now - state.closed_at;
            assert_eq!(stages.total(), took, "a program's stages add up to its time");
        }
        Self::end(state, Landed { at: now, stages: Some(stages), result });
    }

    /// Ends the program of a page that a disk has queued: all the time since it was closed is the
    /// array's.
    pub(crate) fn land_here(&self, result: Result<(), media::Error>) {
        let (mut state, (here, now)) = (self.state(), clock::reactor_and_time());
        state.home = state.home.filter(|home| *home == here);
        Self::end(state, Landed { at: now, stages: None, result });
    }

    /// Notes how the program ended, and wakes the tasks that wait for that: each locks the state.
    fn end(mut state: MutexGuard<'_, State>, landed: Landed) {
        state.landed = Some(landed);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(clock::wake);
    }

    /// Returns true when its program is over.
    pub(crate) fn has_landed(&self) -> bool {
        self.state().landed.is_some()
    }

    /// Waits until its program is over. The task may hold a latch: programs wait for dies and
    /// channels alone.
    pub(crate) async fn over(&self) {
        if !self.has_landed_or_wakes() {
            clock::park(Rank::Array, Stage::Index).await;
        }
    }

    /// Waits until its program is over. The time is not accounted.
    pub(crate) async fn wait(&self) {
        if !self.has_landed_or_wakes() {
            clock::park_unaccounted(Rank::Free).await;
            assert!(self.has_landed(), "waiters are woken when the page has landed");
        }
    }

    /// Returns true when its program is over; else the current task is woken then.
    fn has_landed_or_wakes(&self) -> bool {
        let mut state = self.state();
        if state.landed.is_none() {
            state.waiters.push(clock::current());
        }
        state.landed.is_some()
    }
}

/// Waits until all `pages` are durable, and accounts the time by [`outcome`].
pub(crate) async fn durable(pages: &[Arc<Pending>]) -> Result<(), media::Error> {
    let arrival = clock::now();
    for page in pages {
        page.wait().await;
    }
    let mut spent = Stages::default();
    let result = outcome(pages, arrival, &mut spent).expect("all of them are over");
    clock::account(&spent);
    result
}

/// Returns how the programs of `pages` ended. `None` while one of them is not over. Else `spent` is
/// the stages of the time since `arrival`.
///
/// The program of the page that landed last counts by its stages, if it began after `arrival`; all
/// other time counts as batching. If another reactor, with a clock of its own, programs one
/// of the pages, all the time counts as the array's.
pub(crate) fn outcome(
    pages: &[Arc<Pending>],
    arrival: Nanos,
    spent: &mut Stages,
) -> Option<Result<(), media::Error>> {
    let (here, now) = clock::reactor_and_time();
    let (mut last, mut result, mut is_by_one_clock) = (Nanos(0), Ok(()), true);
    *spent = Stages::default();
    for page in pages {
        let state = page.state();
        let landed = state.landed.as_ref()?;
        result = result.and(landed.result);
        is_by_one_clock &= state.home == Some(here);
        if is_by_one_clock && last <= landed.at {
            last = landed.at;
            *spent = Stages::default();
            match &landed.stages {
                _ if state.closed_at < arrival => {}
                Some(stages) => *spent = *stages,
                None => spent.add(Stage::Array, landed.at - state.closed_at),
            }
        }
    }
    let all = now - arrival;
    if is_by_one_clock {
        spent.add(Stage::Batch, all - spent.total());
    } else {
        *spent = Stages::default();
        spent.add(Stage::Array, all);
    }
    Some(result)
}

/// A batch of which some page has not landed.
pub(crate) struct UnlandedBatch {
    pub(crate) first: Address,
    pub(crate) last: Address,
    pub(crate) pages: Arc<[Arc<Pending>]>,
}
