//! Cleaning some extents: their live records are copied to another, then they are reset.
//!
//! 1. The records of each are read from its summary, or without one from the headers of every page.
//! 2. Pages with live records are read, several side by side. The live records are appended to the
//!    cleaner's stream and keep their sequence numbers.
//! 3. When the copies are durable each index entry that still points to the old place is moved, by
//!    a task that has the right to change it ([`Entry`](crate::write::entry::Entry)).
//! 4. The extents are reset when the records that replaced their own are durable too, and each has
//!    no pin: no reader is in it, and none of its records may have to be undone.

use crate::ack::Ack;
use crate::clean::copy::Copied;
use crate::clean::found::{Found, by_pages};
use crate::log::NoRoom;
use crate::recover::listing::Replay;
use crate::store::Store;
use crate::write::pending::durable;
use clock::{Class, Rank, Stage};
use media::{ExtentId, Stream};
use std::sync::Arc;

impl Store {
    /// Copies all live records of `victims` to other extents and resets them. An extent with a live
    /// record that cannot be read is kept as it is, out of use.
    ///
    /// [`NoRoom`] when the copies need more extents than there are, or when a disk has failed to
    /// write them; then the victims stay in use.
    pub(crate) async fn clean(self: &Arc<Self>, victims: &[ExtentId]) -> Result<(), NoRoom> {
        self.log.whole().begin_copying();
        let found = self.find_records(victims).await;
        let are_found = found.iter().all(Option::is_some);
        let lost_pages = found.iter().map(|found| found.as_ref().map_or(0, |it| it.lost_pages));
        let lost_pages: Vec<u64> = lost_pages.collect();
        let (moved, copied) = self.copy_live(found.into_iter().flatten().collect()).await;
        self.log.pad(&mut self.log.writing_copies().part(), Stream::Gc);
        let landed = self.repoint_all(moved).await;
        let have_live: Vec<bool> = {
            let mut state = self.log.whole();
            state.copies.end();
            victims.iter().map(|victim| state.extents.get(*victim).has_live()).collect()
        };
        let Ok(copied) = copied else {
            self.give_back(victims);
            return Err(NoRoom);
        };
        let landed = landed.ok().filter(|_| are_found && copied != Copied::Partly);
        let Some(landed) = landed else {
            // A reactor has ended within its share. The others clean the victims once more.
            self.give_back(victims);
            return Ok(());
        };
        // A disk may write again after it has failed.
        if !landed && self.log.media.as_disk().is_some() && self.log.media.writable().is_ok() {
            self.give_back(victims);
            return Err(NoRoom);
        }
        let mut emptied = Vec::new();
        for ((victim, has_live), lost_pages) in victims.iter().zip(have_live).zip(lost_pages) {
            if !has_live && landed {
                emptied.push(*victim);
            } else if landed && lost_pages == 0 && copied == Copied::All {
                // All were listed, read and copied. So a write that had replaced one of them has
                // failed, and the next cleaning finds the record that lives again.
                self.give_back(&[*victim]);
            }
        }
        self.reset(&emptied).await;
        Ok(())
    }

    fn give_back(&self, victims: &[ExtentId]) {
        let mut state = self.log.whole();
        for victim in victims {
            state.give_back(*victim);
        }
    }

    /// Returns the records of the victims. Where several reactors clean, each reads some victims.
    /// `None` for a victim whose reactor has ended.
    async fn find_records(self: &Arc<Self>, victims: &[ExtentId]) -> Vec<Option<Found>> {
        if let [victim] = victims {
            return vec![Some(self.clone().find_in(*victim).await)];
        }
        let pieces = victims.iter().map(|victim| {
            let (store, victim) = (self.clone(), *victim);
            move || store.find_in(victim)
        });
        self.pool.run_each(Stage::Gc, pieces.collect()).await
    }

    async fn find_in(self: Arc<Self>, victim: ExtentId) -> Found {
        let (records, lost_pages) = if self.has_nothing(victim) {
            (Vec::new(), 0)
        } else {
            self.records_from(Replay { extent: victim, from: 0 }, Class::Gc).await
        };
        // A summary may list records that a power cut kept from the medium.
        let records = self.written_records(victim, records).await;
        let pages = by_pages(records).await;
        Found { oldest: self.oldest_epoch_but(victim), pages, lost_pages }
    }

    /// Returns whether the counts say that an extent has no record to move. On flash its summary is
    /// read all the same, like firmware that keeps no count of each extent.
    fn has_nothing(&self, victim: ExtentId) -> bool {
        self.log.media.as_memory().is_some() && self.log.whole().extents.get(victim).is_dead()
    }

    /// Resets victims without live records.
    async fn reset(self: &Arc<Self>, victims: &[ExtentId]) {
        if victims.is_empty() {
            return;
        }
        // The records that replaced the victims' must be durable before these are reset. Those in
        // a buffer that outlives a loss of power are.
        let unlanded = match self.config.ack {
            Ack::Program => self.log.unlanded_host_pages(),
            Ack::Buffer { .. } if self.config.saves_buffer => Vec::new(),
            Ack::Buffer { .. } => self.log.close_host_pages(),
        };
        let have_landed = durable(&unlanded).await.is_ok();
        for (number, victim) in victims.iter().enumerate() {
            if number > 0 {
                // The next victim may have a pin for long.
                self.release_stores();
            }
            if self.forget_unpinned(*victim, have_landed).await {
                self.counters.count_victim();
                self.log.erase(*victim, Class::Gc).await;
            }
        }
    }

    /// Waits until `victim` has no pin, and takes it out of the log. False, and it stays in use, if
    /// a record lives in it: after a failed store, which `have_landed` tells, the record that it
    /// was to replace is the key's newest.
    async fn forget_unpinned(&self, victim: ExtentId, have_landed: bool) -> bool {
        loop {
            if let Some(is_unused) = self.log.forget_if_unpinned(victim, have_landed) {
                return is_unused;
            }
            clock::park(Rank::Free, Stage::Gc).await;
        }
    }
}
