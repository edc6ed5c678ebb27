use crate::park::{park, wake};
use crate::rank::Rank;
use crate::stage::Stage;
use crate::task::current;
use crate::task_state::TaskId;
use std::cell::Cell;

/// Notifies one waiting task. Remembers the waiter and wakes it once.
#[derive(Debug, Default)]
pub struct Notify {
    waiter: Cell<Option<TaskId>>,
}

impl Notify {
    /// A notify without a waiting task.
    pub const fn new() -> Self {
        Self { waiter: Cell::new(None) }
    }

    /// Waits for the next [`Self::notify`]; the time goes to [`Stage::Queue`]. The caller holds
    /// nothing.
    pub async fn wait(&self) {
        let before = self.waiter.replace(Some(current()));
        assert!(before.is_none(), "one task at a time waits for a notify");
        park(Rank::Free, Stage::Queue).await;
    }

    /// Wakes the waiting task, if there is one.
    #[inline]
    pub fn notify(&self) {
        if let Some(task) = self.waiter.take() {
            wake(task);
        }
    }

    /// True while a task waits.
    #[inline]
    pub fn is_awaited(&self) -> bool {
        self.waiter.get().is_some()
    }
}
