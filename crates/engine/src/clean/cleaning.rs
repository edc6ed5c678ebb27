//! When to clean, and when to wake or refuse the stores that wait for space.

use crate::clean::cleaner::{Begins, Round};
use crate::clean::expiry::has_expired;
use crate::extent::Extent;
use crate::log::{self, Part, RESERVED_EXTENTS};
use crate::store::Store;
use media::{Candidate, ExtentId, Page, Victims};
use std::sync::Arc;

/// An extent is cleaned ahead of need when an eighth of it is dead, as FEMU has it (its unforced
/// collection passes over lines with less than that invalid).
const WORTH_CLEANING: u64 = 8;

/// Victims for each reactor that are cleaned together, if several reactors clean: between the steps
/// of cleaning reactors wait for each other, and with more records in a step that is less of it.
const VICTIMS_OF_EACH: usize = 2;

/// The background work that is due after a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackgroundWork {
    /// Extents are few, or one is to be cleaned before others.
    cleans: bool,
    /// A checkpoint is due.
    saves: bool,
}

impl Store {
    /// Number of free extents below which the cleaner works: the reserve, and some for hosts to
    /// write to while it does.
    fn extents_low(&self) -> u32 {
        RESERVED_EXTENTS + (self.log.shape.extents / 64).max(1)
    }

    fn free_extents(&self) -> u32 {
        self.log.free_extents(&self.log.whole())
    }

    #[inline]
    pub(crate) fn wake_cleaner_when_low(&self) {
        let due = self.background_work(&mut self.log.writing().part());
        self.wake_background(due);
    }

    /// Returns the background work that is due.
    #[inline]
    pub(crate) fn background_work(&self, part: &mut Part<'_, '_>) -> BackgroundWork {
        let cleans = self.log.cleaning.is_any() && self.wants_cleaning(part);
        BackgroundWork { cleans, saves: self.checkpoint_is_due(part.writer.numbers_since) }
    }

    /// Returns whether the cleaner is to be woken, and takes away why. It is not if it was woken
    /// and has not begun to look for work since: then it will see what was noted before. So stores
    /// lock no state of all reactors while free extents are few.
    fn wants_cleaning(&self, part: &mut Part<'_, '_>) -> bool {
        let due = &self.log.cleaning;
        let is_urgent = due.take_urgent();
        // It is read after the note was taken.
        if self.cleaner.is_wanted() {
            return false;
        }
        // Only opening an extent makes free extents fewer.
        if due.may_be_low() {
            let state = part.shared.get();
            due.note_low(self.log.free_extents(state) <= self.extents_low());
        }
        is_urgent || due.may_be_low()
    }

    #[inline]
    pub(crate) fn wake_background(&self, due: BackgroundWork) {
        if due.cleans {
            self.cleaner.wake();
        }
        if due.saves {
            self.tables.wake_maker();
        }
    }

    /// Ends cleaning after the current victims. After this the store writes only for its callers,
    /// and stores that need space fail.
    pub async fn end_cleaning(&self) {
        self.cleaner.end().await;
    }

    /// The background task of a store.
    pub(crate) async fn clean_forever(self: Arc<Self>, begins: Begins) {
        clock::name_task("cleaner");
        if begins == Begins::AtWork {
            self.cleaner.state().round = Round::first(self.log.whole().sequence);
            self.clean_while_worth().await;
        }
        loop {
            self.cleaner.rest().await;
            // Writes since then may have left dead records to clean.
            let now = self.log.whole().sequence;
            {
                let mut cleaner = self.cleaner.state();
                if now > cleaner.rested {
                    cleaner.round = Round::first(now);
                }
            }
            self.clean_while_worth().await;
        }
    }

