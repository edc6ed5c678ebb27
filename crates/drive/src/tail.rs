use crate::durability::Durability;
use crate::layout::Layout;
use crate::sabotage::Sabotage;
use clock::{Class, TaskId};
use media::{Ends, Error, Page};
use std::collections::VecDeque;

/// Bytes that go out in one write, and a page more where its length was not known: large enough
/// that a disk is at its sequential rate.
const WRITE_BYTES: u32 = 1 << 20;

/// Writes of an extent that are under way together: one is on its way while others are at work.
const WRITERS_MAX: u32 = 4;

/// Bytes in the queue that are worth a write beside those that are under way. Fewer wait for later
/// pages: a write costs as much as this many bytes, and pads to a block.
const WORTH_A_WRITE_BYTES: u32 = 64 << 10;

/// Where an extent that is appended to goes on.
///
/// Pages land in order: one has landed when all before it have. So those that outlive a loss of
/// power are the first ones.
///
/// No block of the disk is written twice: a write that is cut off could damage what has landed. So
/// pages lie close together as far as they go out together, and else begin a block. A page may have
/// its place before it is appended; what shares a block with it waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    /// The numbers of pages that have a place and are not appended yet.
    placed: VecDeque<u32>,
    /// The last of all places that begins a block.
    run: u32,
    queue: VecDeque<Queued>,
    /// All units below are written, or under way, to the end of a block.
    taken: u32,
    /// Writes that are under way, and those that have ended behind one that is, in order.
    writes: VecDeque<Write>,
    /// Tasks that write.
    writers: u32,
    /// One of them has begun and has not taken its pages yet.
    is_gathering: bool,
    /// All pages below are written.
    written: u32,
    /// All pages below are flushed.
    flushed: u32,
    /// From this page on appends have failed.
    failed: Option<(u32, Error)>,
    /// Tasks that wait until all pages below a number have landed.
    waiters: Vec<(u32, TaskId)>,
    /// Which appends have ended, as it was told last.
    told: Ends,
}

/// A page that waits for its write.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) number: u32,
    /// Units that are left out before it.
    pub(crate) padding: u8,
    pub(crate) end: u32,
    pub(crate) page: Page,
    pub(crate) class: Class,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    first: u32,
    end: u32,
    has_ended: bool,
}

impl Tail {
    /// All pages below have landed.
    pub(crate) fn landed(&self, durability: Durability) -> u32 {
        match durability {
            Durability::Group if !Sabotage::AnswerBeforeFlush.is_on() => self.flushed,
            Durability::Group | Durability::EverySecond | Durability::Capacitor => self.written,
        }
    }

    /// All pages below outlive a loss of power, as far as anybody can tell.
    pub(crate) const fn lasting(&self, durability: Durability) -> u32 {
        match durability {
            Durability::Group | Durability::EverySecond => self.flushed,
            Durability::Capacitor => self.written,
        }
    }

    pub(crate) const fn written(&self) -> u32 {
        self.written
    }

    pub(crate) const fn flushed(&self) -> u32 {
        self.flushed
    }

    /// Gives the next page its place; see [`media::OnDisk::place`].
    pub(crate) fn place(&mut self, from: u32, holds: bool, layout: &Layout) -> u32 {
        let is_written = from < self.taken;
        let is_long = layout.units_bytes(from - self.run) >= WRITE_BYTES;
        // What waits could go out without this one, which others join first.
        let leaves = !holds && (self.is_gathering || self.may_write_more(layout));
        let first = layout.first_of_block(from);
        let number = if is_written || is_long || leaves { first } else { from };
        if number == first {
            self.run = first;
        }
        self.placed.push_back(number);
        number
    }

    /// The place of the page that is appended now, if it was given one.
    pub(crate) fn next_place(&mut self) -> Option<u32> {
        self.placed.pop_front()
    }

    /// No page comes any more that was given a place. True: a task is to be started that writes.
    pub(crate) fn expect_nothing(&mut self, layout: &Layout) -> bool {
        self.placed.clear();
        self.begin_gathering(layout)
    }

    /// Puts a page into the queue. True: a task is to be started that writes. An error, if an
    /// earlier page of the extent has failed.
    pub(crate) fn queue(&mut self, page: Queued, layout: &Layout) -> Result<bool, Error> {
        if let Some((_, error)) = self.failed {
            return Err(error);
        }
        self.queue.push_back(page);
        Ok(self.begin_gathering(layout))
    }

    /// How many pages of the queue the next write has: up to one behind which a block begins.
    fn ready(&self, layout: &Layout) -> usize {
        let first = self.queue.front().map_or(0, |page| page.number);
        let next = self.queue.iter().skip(1).map(|page| Some(page.number));
        let next = next.chain([self.placed.front().copied()]);
        let mut ready = 0;
        for (count, (page, next)) in (1..).zip(self.queue.iter().zip(next)) {
            let is_long = layout.units_bytes(page.end - first) > WRITE_BYTES;
            if is_long && ready > 0 {
                break;
            }
            if next.is_none_or(|next| layout.first_of_block(next) == next) {
                ready = count;
            }
        }
        ready
    }

