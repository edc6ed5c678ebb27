use crate::park::{park, wake};
use crate::rank::Rank;
use crate::schedule::is_installed;
use crate::stage::Stage;
use crate::task::current;
use crate::task_state::TaskId;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the users of something, in any reactor. Tasks can wait until there are none.
#[derive(Clone, Debug, Default)]
pub struct Users(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicUsize,
    is_abandoned: AtomicBool,
    waiters: Mutex<Vec<TaskId>>,
}

/// One user, until this drops.
#[derive(Debug)]
#[must_use = "it counts until it drops"]
pub struct User(Arc<Shared>);

impl Users {
    /// Counts a user.
    pub fn add(&self) -> User {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        User(self.0.clone())
    }

    /// Returns true when there are none.
    pub fn are_none(&self) -> bool {
        self.0.count.load(Ordering::SeqCst) == 0
    }

    /// Waits until there are none; the time goes to `stage`. The caller must not hold what a user
    /// waits for.
    pub async fn end(&self, stage: Stage) {
        loop {
            {
                // A user that ends after this look finds the waiter.
                let mut waiters = self.0.waiters();
                if self.are_none() || self.0.is_abandoned.load(Ordering::SeqCst) {
                    return;
                }
                waiters.push(current());
            }
            park(Rank::Free, stage).await;
        }
    }

    /// Lets all calls of [`Self::end`] return, those that wait and later ones: some users may never
    /// end.
    pub fn abandon(&self) {
        self.0.is_abandoned.store(true, Ordering::SeqCst);
        self.0.wake_all();
    }
}

impl Shared {
    fn waiters(&self) -> MutexGuard<'_, Vec<TaskId>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_all(&self) {
        let waiters = std::mem::take(&mut *self.waiters());
        // A user may outlive the clocks.
        if is_installed() {
            waiters.into_iter().for_each(wake);
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let before = self.0.count.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "each user is counted once");
        if before == 1 {
            self.0.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Schedule, install, uninstall};
    use std::task::{Context, Poll, Waker};

    fn poll(end: std::pin::Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
        end.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn without_users_or_after_they_are_abandoned_nothing_is_waited_for() {
        install(Box::new(Schedule::new(None)));
        let users = Users::default();
        assert!(poll(std::pin::pin!(users.end(Stage::Queue))).is_ready());
        let user = users.add();
        assert!(!users.are_none());
        users.abandon();
        assert!(poll(std::pin::pin!(users.end(Stage::Queue))).is_ready());
        drop(uninstall());
        drop(user);
        assert!(users.are_none(), "it may end without a clock");
    }
}
