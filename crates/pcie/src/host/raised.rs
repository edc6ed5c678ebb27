use crate::bus::Interrupts;
use clock::Notify;
use std::cell::{Cell, RefCell};

/// Counts the interrupts of each vector, and wakes the task that waits for one.
#[derive(Default)]
pub struct Raised {
    counts: RefCell<Vec<u64>>,
    latest: Cell<u64>,
    notify: Notify,
}

impl Raised {
    /// Returns how many there were of a vector.
    pub fn count(&self, vector: usize) -> u64 {
        self.counts.borrow().get(vector).copied().unwrap_or(0)
    }

    /// Returns how many there were of all vectors.
    pub fn total(&self) -> u64 {
        self.latest.get()
    }

    /// Waits until there were more than `seen`.
    pub async fn after(&self, seen: u64) {
        while self.latest.get() <= seen {
            self.notify.wait().await;
        }
    }
}

impl Interrupts for Raised {
    fn raise(&self, vector: u16) {
        let counts = &mut *self.counts.borrow_mut();
        let vector = usize::from(vector);
        counts.resize(counts.len().max(vector + 1), 0);
        counts[vector] += 1;
        self.latest.set(self.latest.get() + 1);
        self.notify.notify();
    }
}
