use crate::park::wake;
use crate::schedule::{Schedule, is_installed};
use crate::task_state::{TaskId, Wait};
use std::cell::RefCell;

thread_local! {
    static LOST: RefCell<Option<Box<Schedule>>> = const { RefCell::new(None) };
}

/// Drops `schedule` and its `tasks` in the middle of their work, as a loss of power does. Their
/// destructors can ask [`was_at_work`].
pub fn lose_power<T>(schedule: Box<Schedule>, tasks: T) {
    let before = LOST.replace(Some(schedule));
    drop(tasks);
    drop(LOST.replace(before));
}

/// True during [`lose_power`] when a resource or a station was at work for `task`, or held it
/// suspended. Otherwise false.
pub fn was_at_work(task: TaskId) -> bool {
    LOST.with_borrow(|lost| lost.as_ref().is_some_and(|schedule| schedule.is_served(task)))
}

/// As [`wake`], and wakes a task of another reactor also during [`lose_power`]. For a destructor of
/// what a task of one reactor does for a task of another, which must not wait without end.
pub fn wake_from_ended(task: TaskId) {
    if is_installed() {
        return wake(task);
    }
    LOST.with_borrow(|lost| {
        if let Some(ended) = lost.as_ref().filter(|ended| ended.reactor_id != task.reactor_id) {
            ended.wake_remote(task);
        }
    });
}

impl Schedule {
    fn is_served(&self, task: TaskId) -> bool {
        let Wait::Serve(queue) = self.tasks[task.index as usize].wait else { return false };
        let waits_for_station =
            self.stations.iter().any(|station| station.has_waiter(queue, task.index));
        !waits_for_station && !self.waiters(queue).any(|waiter| waiter == task.index)
    }
}
