use crate::queue::Group;
use crate::schedule::with;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// One collector's vote to put garbage collection before host writes. One vote is enough for the
/// whole group.
#[derive(Debug)]
pub struct Promotion {
    group: Group,
    is_wanted: AtomicBool,
}

impl Group {
    /// Returns the vote of one more collector, initially off.
    pub const fn promotion(self) -> Promotion {
        Promotion { group: self, is_wanted: AtomicBool::new(false) }
    }
}

impl Promotion {
    /// Returns the current vote.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// Sets the vote: with at least one, garbage collection goes before host writes in the group.
    pub fn want(&self, is_wanted: bool) {
        if self.is_wanted.swap(is_wanted, Relaxed) == is_wanted {
            return;
        }
        with(|schedule| {
            let promotions = &mut schedule.groups[self.group.index()].promotions;
            *promotions = if is_wanted { *promotions + 1 } else { *promotions - 1 };
        });
    }
}
