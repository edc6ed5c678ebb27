use crate::schedule::{LocalFuture, with, with_installed};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lets the tasks of several schedules, each on its own thread, share data written for one thread.
/// One task at a time runs inside, until it waits (Hoare, "Monitors: an operating system
/// structuring concept", 1974).
///
/// Tasks spawned inside run inside as well. Device code keeps its invariant: nothing changes
/// between two of its waits. The waits themselves, and the kernel's work, happen outside.
#[derive(Debug, Default)]
pub struct Monitor(Mutex<()>);

impl Monitor {
    /// Returns a monitor with no task inside.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

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
        let is_inside = with(|schedule| match &schedule.monitor {
            Some(around) => {
                assert!(Arc::ptr_eq(around, self), "one monitor is entered at a time");
                true
            }
            None => false,
        });
        if is_inside {
            return Inside(None);
        }
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        with(|schedule| schedule.monitor = Some(self.clone()));
        Inside(Some(guard))
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
            with_installed(|schedule| schedule.monitor = None);
        }
    }
}

/// Wraps `future`, the body of a new task, so that it runs in the current task's monitor.
#[inline]
pub(crate) fn in_its_place(future: impl Future<Output = ()> + 'static) -> LocalFuture<'static, ()> {
    match with(|schedule| schedule.monitor.clone()) {
        Some(monitor) => Box::pin(async move { monitor.enter(future).await }),
        None => Box::pin(future),
    }
}
