use crate::cells::{Cells, TAG_BYTES, Tag};
use crate::counters::{Counters, Tally};
use crate::geometry::{BlockId, Ppa};
use crate::pace::Pace;
use crate::scalar::Scalar;
use crate::staged::{Staged, Step};
use crate::timing::{Model, Order, Timing};
use base::Nanos;
use clock::{Class, Group};
use media::{Page, Select};
use std::sync::Arc;

/// A flash array in time: what reads, programs and erases [`Cells`].
#[derive(Debug)]
pub struct Nand {
    cells: Arc<Cells>,
    timing: Timing,
    pace: Pace,
    steps: Steps,
    tally: Tally,
}

#[derive(Debug)]
enum Steps {
    Staged(Staged),
    Scalar(Scalar),
}

/// What changes cells.
struct Change {
    block: BlockId,
    /// What the array does.
    step: Step,
    /// How long data moves over the channel before.
    transfer: Nanos,
    /// How long the array works.
    array: Nanos,
}

impl Nand {
    /// An idle array over `cells`, waited for in `group`.
    pub fn new(cells: Arc<Cells>, timing: Timing, group: Group) -> Self {
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
        Self { cells, timing, pace, steps, tally: Tally::default() }
    }

    /// What a power cut leaves of the array.
    pub const fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    /// What the array has done so far.
    pub fn counters(&self) -> Counters {
        self.tally.counters()
    }

    /// Senses a page, asks `select` how many of its data bytes are wanted, and moves as many over
    /// the channel in whole transfers, at most the page. The spare bytes ride along.
    #[inline]
    pub async fn read(&self, ppa: Ppa, select: Select<'_>, class: Class) -> Arc<Page> {
        self.assert_holds(ppa);
        self.cells.prefetch(ppa);
        let look = || self.cells.page(ppa);
        let wanted = |page: &Arc<Page>| self.whole_transfers(select(page));
        let (time, retries) = self.read_time(ppa);
        let (page, bytes) = self.sense(ppa.block, time, class, look, wanted).await;
        self.tally.read(bytes);
        self.tally.retries(retries);
        page
    }

    /// Programs a page, which is the next one of its block. The whole page moves over the channel,
    /// padding included. `tag` goes with the first page of a block, and only with it.
    pub async fn program(&self, ppa: Ppa, page: Arc<Page>, tag: Option<Tag>, class: Class) {
        self.assert_fits(ppa, &page, tag);
        let page_bytes = self.cells.geometry().page_bytes;
        let programmed = || {
            self.tally.program(page_bytes);
            self.cells.program(ppa, page, tag);
        };
        let transfer = self.transfer_time(page_bytes);
        let array = self.pace.program(ppa);
        let change = Change { block: ppa.block, step: Step::Program, transfer, array };
        self.change(change, class, programmed).await;
    }

    /// Copies page `from` to page `to` of the same plane, spare bytes and all, through a register
    /// of the plane and not over the channel. `tag` as in [`Self::program`].
    pub async fn copyback(&self, from: Ppa, to: Ppa, tag: Option<Tag>, class: Class) {
        self.assert_holds(from);
        let geometry = self.cells.geometry();
        let plane = |ppa: Ppa| (ppa.block.die, geometry.plane_of(ppa.block));
        assert_eq!(plane(from), plane(to), "{from} and {to} lie in different planes");
        let (read, retries) = self.read_time(from);
        let copied = || {
            let page = self.cells.page(from);
            self.assert_fits(to, &page, tag);
            self.tally.copyback();
            self.tally.retries(retries);
            self.cells.program(to, page, tag);
        };
        let array = read + self.pace.program(to);
        let change = Change { block: to.block, step: Step::Copyback, transfer: Nanos::ZERO, array };
        self.change(change, class, copied).await;
    }

    /// Erases a block.
    pub async fn erase(&self, block: BlockId, class: Class) {
        self.cells.geometry().assert_holds(block);
        let erased = || {
            self.tally.erase();
            self.cells.erase(block);
        };
        let array = self.timing.erase;
        let change = Change { block, step: Step::Erase, transfer: Nanos::ZERO, array };
        self.change(change, class, erased).await;
    }

