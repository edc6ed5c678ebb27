use std::cell::Cell;

/// Ids that a queue may have are below it.
const IDS: u16 = 128;
const _: () = assert!(crate::bar0::IO_QUEUES_MAX < IDS, "a set has all queues");

/// A set of queues by their ids.
#[derive(Debug, Default)]
pub(crate) struct QueueSet(Cell<u128>);

impl QueueSet {
    #[inline]
    pub(crate) fn insert(&self, id: u16) {
        assert!(id < IDS, "a queue has a doorbell");
        self.0.set(self.0.get() | 1 << id);
    }

    #[inline]
    pub(crate) fn remove(&self, id: u16) {
        assert!(id < IDS, "a queue has a doorbell");
        self.0.set(self.0.get() & !(1 << id));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get() == 0
    }

    #[inline]
    pub(crate) fn ids(&self) -> QueueIds {
        QueueIds(self.0.get())
    }

    /// Empties the set. Returns what was in it.
    #[inline]
    pub(crate) fn take(&self) -> QueueIds {
        QueueIds(self.0.take())
    }

    /// Replaces the content of the set by the first `count` of `ids`.
    #[inline]
    pub(crate) fn keep(&self, ids: impl Iterator<Item = u16>, count: usize) {
        self.0.set(ids.take(count).fold(0, |kept, id| kept | 1 << id));
    }
}

/// Ids of queues in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct QueueIds(u128);

impl QueueIds {
    /// Takes the first id that is at least `from`; the first one if there is none.
    #[inline]
    pub(crate) fn next_from(&mut self, from: u16) -> Option<u16> {
        let later = self.0 & u128::MAX.checked_shl(from.into()).unwrap_or(0);
        let id = Self(if later == 0 { self.0 } else { later }).next()?;
        self.0 &= !(1 << id);
        Some(id)
    }
}

impl Iterator for QueueIds {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        let id = u16::try_from(self.0.trailing_zeros()).ok().filter(|id| *id < IDS)?;
        self.0 &= self.0 - 1;
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_in_and_out() {
        let set = QueueSet::default();
        for id in [127, 0, 64, 63, 0] {
            set.insert(id);
        }
        assert_eq!(set.ids().collect::<Vec<_>>(), [0, 63, 64, 127]);
        set.remove(64);
        set.remove(5);
        assert_eq!(set.take().collect::<Vec<_>>(), [0, 63, 127]);
        assert!(set.is_empty() && set.ids().next().is_none());
        set.keep(QueueIds(0b1_1010), 2);
        assert_eq!(set.ids().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn ids_are_taken_in_a_circle() {
        let mut ids = QueueIds(1 << 127 | 0b1010);
        let taken: Vec<_> = [2, 4, 128, 0].map(|from| ids.next_from(from)).into();
        assert_eq!(taken, [Some(3), Some(127), Some(1), None]);
    }
}
