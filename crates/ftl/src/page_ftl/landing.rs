use base::Nanos;
use clock::{Rank, Stage, Stages, TaskId};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A page whose program writes wait for.
#[derive(Debug, Default)]
pub(crate) struct Landing(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    landed: Option<Landed>,
    waiters: SmallVec<[TaskId; 4]>,
}

#[derive(Clone, Copy, Debug)]
struct Landed {
    closed_at: Nanos,
    at: Nanos,
    stages: Stages,
    is_safe: bool,
}

impl Landing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the program. The page was closed at `closed_at`; `stages` is the time spent since.
    /// Unless it `is_safe`, the data will never be on the flash.
    pub(crate) fn land(&self, closed_at: Nanos, stages: Stages, is_safe: bool) {
        let mut state = self.state();
        state.landed = Some(Landed { closed_at, at: clock::now(), stages, is_safe });
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

/// Waits until all `pages` have landed. Time up to the closing of the last page is
/// [`Stage::Batch`]; later time is what that page's program spent. Returns true when all are on the
/// flash.
pub(crate) async fn landed(pages: &[Arc<Landing>]) -> bool {
    let arrival = clock::now();
    let mut last: Option<Landed> = None;
    let mut are_safe = true;
    for page in pages {
        let landed = page.wait().await;
        are_safe &= landed.is_safe;
        if last.is_none_or(|last| last.at <= landed.at) {
            last = Some(landed);
        }
    }
    let Some(last) = last.filter(|last| last.at > arrival) else { return are_safe };
    let mut spent = Stages::default();
    if last.closed_at >= arrival {
        spent.add(Stage::Batch, last.closed_at - arrival);
        spent += &last.stages;
    } else {
        spent.add(Stage::Batch, last.at - arrival);
    }
    clock::account(&spent);
    are_safe
}
