//! Waiting for space in the log.

use crate::ack::Ack;
use crate::error::Error;
use crate::format::record::Kind;
use crate::log::Whole;
use crate::store::Store;
use clock::{Rank, Stage};

/// A write's turn for the free space: when it drops, the next waiting write gets its turn.
#[must_use = "it is over when it drops"]
pub(crate) struct Turn<'a>(&'a Store);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.0.is_room_awaited() && !self.0.is_short_of_room(Kind::Value) {
            self.0.cleaner.release_one();
        }
    }
}

impl Store {
    /// Returns whether a write waits for space.
    #[inline]
    pub(crate) fn is_room_awaited(&self) -> bool {
        self.cleaner.has_waiters()
    }

    /// Returns whether the log has no extent for a record of this kind.
    fn is_short_of_room(&self, kind: Kind) -> bool {
        self.lacks_room(&mut self.log.whole(), kind)
    }

    fn lacks_room(&self, state: &mut Whole<'_>, kind: Kind) -> bool {
        self.log.shortage(state.writing(), Ack::Program, kind, 0).is_some()
    }

    /// Returns a turn for the free space.
    pub(crate) const fn turn(&self) -> Turn<'_> {
        Turn(self)
    }

    /// Waits for an extent to become free for a record of this kind; an error when cleaning cannot
    /// free one. With `was_there` the write goes to the front of the queue: it had its turn, and
    /// other writes had taken the space.
    pub(crate) async fn cleaner_makes_room(
        &self,
        kind: Kind,
        was_there: bool,
    ) -> Result<(), Error> {
        let is_queued = {
            let mut state = self.log.whole();
            self.cleaner.queue(was_there, self.lacks_room(&mut state, kind))
        };
        if !is_queued {
            return Ok(());
        }
        self.cleaner.wake();
        clock::park(Rank::Credit, Stage::Gc).await;
        if self.cleaner.was_refused() && self.is_short_of_room(kind) {
            return Err(Error::CapacityExceeded);
        }
        Ok(())
    }

    /// Waits until the cleaner has cleaned away some expired values; an error when it has none to
    /// clean.
    pub(crate) async fn cleaner_drops_expired(&self) -> Result<(), Error> {
        let is_queued = {
            let state = self.log.whole();
            let is_any = self.expired_victim(&state).is_some();
            self.cleaner.queue_for_expired(is_any)
        };
        if !is_queued {
            return Err(Error::CapacityExceeded);
        }
        self.cleaner.wake();
        clock::park(Rank::Credit, Stage::Gc).await;
        Ok(())
    }
}
