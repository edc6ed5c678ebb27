use crate::index::Index;
use clock::{Held, Rank};
use smallvec::SmallVec;
use std::cell::RefCell;

/// The right to load and change some entries of an index. When it drops, the index may evict what
/// it loaded under it.
#[must_use = "what was loaded stays loaded until it drops"]
pub struct Permit<'a>(Option<Granted<'a>>);

struct Granted<'a> {
    index: &'a dyn Index,
    entries: u32,
    noted: RefCell<SmallVec<[u64; 1]>>,
    _rank: Held,
}

impl<'a> Permit<'a> {
    /// Makes the permit of an index that has every entry in memory.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Makes a permit for `entries` entries, which is returned to `index` when it drops.
    pub fn new(index: &'a dyn Index, entries: u32) -> Self {
        let noted = RefCell::default();
        Self(Some(Granted { index, entries, noted, _rank: Held::new(Rank::Credit) }))
    }

    /// Notes what was loaded under it, by a number of the index. [`Index::release`] gets that
    /// number back.
    pub fn note(&self, loaded: u64) {
        let granted = self.0.as_ref().expect("an index notes in a permit that it gave");
        granted.noted.borrow_mut().push(loaded);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(granted) = &mut self.0 {
            granted.index.release(granted.entries, granted.noted.get_mut());
        }
    }
}

impl std::fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Permit({})", self.0.as_ref().map_or(0, |granted| granted.entries))
    }
}
