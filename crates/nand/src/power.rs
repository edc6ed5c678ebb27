use clock::{Class, Rank, Stage};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The array's power: the mains, or capacitors for a number of pages.
#[derive(Debug)]
pub(crate) struct Power {
    /// [`Self::MAINS`], or the number of pages that can still be programmed.
    pages: AtomicU64,
}

/// What the power allows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    Begin,
    /// It fails: the energy is used up.
    Fail,
    /// It never begins.
    Never,
}

impl Power {
    const MAINS: u64 = u64::MAX;

    pub(crate) const fn mains() -> Self {
        Self { pages: AtomicU64::new(Self::MAINS) }
    }

    pub(crate) fn run_on_capacitors(&self, pages: u64) {
        self.pages.store(pages.min(Self::MAINS - 1), Relaxed);
    }

    pub(crate) fn is_on_capacitors(&self) -> bool {
        self.pages.load(Relaxed) != Self::MAINS
    }

    pub(crate) fn to_sense(&self, class: Class) -> Leave {
        if class == Class::HostWrite || !self.is_on_capacitors() {
            Leave::Begin
        } else {
            Leave::Never
        }
    }

    /// Takes the energy for a page.
    pub(crate) fn to_program(&self, class: Class) -> Leave {
        match (self.pages.load(Relaxed), class) {
            (Self::MAINS, _) => Leave::Begin,
            (0, Class::HostWrite) => Leave::Fail,
            (pages, Class::HostWrite) => {
                self.pages.store(pages - 1, Relaxed);
                Leave::Begin
            }
            _ => Leave::Never,
        }
    }

    pub(crate) fn to_erase(&self) -> Leave {
        if self.is_on_capacitors() { Leave::Never } else { Leave::Begin }
    }
}

/// Waits until the caller drops the reactor.
pub(crate) async fn stand_still() {
    loop {
        clock::park(Rank::Core, Stage::Queue).await;
    }
}
