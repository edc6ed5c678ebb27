use crate::monitor::Monitor;
use crate::schedule::{LocalFuture, with, with_installed};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Monitor {
    /// Does `work` inside. A task that is already inside stays there; it enters no second monitor.
    pub async fn enter<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let _inside = self.inside();
            work.as_mut().poll(context)
        })
        .await
    }

    /// Enters until the guard drops, within one poll of a task.
    #[inline]
    pub fn inside(self: &Arc<Self>) -> Inside<'_> {
        with(|schedule| {
            let is_last = schedule.monitor.as_ref().is_some_and(|last| Arc::ptr_eq(last, self));
            if schedule.is_inside {
                assert!(is_last, "one monitor is entered at a time");
                return Inside(None);
            }
            let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Mostly one monitor is entered again and again, so its count is left alone.
            if !is_last {
                schedule.monitor = Some(self.clone());
            }
            schedule.is_inside = true;
            Inside(Some(guard))
        })
    }
}

/// Keeps the polled task inside a monitor until it drops.
#[must_use = "dropping it goes out"]
#[derive(Debug)]
pub struct Inside<'a>(Option<MutexGuard<'a, ()>>);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            with_installed(|schedule| schedule.is_inside = false);
        }
    }
}

/// Returns whether the task being polled is inside a monitor.
pub fn is_inside() -> bool {
    with(|schedule| schedule.is_inside)
}

/// Wraps `future`, the body of a new task, so that it runs in the current task's monitor.
#[inline]
pub(crate) fn in_its_place(future: impl Future<Output = ()> + 'static) -> LocalFuture<'static, ()> {
    // Boxed before the two cases, because each would move it, and it is long.
    let future: LocalFuture<'static, ()> = Box::pin(future);
    match with(|schedule| schedule.monitor.as_ref().filter(|_| schedule.is_inside).cloned()) {
        Some(monitor) => Box::pin(async move { monitor.enter(future).await }),
        None => future,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Schedule, install, uninstall};

    #[test]
    fn one_monitor_after_the_other_is_entered_and_left() {
        install(Box::new(Schedule::new(None)));
        let [one, other] = [Monitor::new(), Monitor::new()];
        for monitor in [&one, &one, &other, &one] {
            let inside = monitor.inside();
            let again = monitor.inside();
            assert!(monitor.0.try_lock().is_err(), "it is entered");
            let before = Arc::strong_count(monitor);
            let task = in_its_place(async {});
            assert_eq!(Arc::strong_count(monitor), before + 1, "a task begins inside");
            drop(task);
            drop((again, inside));
            assert!(monitor.0.try_lock().is_ok(), "it is left");
            let task = in_its_place(async {});
            assert_eq!(Arc::strong_count(monitor), before, "a task begins outside");
            drop(task);
        }
        drop(uninstall());
    }
}
