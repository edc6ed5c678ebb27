use crate::resource::Group;
use crate::schedule::with;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A collector's say in whether garbage collection goes before host writes. It does in a group
/// while any of its collectors wants it.
#[derive(Debug)]
pub struct Promotion {
    group: Group,
    is_wanted: AtomicBool,
}

impl Group {
    /// The say of one more collector, which wants nothing yet.
    pub const fn promotion(self) -> Promotion {
        Promotion { group: self, is_wanted: AtomicBool::new(false) }
    }
}

impl Promotion {
    /// What was wanted last.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// Puts garbage collection above host writes wherever it waits in the group, or no longer.
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
