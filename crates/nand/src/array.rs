use crate::cells::{Cells, Sensed, TAG_BYTES, Tag};
use crate::counters::{Counters, Tally};
use crate::error::{CopyError, EraseError, ProgramError, ReadError};
use crate::fault::{FaultPlan, FaultReport};
use crate::faults::{End, Faults};
use crate::geometry::{BlockId, Ppa};
use crate::instant_reads::InstantReads;
use crate::pace::Pace;
use crate::power::{Leave, Power, stand_still};
use crate::scalar::Scalar;
use crate::staged::{Staged, Step};
use crate::timing::{Model, Order, Timing};
use crate::torn::Torn;
use base::Nanos;
use clock::{Class, Group};
use media::{Page, Select};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Reads, programs and erases [`Cells`], each in its time.
#[derive(Debug)]
pub struct Nand {
    cells: Arc<Cells>,
    timing: Timing,
    pace: Pace,
    steps: Steps,
    pub(crate) tally: Tally,
    may_fail: bool,
    senses_at_once: bool,
    is_instant: bool,
    /// True when faults may happen or the mains have failed. Every step checks it first.
    is_troubled: AtomicBool,
    pub(crate) faults: Faults,
    power: Power,
}

#[derive(Debug)]
enum Steps {
    Staged(Staged),
    Scalar(Scalar),
}

/// A step that changes cells.
#[derive(Clone, Copy)]
struct Change {
    /// The kind and place of the step; erases and marks have no page.
    step: Step,
    at: Ppa,
    /// The time on the channel before the array works.
    transfer: Nanos,
    /// The time in the array.
    array: Nanos,
}

impl Nand {
    /// Returns an idle array over `cells`, waited for in `group`, with the faults of a plan.
    pub fn new(cells: Arc<Cells>, timing: Timing, faults: FaultPlan, group: Group) -> Self {
        assert!(timing.transfer_bytes > 0, "a transfer moves bytes");
        let geometry = cells.geometry();
        let group = match timing.order {
            Order::Class => group,
            Order::Arrival => {
                let own = Group::new();
                own.serve_in_order_of_arrival();
                own
            }
        };
        let steps = match timing.model {
            Model::Staged => Steps::Staged(Staged::new(geometry, &timing, group)),
            Model::Scalar => Steps::Scalar(Scalar::new(geometry, timing.registers)),
        };
        let pace = Pace::new(geometry, &timing);
        Self {
            may_fail: !faults.rules.is_empty() || cells.has_broken_blocks(),
            senses_at_once: pace.senses_at_once(),
            is_instant: Pace::is_instant(&timing, geometry),
            cells,
            timing,
            pace,
            steps,
            tally: Tally::default(),
            is_troubled: AtomicBool::new(!faults.rules.is_empty()),
            faults: Faults::new(faults),
            power: Power::mains(),
        }
    }

    /// Returns the cells, which a power cut leaves.
    pub const fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// True when no sense takes time. Then memory that a read touches is best prefetched before
    /// the read begins: see [`Cells::prefetch_all`].
    #[inline]
    pub const fn senses_at_once(&self) -> bool {
        self.senses_at_once
    }

    /// True when no operation takes time or waits for another.
    #[inline]
    pub const fn is_instant(&self) -> bool {
        self.is_instant
    }

    /// Returns the array's counters.
    pub fn counters(&self) -> Counters {
        self.tally.counters()
    }

    /// Returns the faults so far.
    pub fn faults(&self) -> FaultReport {
        self.faults.report()
    }

    /// False when no program and no erase can ever fail.
    pub const fn may_fail(&self) -> bool {
        self.may_fail
    }

    /// Switches to capacitors after the mains fail. Steps that hold a page register finish. Only
    /// steps of [`Class::HostWrite`] begin, and no erase. Senses are free; programs, copies and
    /// marks use the energy for `pages` of them, then fail with [`ProgramError::PowerLost`]. All
    /// other steps wait forever: the caller drops the reactor next.
    pub fn run_on_capacitors(&self, pages: u64) {
        self.power.run_on_capacitors(pages);
        self.is_troubled.store(true, Relaxed);
    }

    /// True after the mains have failed.
    pub fn is_on_capacitors(&self) -> bool {
        self.power.is_on_capacitors()
    }

