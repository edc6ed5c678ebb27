use base::Nanos;
use clock::{Rank, Stage, Stages, TaskId};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A page for whose program writes wait.
#[derive(Debug, Default)]
pub(crate) struct Landing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    closed_at: Nanos,
    landed: Option<Landed>,
    waiters: SmallVec<[TaskId; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct Landed {
    closed_at: Nanos,
    at: Nanos,
    stages: Stages,
}

impl Landing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page's program starts at this instant.
    pub(crate) fn close(&self) {
        self.state().closed_at = clock::now();
    }

    /// The program is over; `stages` is what it took since the page was closed.
    pub(crate) fn land(&self, stages: Stages) {
        let mut state = self.state();
        let landed = Landed { closed_at: state.closed_at, at: clock::now(), stages };
        state.landed = Some(landed);
        state.waiters.drain(..).for_each(clock::wake);
    }

    async fn wait(&self) -> Landed {
        let landed = self.state().landed;
        if let Some(landed) = landed {
            return landed;
        }
        self.state().waiters.push(clock::current());
        clock::park_unaccounted(Rank::Free).await;
        self.state().landed.expect("waiters are woken when the page has landed")
    }
}

/// Waits until all `pages` have landed. Up to the closing of the one that landed last the time is
/// waiting for companions; from there on it is what that page's program spent.
pub(crate) async fn landed(pages: &[Arc<Landing>]) {
    let arrival = clock::now();
    let mut last: Option<Landed> = None;
    for page in pages {
        let landed = page.wait().await;
        if last.is_none_or(|last| last.at <= landed.at) {
            last = Some(landed);
        }
    }
    let Some(last) = last.filter(|last| last.at > arrival) else { return };
    let mut spent = Stages::default();
    if last.closed_at >= arrival {
        spent.add(Stage::Batch, last.closed_at - arrival);
        spent += &last.stages;
    } else {
        spent.add(Stage::Batch, last.at - arrival);
    }
    clock::account(&spent);
}