    /// Whether what waits is to go out beside what is under way.
    fn may_write_more(&self, layout: &Layout) -> bool {
        if self.writers == 0 {
            return true;
        }
        let [first, last] = [self.queue.front(), self.queue.back()];
        let units = first.zip(last).map_or(0, |(first, last)| last.end - first.number);
        self.writers < WRITERS_MAX && layout.units_bytes(units) >= WORTH_A_WRITE_BYTES
    }

    fn begin_gathering(&mut self, layout: &Layout) -> bool {
        let begins = !self.is_gathering && self.may_write_more(layout) && self.ready(layout) > 0;
        self.writers += u32::from(begins);
        self.is_gathering |= begins;
        begins
    }

    /// The unit that the next write begins with.
    pub(crate) const fn taken(&self) -> u32 {
        self.taken
    }

    /// The pages of the next write of a task that was started; none when it shall end. True: one
    /// more task is to be started for the rest.
    pub(crate) fn take(&mut self, layout: &Layout) -> (Vec<Queued>, bool) {
        self.is_gathering = false;
        let ready = self.ready(layout);
        let taken: Vec<Queued> = self.queue.drain(..ready).collect();
        let [Some(first), Some(last)] = [taken.first(), taken.last()] else {
            self.writers -= 1;
            return (taken, false);
        };
        let (first, end) = (first.number, last.end);
        assert!(first >= self.taken, "no block of frames is written twice");
        self.taken = layout.first_of_block(end);
        self.writes.push_back(Write { first, end, has_ended: false });
        let starts = self.begin_gathering(layout);
        (taken, starts)
    }

    /// A write has ended: the one from page `first` on.
    pub(crate) fn wrote(&mut self, first: u32, result: Result<(), Error>) {
        match result {
            Ok(()) => {
                let write = self.writes.iter_mut().find(|write| write.first == first);
                write.expect("it was under way").has_ended = true;
            }
            Err(error) => {
                self.writes.retain(|write| write.first != first);
                self.fail(first, error);
            }
        }
        while let Some(write) = self.writes.front().filter(|write| write.has_ended) {
            // Behind a page that failed nothing lands.
            if self.failed.is_none_or(|(from, _)| write.end <= from) {
                self.written = write.end;
            }
            self.writes.pop_front();
        }
    }

    /// A flush has ended that began when all below `number` was written.
    pub(crate) fn note_flushed(&mut self, number: u32) {
        self.flushed = self.flushed.max(number);
    }

    /// Appends from page `first` on fail.
    pub(crate) fn fail(&mut self, first: u32, error: Error) {
        if self.failed.is_none_or(|(from, _)| first < from) {
            self.failed = Some((first, error));
        }
        self.queue.clear();
    }

    /// Returns which appends have ended.
    pub(crate) fn ends(&self, durability: Durability) -> Ends {
        // A log that is told that an append failed may reset the extent: so nothing of it is under
        // way then.
        Ends { landed: self.landed(durability), failed: self.failed.filter(|_| self.writers == 0) }
    }

    /// Returns how all appends below `end` have ended, if they have.
    pub(crate) fn outcome(&self, end: u32, durability: Durability) -> Option<Result<(), Error>> {
        end.checked_sub(1).map_or(Some(Ok(())), |last| self.ends(durability).of(last))
    }

    /// From where on appends have failed.
    pub(crate) fn failed(&self) -> Option<u32> {
        self.failed.map(|(from, _)| from)
    }

    /// Nothing is written, or will be.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.writes.is_empty()
    }

    /// As [`Self::outcome`]; if they have not ended, the current task is woken when they have.
    pub(crate) fn outcome_or_wait(
        &mut self,
        end: u32,
        durability: Durability,
    ) -> Option<Result<(), Error>> {
        let outcome = self.outcome(end, durability);
        if outcome.is_none() {
            self.waiters.push((end, clock::current()));
        }
        outcome
    }

    /// Wakes the tasks whose appends have ended. Returns whether some have since the last call.
    pub(crate) fn tell(&mut self, durability: Durability) -> bool {
        let ends = self.ends(durability);
        if self.told == ends {
            return false;
        }
        self.told = ends;
        let mut waiters = std::mem::take(&mut self.waiters);
        waiters.retain(|(end, task)| {
            let has_ended = self.outcome(*end, durability).is_some();
            if has_ended {
                clock::wake(*task);
            }
            !has_ended
        });
        self.waiters = waiters;
        true
    }
}