    /// Senses a page and calls `select` for the number of data bytes wanted. Moves that many over
    /// the channel, in whole transfers, at most the page. The spare bytes move along. An
    /// uncorrectable page moves nothing.
    #[inline]
    pub async fn read(
        &self,
        ppa: Ppa,
        select: Select<'_>,
        class: Class,
    ) -> Result<Page, ReadError> {
        self.assert_holds(ppa);
        let look = || self.cells.page(ppa);
        let wanted = |page: &Option<Page>| {
            page.as_ref().map_or(0, |page| self.whole_transfers(select(page)))
        };
        let (time, retries) = self.read_time(ppa);
        if !self.senses_at_once {
            self.cells.prefetch(ppa);
        }
        let (page, bytes) = self.sense(ppa, time, class, look, wanted).await;
        self.tally.reads(1, bytes.into());
        self.tally.retries(retries);
        page.ok_or(ReadError::Uncorrectable)
    }

    /// Returns a reader that needs no task. `None` if a read may have to wait.
    pub fn instant_reads(&self) -> Option<InstantReads<'_>> {
        (self.is_instant && !self.is_troubled()).then(|| InstantReads::new(self))
    }

    /// Programs the next page of its block. The whole page moves over the channel, padding
    /// included. The first page of a block requires `tag`, later pages have none; each page with
    /// room for the tag gets a copy.
    pub async fn program(
        &self,
        ppa: Ppa,
        page: Page,
        tag: Option<Tag>,
        class: Class,
    ) -> Result<(), ProgramError> {
        self.assert_fits(ppa, &page, tag);
        self.program_content(ppa, Some(page), tag, class).await
    }

    /// Programs a page that replaces a lost one: reading it fails. Otherwise as [`Self::program`].
    pub async fn program_unreadable(
        &self,
        ppa: Ppa,
        tag: Option<Tag>,
        class: Class,
    ) -> Result<(), ProgramError> {
        self.assert_tagged(ppa, tag);
        self.program_content(ppa, None, tag, class).await
    }

    async fn program_content(
        &self,
        ppa: Ppa,
        page: Option<Page>,
        tag: Option<Tag>,
        class: Class,
    ) -> Result<(), ProgramError> {
        let page_bytes = self.cells.geometry().page_bytes;
        let programmed = || {
            self.tally.program(page_bytes);
            self.end_program(ppa, page, tag)
        };
        let transfer = self.transfer_time(page_bytes);
        let array = self.pace.program(ppa);
        let change = Change { step: Step::Program, at: ppa, transfer, array };
        match self.change(change, class, programmed).await {
            Some(true) => Ok(()),
            Some(false) => Err(ProgramError::Failed),
            None => Err(ProgramError::PowerLost),
        }
    }

    /// Copies page `from` to page `to` of the same plane, including the spare bytes, through a
    /// register of the plane and not over the channel. `tag` as in [`Self::program`].
    pub async fn copyback(
        &self,
        from: Ppa,
        to: Ppa,
        tag: Option<Tag>,
        class: Class,
    ) -> Result<(), CopyError> {
        self.assert_holds(from);
        let geometry = self.cells.geometry();
        let plane = |ppa: Ppa| (ppa.block.die, geometry.plane_of(ppa.block));
        assert_eq!(plane(from), plane(to), "{from} and {to} lie in different planes");
        let (read, retries) = self.read_time(from);
        let copied = || {
            self.strike_sense(from);
            let Some(page) = self.cells.page(from) else { return Err(CopyError::Uncorrectable) };
            self.assert_fits(to, &page, tag);
            self.tally.copyback();
            self.tally.retries(retries);
            self.end_program(to, Some(page), tag).then_some(()).ok_or(CopyError::Failed)
        };
        let array = read + self.pace.program(to);
        let change = Change { step: Step::Copyback, at: to, transfer: Nanos::ZERO, array };
        self.change(change, class, copied).await.unwrap_or(Err(CopyError::PowerLost))
    }

    /// Erases a block.
    pub async fn erase(&self, block: BlockId, class: Class) -> Result<(), EraseError> {
        self.cells.geometry().assert_holds(block);
        let erased = || {
            self.tally.erase();
            self.end_erase(block)
        };
        let (at, array) = (Ppa { block, page: 0 }, self.timing.erase);
        let change = Change { step: Step::Erase, at, transfer: Nanos::ZERO, array };
        let erased = self.change(change, class, erased).await;
        let erased = erased.expect("an erase that has no power waits for ever");
        erased.then_some(()).ok_or(EraseError::Failed)
    }

    /// Marks `block` as bad for good, in the time of a program. [`Cells::is_bad`] is then true; its
    /// pages stay readable. The mark is in a part of the die that has no faults.
    pub async fn retire(&self, block: BlockId, class: Class) -> Result<(), ProgramError> {
        self.cells.geometry().assert_holds(block);
        let at = Ppa { block, page: 0 };
        let (array, transfer) = (self.pace.program(at), Nanos::ZERO);
        let change = Change { step: Step::Retire, at, transfer, array };
        let retired = self.change(change, class, || self.cells.retire(block)).await;
        retired.ok_or(ProgramError::PowerLost)
    }

    /// Returns whether a page is programmed, if it is readable: a sense without a transfer.
    pub async fn probe(&self, ppa: Ppa, class: Class) -> Result<bool, ReadError> {
        self.assert_holds(ppa);
        let look = || self.cells.sensed(ppa);
        let (sensed, _) = self.sense(ppa, self.pace.read(ppa), class, look, |_| 0).await;
        self.tally.probe();
        match sensed {
            Sensed::Blank => Ok(false),
            Sensed::Readable => Ok(true),
            Sensed::Unreadable => Err(ReadError::Uncorrectable),
        }
    }

    /// Returns the tag of a block from page `ppa`, or `None` when the page is not programmed.
    /// Senses the page and takes only its spare bytes.
    pub async fn read_tag(&self, ppa: Ppa, class: Class) -> Result<Option<Tag>, ReadError> {
        let programmed = self.probe(ppa, class).await?;
        Ok(programmed.then(|| self.cells.tag(ppa.block)))
    }

    /// Reads cells at the end of a sense and moves the `wanted` bytes of the result.
    #[inline]
    async fn sense<T>(
        &self,
        ppa: Ppa,
        array: Nanos,
        class: Class,
        look: impl Fn() -> T,
        wanted: impl Fn(&T) -> u32,
    ) -> (T, u32) {
        let die = ppa.block.die;
        match &self.steps {
            Steps::Staged(steps) => {
                let register = steps.register(ppa.block, class).await;
                let mut array = array;
                if self.is_troubled() {
                    if self.power.to_sense(class) != Leave::Begin {
                        drop(register);
                        stand_still().await;
                    }
                    array = self.faults.stretch(ppa.block, Some(ppa.page), array);
                }
                steps.array(ppa.block, class, Step::Read, array).await;
                self.strike_sense(ppa);
                let seen = look();
                let bytes = wanted(&seen);
                if let Some(transfer) = steps.transfer(die, class, self.transfer_time(bytes)) {
                    transfer.await;
                }
                steps.end_unload(ppa.block, class);
                (seen, bytes)
            }
            Steps::Scalar(steps) => {
                let mut array = array;
                if self.is_troubled() {
                    if self.power.to_sense(class) != Leave::Begin {
                        stand_still().await;
                    }
                    array = self.faults.stretch(ppa.block, Some(ppa.page), array);
                }
                // The model books the transfer at once, so it needs the length before the sense
                // ends.
                let bytes = wanted(&look());
                let transfer = self.transfer_time(bytes);
                let sensed = || {
                    self.strike_sense(ppa);
                    let seen = look();
                    // It has seen the page before it was sensed, not the one that is returned.
                    wanted(&seen);
                    seen
                };
                (steps.sense(die, array, transfer, sensed).await, bytes)
            }
        }
    }

    /// Moves data, has the array work, and then changes the cells. `None` when there is no power
    /// for the change.
    async fn change<T>(
        &self,
        change: Change,
        class: Class,
        changed: impl FnOnce() -> T,
    ) -> Option<T> {
        let Change { step, at, transfer, mut array } = change;
        match &self.steps {
            Steps::Staged(steps) => {
                let register = steps.register(at.block, class).await;
                if self.is_troubled() {
                    match self.leave(step, class) {
                        Leave::Begin => array = self.stretch(&change),
                        Leave::Fail => return None,
                        Leave::Never => {
                            drop(register);
                            stand_still().await;
                        }
                    }
                }
                if step == Step::Program {
                    steps.announce_program(at.block, class).await;
                }
                if let Some(transfer) = steps.transfer(at.block.die, class, transfer) {
                    transfer.await;
                }
                let torn = Torn::once_served(&self.cells, at, step);
                let suspends = steps.array(at.block, class, step, array).await;
                torn.whole();
                self.tally.suspends(suspends);
                Some(changed())
            }
            Steps::Scalar(steps) => {
                if self.is_troubled() {
                    match self.leave(step, class) {
                        Leave::Begin => array = self.stretch(&change),
                        Leave::Fail => return None,
                        Leave::Never => stand_still().await,
                    }
                }
                let torn = || Torn::from_now(&self.cells, at, step);
                steps.change(at.block.die, transfer, array, torn).await.whole();
                Some(changed())
            }
        }
    }

    #[inline]
    fn is_troubled(&self) -> bool {
        self.is_troubled.load(Relaxed)
    }

    fn leave(&self, step: Step, class: Class) -> Leave {
        match step {
            Step::Read => self.power.to_sense(class),
            Step::Program | Step::Copyback | Step::Retire => self.power.to_program(class),
            Step::Erase => self.power.to_erase(),
        }
    }

    fn stretch(&self, change: &Change) -> Nanos {
        let page = match change.step {
            Step::Erase | Step::Retire => None,
            Step::Read | Step::Program | Step::Copyback => Some(change.at.page),
        };
        self.faults.stretch(change.at.block, page, change.array)
    }

    /// Applies faults to a sensed page before any reader sees it.
    #[inline]
    fn strike_sense(&self, ppa: Ppa) {
        if self.is_troubled() && self.cells.sensed(ppa) == Sensed::Readable {
            let damage = self.faults.sense(ppa, self.cells.has_bits(ppa));
            if let Some(bit) = damage.flip {
                self.cells.flip_bit(ppa, bit);
            }
            if damage.is_uncorrectable {
                self.cells.spoil(ppa);
            }
        }
    }

    /// Ends a program; without `page`, that of an unreadable page. Returns whether it succeeded. A
    /// program that was requested before another of its block failed leaves the cells unchanged.
    /// The failed page is thus the last of the block, like one that a loss of power cut off.
    fn end_program(&self, ppa: Ppa, page: Option<Page>, tag: Option<Tag>) -> bool {
        if self.cells.is_closed(ppa.block) {
            return false;
        }
        let end = if self.cells.is_broken(ppa.block) {
            End::Failed
        } else if self.is_troubled() {
            self.faults.program(ppa)
        } else {
            End::Good
        };
        match page {
            _ if end != End::Good => self.cells.fail_program(ppa, tag),
            Some(page) => self.cells.program(ppa, page, tag),
            None => self.cells.program_unreadable(ppa, tag),
        }
        if end == End::Broke {
            self.cells.wreck(ppa.block);
        }
        end == End::Good
    }

    /// Ends an erase. Returns whether it succeeded.
    fn end_erase(&self, block: BlockId) -> bool {
        let end = if self.cells.is_broken(block) {
            End::Failed
        } else if self.is_troubled() {
            self.faults.erase(block)
        } else {
            End::Good
        };
        match end {
            End::Good => self.cells.erase(block),
            End::Failed => self.cells.half_erase(block),
            End::Broke => {
                self.cells.half_erase(block);
                self.cells.wreck(block);
            }
        }
        end == End::Good
    }

    /// Returns how long a read holds the array, and how many retry senses that includes.
    #[inline]
    fn read_time(&self, ppa: Ppa) -> (Nanos, u32) {
        let retries = self.pace.retries(ppa, || self.cells.erase_count(ppa.block));
        (Nanos(self.pace.read(ppa).0 * (u64::from(retries) + 1)), retries)
    }

    /// Returns how many bytes of a page move when `bytes` of it are wanted.
    #[inline]
    pub(crate) fn whole_transfers(&self, bytes: u32) -> u32 {
        let page_bytes = self.cells.geometry().page_bytes;
        match self.timing.transfer_bytes {
            1 => bytes.min(page_bytes),
            each => bytes.checked_next_multiple_of(each).unwrap_or(page_bytes).min(page_bytes),
        }
    }

    #[inline]
    fn transfer_time(&self, bytes: u32) -> Nanos {
        Nanos::for_bytes(u64::from(bytes), self.timing.channel_bytes_per_second)
    }

    #[inline]
    pub(crate) fn assert_holds(&self, ppa: Ppa) {
        let geometry = self.cells.geometry();
        geometry.assert_holds(ppa.block);
        assert!(ppa.page < geometry.pages_per_block, "{ppa} lies outside {geometry:?}");
    }

    fn assert_tagged(&self, ppa: Ppa, tag: Option<Tag>) {
        self.assert_holds(ppa);
        assert_eq!(tag.is_some(), ppa.page == 0, "{ppa} and the tag: only a first page has one");
    }

    fn assert_fits(&self, ppa: Ppa, page: &Page, tag: Option<Tag>) {
        self.assert_tagged(ppa, tag);
        let geometry = self.cells.geometry();
        let spare_bytes = page.spare().len() + tag.map_or(0, |_| TAG_BYTES);
        assert!(
            spare_bytes <= geometry.spare_bytes as usize,
            "{ppa} has no room for its spare bytes"
        );
        assert!(page.data_bytes() <= geometry.page_bytes, "{ppa} has no room for its data");
    }
}
