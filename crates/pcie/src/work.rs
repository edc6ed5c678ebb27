use clock::Notify;
use std::cell::Cell;

/// Wakes the task of a function. A notification without a waiter is kept.
#[derive(Debug, Default)]
pub(crate) struct Work {
    is_there: Cell<bool>,
    notify: Notify,
}

impl Work {
    #[inline]
    pub(crate) fn notify(&self) {
        if !self.is_there.replace(true) {
            self.notify.notify();
        }
    }

    /// Waits for the next notification, unless there was one since the last wait.
    pub(crate) async fn wait(&self) {
        while !self.is_there.take() {
            self.notify.wait().await;
        }
    }
}
