use crate::cells::{Cells, TAG_BYTES, Tag};
use crate::counters::{Counters, Tally};
use crate::geometry::{BlockId, DieId, Ppa};
use crate::scalar::Scalar;
use crate::staged::Staged;
use crate::timing::{Model, Timing};
use base::Nanos;
use clock::{Class, Group};
use media::{Page, Select};
use std::sync::Arc;

/// A flash array in time: what reads, programs and erases [`Cells`].
#[derive(Debug)]
pub struct Nand {
    cells: Arc<Cells>,
    timing: Timing,
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
    /// What the array's part is called.
    work: &'static str,
    /// How long data moves over the channel before.
    transfer: Nanos,
    /// How long the array works.
    array: Nanos,
}

impl Nand {
    /// An idle array over `cells`, waited for in `group`.
    pub fn new(cells: Arc<Cells>, timing: Timing, group: Group) -> Self {
        let geometry = cells.geometry();
        let steps = match timing.model {
            Model::Staged => Steps::Staged(Staged::new(geometry, timing.registers, group)),
            Model::Scalar => Steps::Scalar(Scalar::new(geometry, timing.registers)),
        };
        Self { cells, timing, steps, tally: Tally::default() }
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
    /// the channel, at most the page. The spare bytes ride along.
    #[inline]
    pub async fn read(&self, ppa: Ppa, select: Select<'_>, class: Class) -> Arc<Page> {
        self.assert_holds(ppa);
        let page_bytes = self.cells.geometry().page_bytes;
        self.cells.prefetch(ppa);
        let look = || self.cells.page(ppa);
        let wanted = |page: &Arc<Page>| select(page).min(page_bytes);
        let (page, bytes) = self.sense(ppa.block.die, class, look, wanted).await;
        self.tally.read(bytes);
        page
    }

    /// Programs a page, which is the next one of its block. The whole page moves over the channel,
    /// padding included. `tag` goes with the first page of a block, and only with it.
    pub async fn program(&self, ppa: Ppa, page: Arc<Page>, tag: Option<Tag>, class: Class) {
        self.assert_holds(ppa);
        let geometry = self.cells.geometry();
        assert_eq!(tag.is_some(), ppa.page == 0, "{ppa} and the tag: only a first page has one");
        let spare_bytes = page.spare().len() + tag.map_or(0, |_| TAG_BYTES);
        assert!(
            spare_bytes <= geometry.spare_bytes as usize,
            "{ppa} has no room for its spare bytes"
        );
        assert!(page.data_bytes() <= geometry.page_bytes, "{ppa} has no room for its data");
        let transfer = self.transfer_time(geometry.page_bytes);
        let programmed = || {
            self.tally.program(geometry.page_bytes);
            self.cells.program(ppa, page, tag);
        };
        let change = Change { work: "program", transfer, array: self.timing.program };
        self.change(ppa.block.die, change, class, programmed).await;
    }

    /// Erases a block.
    pub async fn erase(&self, block: BlockId, class: Class) {
        self.cells.geometry().assert_holds(block);
        let erased = || {
            self.tally.erase();
            self.cells.erase(block);
        };
        let change = Change { work: "erase", transfer: Nanos::ZERO, array: self.timing.erase };
        self.change(block.die, change, class, erased).await;
    }

    /// Tells whether a page is programmed: a sense without a transfer.
    pub async fn probe(&self, ppa: Ppa, class: Class) -> bool {
        self.assert_holds(ppa);
        let look = || ppa.page < self.cells.programmed(ppa.block);
        let (programmed, _) = self.sense(ppa.block.die, class, look, |_| 0).await;
        self.tally.probe();
        programmed
    }

    /// The tag of a block, `None` when the block is erased: a sense of its first page, of which the
    /// spare bytes alone are taken.
    pub async fn read_tag(&self, block: BlockId, class: Class) -> Option<Tag> {
        self.cells.geometry().assert_holds(block);
        let (tag, _) = self.sense(block.die, class, || self.cells.tag(block), |_| 0).await;
        self.tally.probe();
        tag
    }

    /// Looks at cells at the end of a sense and moves the bytes that are `wanted` of what was seen.
    #[inline]
    async fn sense<T>(
        &self,
        die: DieId,
        class: Class,
        look: impl Fn() -> T,
        wanted: impl Fn(&T) -> u32,
    ) -> (T, u32) {
        match &self.steps {
            Steps::Staged(steps) => {
                let _register = steps.register(die, class).await;
                steps.array(die, class, "read", self.timing.read).await;
                let seen = look();
                let bytes = wanted(&seen);
                steps.transfer(die, class, self.transfer_time(bytes)).await;
                (seen, bytes)
            }
            Steps::Scalar(steps) => {
                // The model books the transfer at once, so it must know its length beforehand.
                let bytes = wanted(&look());
                let transfer = self.transfer_time(bytes);
                (steps.sense(die, self.timing.read, transfer, look).await, bytes)
            }
        }
    }

    /// Moves data, has the array work, and then changes the cells.
    async fn change(&self, die: DieId, change: Change, class: Class, changed: impl FnOnce()) {
        let Change { work, transfer, array } = change;
        match &self.steps {
            Steps::Staged(steps) => {
                let _register = steps.register(die, class).await;
                steps.transfer(die, class, transfer).await;
                steps.array(die, class, work, array).await;
                changed();
            }
            Steps::Scalar(steps) => steps.change(die, transfer, array, changed).await,
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
}
