use crate::schedule::{LocalFuture, with, with_installed};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lets the tasks of several schedules, each on its own thread, share what was written for one: of
/// those inside, one at a time goes on, until it waits for something (Hoare, "Monitors: an
/// operating system structuring concept", 1974).
///
/// What is spawned inside is inside as well. Device code so keeps what it relies on, that nothing
/// changes between two of its waits, and whatever it waits for, the kernel's work included, goes on
/// outside.
#[derive(Debug, Default)]
pub struct Monitor(Mutex<()>);

impl Monitor {
    /// One with nobody inside.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Does `work` inside. Who is inside already goes on as it is; nobody enters another one from
    /// there.
    pub async fn enter<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            let _inside = self.inside();
            work.as_mut().poll(context)
        })
        .await
    }

    /// Goes in until what this returns drops, within one poll of a task.
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

/// The task that is polled is inside of a monitor until this drops.
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

/// `future` as a task to be, inside of what the current one is inside of.
#[inline]
pub(crate) fn in_its_place(future: impl Future<Output = ()> + 'static) -> LocalFuture<'static, ()> {
    match with(|schedule| schedule.monitor.clone()) {
        Some(monitor) => Box::pin(async move { monitor.enter(future).await }),
        None => Box::pin(future),
    }
}