    /// Tells whether a page is programmed: a sense without a transfer.
    pub async fn probe(&self, ppa: Ppa, class: Class) -> bool {
        self.assert_holds(ppa);
        let look = || ppa.page < self.cells.programmed(ppa.block);
        let time = self.pace.read(ppa);
        let (programmed, _) = self.sense(ppa.block, time, class, look, |_| 0).await;
        self.tally.probe();
        programmed
    }

    /// The tag of a block, `None` when the block is erased: a sense of its first page, of which the
    /// spare bytes alone are taken.
    pub async fn read_tag(&self, block: BlockId, class: Class) -> Option<Tag> {
        self.cells.geometry().assert_holds(block);
        let time = self.pace.read(Ppa { block, page: 0 });
        let (tag, _) = self.sense(block, time, class, || self.cells.tag(block), |_| 0).await;
        self.tally.probe();
        tag
    }

    /// Looks at cells at the end of a sense and moves the bytes that are `wanted` of what was seen.
    #[inline]
    async fn sense<T>(
        &self,
        block: BlockId,
        array: Nanos,
        class: Class,
        look: impl Fn() -> T,
        wanted: impl Fn(&T) -> u32,
    ) -> (T, u32) {
        match &self.steps {
            Steps::Staged(steps) => {
                let _register = steps.register(block, class).await;
                steps.array(block, class, Step::Read, array).await;
                let seen = look();
                let bytes = wanted(&seen);
                steps.transfer(block.die, class, self.transfer_time(bytes)).await;
                (seen, bytes)
            }
            Steps::Scalar(steps) => {
                // The model books the transfer at once, so it must know its length beforehand.
                let bytes = wanted(&look());
                let transfer = self.transfer_time(bytes);
                (steps.sense(block.die, array, transfer, look).await, bytes)
            }
        }
    }

    /// Moves data, has the array work, and then changes the cells.
    async fn change(&self, change: Change, class: Class, changed: impl FnOnce()) {
        let Change { block, step, transfer, array } = change;
        match &self.steps {
            Steps::Staged(steps) => {
                let _register = steps.register(block, class).await;
                if step == Step::Program {
                    steps.announce_program(block, class);
                }
                steps.transfer(block.die, class, transfer).await;
                let suspends = steps.array(block, class, step, array).await;
                self.tally.suspends(suspends);
                changed();
            }
            Steps::Scalar(steps) => steps.change(block.die, transfer, array, changed).await,
        }
    }

    /// How long a read has the array, and how many senses beyond the first are in that.
    #[inline]
    fn read_time(&self, ppa: Ppa) -> (Nanos, u32) {
        let retries = self.pace.retries(ppa, || self.cells.erase_count(ppa.block));
        (Nanos(self.pace.read(ppa).0 * (u64::from(retries) + 1)), retries)
    }

    /// What of a page moves when `bytes` of it are wanted.
    #[inline]
    fn whole_transfers(&self, bytes: u32) -> u32 {
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
    fn assert_holds(&self, ppa: Ppa) {
        let geometry = self.cells.geometry();
        geometry.assert_holds(ppa.block);
        assert!(ppa.page < geometry.pages_per_block, "{ppa} lies outside {geometry:?}");
    }

    fn assert_fits(&self, ppa: Ppa, page: &Page, tag: Option<Tag>) {
        self.assert_holds(ppa);
        let geometry = self.cells.geometry();
        assert_eq!(tag.is_some(), ppa.page == 0, "{ppa} and the tag: only a first page has one");
        let spare_bytes = page.spare().len() + tag.map_or(0, |_| TAG_BYTES);
        assert!(
            spare_bytes <= geometry.spare_bytes as usize,
            "{ppa} has no room for its spare bytes"
        );
        assert!(page.data_bytes() <= geometry.page_bytes, "{ppa} has no room for its data");
    }
}