    /// Cleans until there is nothing to do.
    async fn clean_while_worth(self: &Arc<Self>) {
        let mut fruitless = 0;
        loop {
            if !self.cleaner.look() {
                self.cleaner.has_looked();
                self.cleaner.refuse(true);
                return;
            }
            let free = self.free_extents();
            self.cleaner.promotion.want(free <= RESERVED_EXTENTS);
            if free > RESERVED_EXTENTS {
                self.cleaner.state().round = Round::first(self.log.whole().sequence);
                self.release_stores();
            }
            let (round, hosts_wait) = self.cleaner.round();
            let victims = self.take_victims(free, round, &mut fruitless);
            let continues = if victims.is_empty() {
                hosts_wait && (self.wait_for_landings().await || self.next_round())
            } else {
                self.clean(&victims).await.is_ok()
            };
            self.cleaner.has_looked();
            if !continues
                && hosts_wait
                && (self.log.erase_again().await || self.give_up_checkpoint().await)
            {
                continue;
            }
            if !continues && self.cleaner.refuse(hosts_wait) {
                self.cleaner.state().rested = self.log.whole().sequence;
                return;
            }
        }
    }

    /// Wakes stores that wait for space, if there are extents that they may open.
    pub(super) fn release_stores(&self) {
        let (free, open) = {
            let state = self.log.whole();
            (self.log.free_extents(&state), state.with_open_extents())
        };
        if free > RESERVED_EXTENTS {
            self.cleaner.release(free - RESERVED_EXTENTS, open);
        }
    }

    /// See [`Round::next`].
    fn next_round(&self) -> bool {
        let now = self.log.whole().sequence;
        self.cleaner.state().round.next(now)
    }

    /// Waits for pages in flight: their extents cannot be cleaned before. False when there are
    /// none.
    async fn wait_for_landings(self: &Arc<Self>) -> bool {
        let pages = self.log.close_all();
        // The writers that wait for these records handle a failed program.
        let _ = crate::write::pending::durable(&pages).await;
        !pages.is_empty()
    }

    /// Returns the extent in which a value has expired first, unless the cleaner works on its
    /// reserve.
    pub(crate) fn expired_victim(&self, state: &log::State) -> Option<ExtentId> {
        if self.log.free_extents(state) < RESERVED_EXTENTS {
            return None;
        }
        let expired = state
            .extents
            .iter()
            .filter(|(_, extent)| extent.is_cleanable() && has_expired(extent.expires_first));
        expired.min_by_key(|(_, extent)| extent.expires_first).map(|(id, _)| id)
    }

    /// Passes the result of a read on. After a failed one the medium may want the extent cleaned.
    pub(crate) fn noticed(&self, read: Result<Page, media::Error>) -> Result<Page, media::Error> {
        if read.is_err() {
            self.cleaner.wake();
        }
        read
    }

    /// Returns an extent with lost acknowledged records, or else one that the medium wants cleaned
    /// soon.
    fn suspect(&self) -> Option<ExtentId> {
        let suspects = self.log.media.suspects();
        let state = self.log.whole();
        let cleanable = || state.extents.iter().filter(|(_, extent)| extent.is_cleanable());
        let lost = cleanable().find(|(_, extent)| extent.has_lost);
        let wanted = || cleanable().find(|(id, _)| suspects.contains(id));
        lost.or_else(wanted).map(|(id, _)| id)
    }

    /// Returns an extent without any needed record.
    fn dead_extent(&self) -> Option<ExtentId> {
        let state = self.log.whole();
        let is_dead = |extent: &Extent| extent.is_cleanable() && extent.is_dead();
        state.extents.iter().find(|(_, extent)| is_dead(extent)).map(|(id, _)| id)
    }

