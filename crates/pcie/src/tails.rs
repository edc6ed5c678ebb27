use crate::polled_doorbells::PolledDoorbells;
use crate::queue_set::QueueSet;
use std::cell::{Cell, RefCell};

/// Bytes of the two doorbells of a queue, of which the tail is the first.
const PAIR_BYTES: usize = 8;

/// Queues whose doorbells are compared together: those of a cache line.
const CHUNK: usize = 8;

/// Bytes of the doorbells of all queues.
const BYTES: usize = 128 * PAIR_BYTES;

/// Most queues whose tails are read at each look.
const RECENT_MAX: usize = 4;

/// Looks in succession that read the tails of recent queues only.
const SHORT_LOOKS: u32 = 3;

/// Which tails moved, of those that are polled.
///
/// A look first reads the tails of up to [`RECENT_MAX`] queues that moved recently. It compares all
/// tails, by cache lines, with the values that were taken only if none of these has moved again, or
/// if the last [`SHORT_LOOKS`] looks did not. So a command costs about as much with many queues as
/// with few.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    /// The tail that each queue has taken, by the queue's id, as the doorbell has it.
    taken: RefCell<Vec<u64>>,
    recent: QueueSet,
    short_looks: Cell<u32>,
    /// Queues whose tails have moved since their event indexes were set.
    pub(crate) unarmed: QueueSet,
}

impl Tails {
    /// Notes the tail that a queue has.
    pub(crate) fn set(&self, id: u16, tail: u16) {
        let taken = &mut *self.taken.borrow_mut();
        let place = usize::from(id);
        taken.resize(taken.len().max(place + 1), 0);
        taken[place] = tail.into();
    }

    /// Notes a new tail, which a queue has taken.
    #[inline]
    fn moved(&self, id: u16, tail: u16) {
        self.taken.borrow_mut()[usize::from(id)] = tail.into();
        self.unarmed.insert(id);
    }

    /// Has queues take the tails that have moved. `take` reads the doorbell of a queue, and returns
    /// the tail of the queue after that; `None` if there is no such queue. Without news of recent
    /// queues, a look that is not `thorough` may be short too. Returns whether all tails were read.
    #[inline]
    pub(crate) fn look<E>(
        &self,
        polled: &PolledDoorbells,
        thorough: bool,
        take: impl Fn(u16) -> Result<Option<u16>, E>,
    ) -> Result<bool, E> {
        let news = QueueSet::default();
        for id in self.recent.ids() {
            if self.look_at(id, &take)? {
                news.insert(id);
            }
        }
        if (!news.is_empty() || !thorough) && self.short_looks.get() < SHORT_LOOKS {
            self.short_looks.set(self.short_looks.get() + 1);
            return Ok(false);
        }
        self.look_at_all(polled, &news, take)?;
        Ok(true)
    }

    /// Looks at one queue. Returns whether its tail has moved.
    #[inline]
    pub(crate) fn look_at<E>(
        &self,
        id: u16,
        take: impl Fn(u16) -> Result<Option<u16>, E>,
    ) -> Result<bool, E> {
        let Some(tail) = take(id)? else { return Ok(false) };
        let has_moved = self.taken.borrow()[usize::from(id)] != tail.into();
        if has_moved {
            self.moved(id, tail);
        }
        Ok(has_moved)
    }

    /// Looks at all queues. The recent ones are then those with `news` and others that have moved.
    pub(crate) fn look_at_all<E>(
        &self,
        polled: &PolledDoorbells,
        news: &QueueSet,
        take: impl Fn(u16) -> Result<Option<u16>, E>,
    ) -> Result<(), E> {
        self.short_looks.set(0);
        let mut bytes = [0; BYTES];
        let bytes = &mut bytes[..self.taken.borrow().len() * PAIR_BYTES];
        // A guest's firmware may move memory while a queue is there.
        if polled.read(bytes).is_err() {
            return Ok(());
        }
        let moved = QueueSet::default();
        let (pairs, _) = bytes.as_chunks::<PAIR_BYTES>();
        for (first, pairs) in (0..).step_by(CHUNK).zip(pairs.chunks(CHUNK)) {
            if self.differs(first, pairs) {
                for place in first..first + pairs.len() {
                    let id = u16::try_from(place).expect("it is an id");
                    if self.differs(place, &pairs[place - first..=place - first])
                        && self.look_at(id, &take)?
                    {
                        moved.insert(id);
                    }
                }
            }
        }
        if !moved.is_empty() {
            self.recent.keep(news.ids().chain(moved.ids()), RECENT_MAX);
        }
        Ok(())
    }

    /// Returns whether a tail of `pairs` of doorbells, of which the first is that of queue `first`,
    /// is another than was taken.
    #[inline]
    fn differs(&self, first: usize, pairs: &[[u8; PAIR_BYTES]]) -> bool {
        let taken = &self.taken.borrow()[first..];
        let bits = pairs
            .iter()
            .zip(taken)
            .fold(0, |bits, (pair, taken)| bits | (u64::from_le_bytes(*pair) ^ *taken));
        bits & u64::from(u32::MAX) != 0
    }
}
