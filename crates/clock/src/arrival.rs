use crate::park::assert_not_waiting;
use crate::rank::Rank;
use crate::schedule::with;
use crate::stage::Stage;
use crate::task_state::Wait;
use crate::timer::Timer;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until all events due by the wall's present have happened and the clock has reached it. An
/// input from outside then takes effect behind earlier events. Returns at once in virtual time. The
/// time goes to [`Stage::Queue`].
#[inline]
pub fn catch_up() -> CatchUp {
    CatchUp { gives_way: false, waiting: false }
}

/// As [`catch_up`], but in real time yields to other tasks and to input even if no event is due.
/// For loops that may run without end.
#[inline]
pub fn give_way() -> CatchUp {
    CatchUp { gives_way: true, waiting: false }
}

/// See [`catch_up`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct CatchUp {
    gives_way: bool,
    waiting: bool,
}

impl Future for CatchUp {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        with(|schedule| {
            let current = schedule.current;
            if self.waiting {
                if schedule.task(current).end_wait() {
                    self.waiting = false;
                    return Poll::Ready(());
                }
                return Poll::Pending;
            }
            let (now, present) = (schedule.now, schedule.host_now());
            let is_there = present == now || (!self.gives_way && schedule.move_on(present));
            if is_there {
                return Poll::Ready(());
            }
            let task = schedule.task(current);
            // A timer always fires, so this wait cannot be part of a deadlock.
            task.start_wait(Wait::Timer, Rank::Core);
            task.stages.add(Stage::Queue, present - now);
            schedule.set_timer(present, current, Timer::ARRIVAL);
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for CatchUp {
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}