    /// Takes a victim if cleaning can free space that is needed. If several reactors clean it takes
    /// several, as long as the live records of all together fill at most an extent, and the reserve
    /// is there. It takes one where tombstones are to go: those of a second could not go before the
    /// first is reset.
    fn take_victims(&self, free: u32, round: Round, fruitless: &mut u32) -> Vec<ExtentId> {
        let reactors = self.pool.tasks();
        let takes_one = reactors == 1
            || free < RESERVED_EXTENTS
            || self.has_many_tombstones(&self.log.whole(), free);
        let count = if takes_one { 1 } else { reactors * VICTIMS_OF_EACH };
        let (mut victims, mut live) = (Vec::new(), 0);
        if let Some(urgent) = self.urgent_victim(free) {
            self.log.whole().begin_cleaning(urgent);
            return vec![urgent];
        }
        let needed = (self.extents_low() + 1).saturating_sub(free) as usize;
        while victims.len() < needed.min(count)
            && let Some(victim) = self.choose_victim(free, round, fruitless)
        {
            let mut state = self.log.whole();
            live += state.extents.get(victim).live_bytes();
            if !victims.is_empty() && live > self.log.shape.extent_bytes() {
                break;
            }
            state.begin_cleaning(victim);
            victims.push(victim);
        }
        victims
    }

    /// Returns a victim that is to be cleaned before others.
    fn urgent_victim(&self, free: u32) -> Option<ExtentId> {
        if self.cleaner.state().wants_expired {
            let victim = self.expired_victim(&self.log.whole());
            self.cleaner.state().wants_expired = victim.is_some();
            if victim.is_some() {
                return victim;
            }
        }
        if free > RESERVED_EXTENTS
            && let Some(suspect) = self.suspect()
        {
            return Some(suspect);
        }
        self.log.media.as_memory().and_then(|_| self.dead_extent())
    }

    /// Returns whether tombstones take so much that they are to be cleaned away first.
    fn has_many_tombstones(&self, state: &log::State, free: u32) -> bool {
        let spare = self.log.shape.extent_bytes() * u64::from(self.log.shape.extents);
        let spare = spare.saturating_sub(self.config.capacity_bytes);
        let tombstone_bytes = state.live.tombstones().bytes - state.live.needless_bytes();
        free >= RESERVED_EXTENTS && tombstone_bytes > spare / 4
    }

    /// Returns a victim if cleaning can free space. `fruitless` counts victims in a row that won
    /// too little.
    fn choose_victim(&self, free: u32, round: Round, fruitless: &mut u32) -> Option<ExtentId> {
        let page_bytes = self.log.shape.number_bytes();
        let extent_bytes = self.log.shape.extent_bytes();
        let forced = free <= RESERVED_EXTENTS;
        // The copies may end in the middle of a block.
        let least = self.log.layout.aligned(1) * page_bytes;
        let worth = if forced { u64::from(least) } else { extent_bytes / WORTH_CLEANING };
        let state = self.log.whole();
        let of_round = || state.extents.iter().filter(|(_, extent)| round.is_for(extent));
        if self.has_many_tombstones(&state, free) {
            // Tombstones go when every extent older than they are has been reset.
            let cleanable = of_round().filter(|(_, extent)| extent.is_cleanable());
            return cleanable.min_by_key(|(_, extent)| extent.label.epoch).map(|(id, _)| id);
        }
        let candidate = |(id, extent)| candidate(id, extent, page_bytes, worth);
        let candidates: Vec<Candidate> = of_round().filter_map(candidate).collect();
        let now = state.sequence.0;
        drop(state);
        // With only the reserve left, the cleaner takes the victim that needs the fewest copies.
        let victims = if free < RESERVED_EXTENTS { Victims::Greedy } else { self.config.victims };
        let rng = &mut self.cleaner.state().rng;
        victims.choose(&candidates, now, fruitless, rng).map(ExtentId)
    }
}

/// Returns the extent as a candidate if cleaning it is worth it: it has more than `worth` dead
/// bytes, or no live ones.
fn candidate(id: ExtentId, extent: &Extent, page_bytes: u32, worth: u64) -> Option<Candidate> {
    let written = u64::from(extent.pages()) * u64::from(page_bytes);
    let live = extent.live_bytes();
    let is_worth = live == 0 || live + worth < written;
    let born = extent.label.epoch;
    extent.is_cleanable().then_some(Candidate { id: id.0, born, live, written, is_worth })
}
