//! Waiting for space in the log.

use crate::ack::Ack;
use crate::clean::room_queue::Place;
use crate::error::Error;
use crate::format::record::Kind;
use crate::log::{Reach, Writing};
use crate::store::Store;
use clock::{Rank, Stage};

/// A write's turn for the free space: when it drops, the next waiting write gets its turn.
#[must_use = "it is over when it drops"]
pub(crate) struct Turn<'a>(&'a Store);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let store = self.0;
        if store.is_room_awaited() && !store.is_short_of_room(Reach::Own, Kind::Value) {
            store.cleaner.release_one(store.log.own_writer());
        }
    }
}

impl Store {
    /// Returns whether a write of this reactor's writer waits for space.
    #[inline]
    pub(crate) fn is_room_awaited(&self) -> bool {
        self.cleaner.has_waiters(self.log.own_writer())
    }

    /// Returns whether these writers have no extent for a record of this kind.
    fn is_short_of_room(&self, reach: Reach, kind: Kind) -> bool {
        self.lacks_room(&mut self.log.writing_in(reach), kind)
    }

    fn lacks_room(&self, writing: &mut Writing<'_>, kind: Kind) -> bool {
        self.log.shortage(writing, Ack::Program, kind, 0).is_some()
    }

    /// Returns a turn for the free space.
    pub(crate) const fn turn(&self) -> Turn<'_> {
        Turn(self)
    }

    /// Waits for an extent to become free for a record of this kind, and returns the writers that
    /// have room: all together if cleaning cannot free an extent for the own one; an error if they
    /// have none either. A write that has a `place` goes to the front of the queue: other writes
    /// had taken the space. Others get one.
    pub(crate) async fn cleaner_makes_room(
        &self,
        kind: Kind,
        place: &mut Option<Place>,
    ) -> Result<Reach, Error> {
        let (own, is_queued) = {
            let mut writing = self.log.writing();
            let is_short = self.lacks_room(&mut writing, kind);
            self.cleaner.queue(self.log.own_writer(), *place, is_short)
        };
        *place = Some(own);
        if !is_queued {
            return Ok(Reach::Own);
        }
        self.cleaner.wake();
        clock::park(Rank::Credit, Stage::Gc).await;
        if !self.cleaner.was_refused() {
            return Ok(Reach::Own);
        }
        if self.is_short_of_room(Reach::All, kind) {
            return Err(Error::CapacityExceeded);
        }
        Ok(Reach::All)
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
