use crate::rank::Rank;
use crate::schedule::{LocalFuture, with};
use crate::stage::{Stage, Stages};
use crate::task_state::{TaskId, Wait};
use crate::timer::Timer;
use base::Nanos;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Returns the instant of the current event.
#[inline]
pub fn now() -> Nanos {
    with(|schedule| schedule.now)
}

/// The time outside of the device. In virtual time that is [`now`]; in real time it is
/// the wall's, which is [`now`] or later.
#[inline]
pub fn host_now() -> Nanos {
    with(|schedule| schedule.host_now())
}

/// Returns the task being polled.
#[inline]
pub fn current() -> TaskId {
    with(|schedule| schedule.id(schedule.current))
}

/// Names the kind of the current task, such as `cleaner`, for reports on where a thread's time
/// went. Tasks that it spawns after this begin with the same name.
#[inline]
pub fn name_task(name: &'static str) {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).name = name;
    });
}

/// Returns the name of the task that was polled last, or `other` if it has none: see [`name_task`].
pub fn task_name() -> &'static str {
    with(|schedule| schedule.current_name())
}

/// Returns the number of tasks that are ready and not polled yet.
#[inline]
pub fn ready_tasks() -> usize {
    with(|schedule| schedule.ready_tasks())
}

/// Returns the number of the installed schedule among peers, or 0 without peers: see
/// [`Schedule::join_peers`].
///
/// [`Schedule::join_peers`]: crate::Schedule::join_peers
#[inline]
pub fn reactor_id() -> u32 {
    with(|schedule| schedule.reactor_id)
}

/// Returns [`reactor_id`] and [`now`].
#[inline]
pub fn reactor_and_time() -> (u32, Nanos) {
    with(|schedule| (schedule.reactor_id, schedule.now))
}

/// Starts `future` as a task at this instant, after the tasks that are ready now.
#[inline]
pub fn spawn(future: impl Future<Output = ()> + 'static) -> TaskId {
    let future: LocalFuture<'static, ()> = Box::pin(future);
    with(|schedule| {
        let task = schedule.add_ready_task();
        schedule.spawned.push((task, future));
        task
    })
}

/// Starts what `make` returns as a task at `at`, or at this instant if that has passed. For input
/// from outside.
#[inline]
pub fn spawn_at<F>(at: Nanos, make: impl FnOnce() -> F) -> TaskId
where
    F: Future<Output = ()> + 'static,
{
    // Made in its place: a move there would copy all the room that it needs later.
    let place = Box::<F>::new_uninit();
    let future: Pin<Box<F>> = Box::into_pin(Box::write(place, make()));
    with(|schedule| {
        let task = schedule.add_task_at(at);
        schedule.spawned.push((task, future));
        task
    })
}

/// Starts a task on behalf of the current one. It holds `inherited` until it ends.
pub(crate) fn spawn_child(future: impl Future<Output = ()> + 'static, inherited: u16) {
    let future: LocalFuture<'static, ()> = Box::pin(future);
    with(|schedule| {
        let task = schedule.add_ready_task();
        schedule.adopt_child(task, inherited);
        schedule.spawned.push((task, future));
    });
}

/// As [`spawn_child`], but polls it once, now.
pub(crate) fn start_child(future: impl Future<Output = ()> + 'static, inherited: u16) {
    let mut future: LocalFuture<'static, ()> = Box::pin(future);
    let (task, parent) = with(|schedule| {
        let task = schedule.start_task();
        schedule.adopt_child(task, inherited);
        (task, std::mem::replace(&mut schedule.current, task.index))
    });
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let ended = with(|schedule| {
        schedule.current = parent;
        if polled.is_pending() {
            schedule.spawned.push((task, future));
            return None;
        }
        schedule.end(task.index);
        Some(future)
    });
    // Drops the future outside of `with`: its destructor may use the schedule.
    drop(ended);
}

/// Returns what the current task has spent so far.
#[inline]
pub fn stages() -> Stages {
    with(|schedule| schedule.tasks[schedule.current as usize].stages)
}

/// Clears the current task's account, for its next piece of work.
#[inline]
pub fn begin_account() {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).stages = Stages::default();
    });
}

/// Names the current task `label` in its later spans.
#[inline]
pub fn label(label: u64) {
    with(|schedule| {
        let current = schedule.current;
        if let Some(tracer) = &mut schedule.tracer {
            tracer.label(current, label);
        }
    });
}

/// Adds to the current task's account what another task spent on its behalf while it was parked.
#[inline]
pub fn account(spent: &Stages) {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).stages += spent;
    });
}

/// Waits until `at`, adding the time to `stage`. Returns at once when `at` has passed.
#[inline]
pub fn sleep_until(at: Nanos, stage: Stage) -> Sleep {
    Sleep { at, stage, waiting: false }
}

/// Waits for `duration`, adding it to `stage`.
#[inline]
pub fn sleep(duration: Nanos, stage: Stage) -> Sleep {
    sleep_until(now() + duration, stage)
}

/// See [`sleep_until`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Sleep {
    at: Nanos,
    stage: Stage,
    waiting: bool,
}

impl Future for Sleep {
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
            let now = schedule.now;
            if self.at <= now {
                return Poll::Ready(());
            }
            let task = schedule.task(current);
            // A timer always fires, so this wait cannot be part of a deadlock.
            task.start_wait(Wait::Timer, Rank::Core);
            task.stages.add(self.stage, self.at - now);
            schedule.set_timer(self.at, current, Timer::NO_RESOURCE);
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        crate::park::assert_not_waiting(self.waiting);
    }
}
