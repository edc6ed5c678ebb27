use crate::rank::Rank;
use crate::schedule::{with, with_installed};
use crate::stage::Stage;
use crate::task_state::{TaskId, Wait};
use base::Nanos;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until another task calls [`wake`] with this task's id; the time goes to `stage`.
///
/// Returns the time waited. `rank` is that of the thing the task waits for.
#[inline]
pub fn park(rank: Rank, stage: Stage) -> Park {
    Park { rank, stage: Some(stage), waiting: false }
}

/// As [`park`], for waits whose account another task keeps: the caller must
/// [`account`](crate::account) for the time returned.
#[inline]
pub fn park_unaccounted(rank: Rank) -> Park {
    Park { rank, stage: None, waiting: false }
}

/// Makes a parked task ready at this instant, after the tasks that are ready now. A task of a peer
/// schedule runs as soon as that schedule receives the call. Does nothing when the schedule is
/// gone, so that destructors of guards can call it.
#[inline]
pub fn wake(task: TaskId) {
    with_installed(|schedule| {
        if task.reactor_id != schedule.reactor_id {
            return schedule.wake_remote(task);
        }
        let parked = schedule.task(task.index);
        assert!(
            matches!(parked.wait, Wait::Parked(_)) && !parked.fired,
            "only a parked task can be woken, and only once"
        );
        parked.fired = true;
        schedule.make_ready(task.index);
    });
}

/// See [`park`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Park {
    rank: Rank,
    stage: Option<Stage>,
    waiting: bool,
}

impl Future for Park {
    type Output = Nanos;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Nanos> {
        with(|schedule| {
            let (current, now) = (schedule.current, schedule.now);
            let task = schedule.task(current);
            if !self.waiting {
                task.start_wait(Wait::Parked(self.rank), self.rank);
                task.since = now;
                self.waiting = true;
                return Poll::Pending;
            }
            if !task.end_wait() {
                return Poll::Pending;
            }
            self.waiting = false;
            let waited = now - task.since;
            if let Some(stage) = self.stage {
                task.stages.add(stage, waited);
            }
            Poll::Ready(waited)
        })
    }
}

impl Drop for Park {
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}

/// A waiting future may be dropped only together with its whole schedule, because its task is still
/// in a queue.
#[inline]
pub(crate) fn assert_not_waiting(waiting: bool) {
    if waiting && !std::thread::panicking() {
        with_installed(|_| panic!("a wait of the device was dropped before its end"));
    }
}

/// Marks a rank as held by the current task until it drops: a latch, a credit.
#[must_use = "dropping it gives the rank back"]
#[derive(Debug)]
pub struct Held {
    rank: Rank,
    task: TaskId,
}

impl Held {
    /// Marks `rank` as held by the current task.
    #[inline]
    pub fn new(rank: Rank) -> Self {
        with(|schedule| {
            let current = schedule.current;
            let held = &mut schedule.task(current).held;
            assert!(rank.may_follow(*held), "ranks are taken in order, {rank:?} was not");
            *held |= rank.bit();
            Self { rank, task: schedule.id(current) }
        })
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        with_installed(|schedule| schedule.task(self.task.index).held &= !self.rank.bit());
    }
}
