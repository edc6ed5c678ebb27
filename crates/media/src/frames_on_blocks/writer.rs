use super::drive::Drive;
use super::durability::Durability;
use super::frame::{Head, head_bytes, push};
use super::origin::Opening;
use super::tail::Queued;
use crate::blocks::Segments;
use crate::error::Error;
use crate::extent::{ExtentId, Label, PageId};
use crate::page::Page;
use base::{Buf, BufMut};
use clock::{Class, Rank, Stage};
use std::sync::Arc;

/// Pages that are written together, and what their heads say.
struct Gathered {
    pages: Vec<Queued>,
    /// The unit that the write begins with.
    start: u32,
    opening: Opening,
    label: Label,
    landed: u32,
}

impl Drive {
    /// Appends a page; see [`crate::Media::append`].
    pub(super) async fn append(
        self: &Arc<Self>,
        at: PageId,
        page: Page,
        class: Class,
    ) -> Result<(), Error> {
        let end = self.queue(at, page, class)?;
        self.landed(at.extent, end).await
    }

    /// Queues a page, and returns where it ends.
    fn queue(self: &Arc<Self>, at: PageId, page: Page, class: Class) -> Result<u32, Error> {
        let shape = self.layout.shape(0);
        assert!(page.data_bytes() <= shape.page_bytes, "the data of {at} fits its page");
        assert!(page.spare().len() <= shape.spare_bytes as usize, "{at} fits its spare area");
        let spare_len = u32::try_from(page.spare().len()).expect("it fits the spare area");
        let units = shape.numbers(spare_len, page.data_bytes());
        let mut state = self.state();
        state.writable()?;
        let (opening, used) = state.extents.used(at.extent);
        let tail = used.tail.as_mut().unwrap_or_else(|| panic!("extent {} is sealed", at.extent.0));
        let place = tail.next_place().unwrap_or(used.end);
        assert!(place == at.page, "{at} is appended to {} units", used.end);
        let padding = u8::try_from(at.page - used.end).expect("less than a block");
        used.end = at.page + units;
        assert!(used.end <= shape.pages_per_extent, "{at} lies within its extent");
        let end = used.end;
        let queued = Queued { number: at.page, padding, end, page, class };
        let starts = tail.queue(queued, &self.layout);
        used.pages.as_mut().expect("they are known while it is appended to").push(at.page);
        drop(state);
        if starts {
            self.start_writer(at.extent, opening);
        }
        Ok(end)
    }

    /// Waits until all pages of an extent below `end` have landed.
    pub(super) async fn landed(&self, extent: ExtentId, end: u32) -> Result<(), Error> {
        let outcome = || {
            let mut state = self.state();
            let (_, used) = state.extents.used(extent);
            // What was sealed has landed.
            let Some(tail) = &mut used.tail else { return Some(Ok(())) };
            tail.outcome(end, self.durability)
        };
        if let Some(outcome) = outcome() {
            return outcome;
        }
        self.state().extents.used(extent).1.tail.as_mut().expect("it was there").wait(end);
        clock::park(Rank::Array, Stage::Array).await;
        outcome().expect("who waits is woken when it has ended")
    }

    /// See [`crate::Media::place`].
    pub(super) fn place(&self, from: PageId, holds: bool) -> u32 {
        let mut state = self.state();
        let (_, used) = state.extents.used(from.extent);
        // To what nothing is appended any more nothing will be.
        let tail = used.tail.as_mut();
        tail.map_or(from.page, |tail| tail.place(from.page, holds, &self.layout))
    }

    /// No page comes any more that was given a place.
    pub(super) fn expect_nothing(self: &Arc<Self>, extent: ExtentId) {
        let mut state = self.state();
        let (opening, used) = state.extents.used(extent);
        let starts = used.tail.as_mut().is_some_and(|tail| tail.expect_nothing(&self.layout));
        drop(state);
        if starts {
            self.start_writer(extent, opening);
        }
    }

    pub(super) fn start_writer(self: &Arc<Self>, extent: ExtentId, opening: Opening) {
        let drive = self.clone();
        clock::spawn(async move { drive.write_queued(extent, opening).await });
    }

    /// Writes what is in an extent's queue, as much at a time as there is by then.
    async fn write_queued(self: Arc<Self>, extent: ExtentId, opening: Opening) {
        while let Some(gathered) = self.gather(extent, opening) {
            let (first, class) = (gathered.pages[0].number, gathered.pages[0].class);
            let frames = self.frames(extent, &gathered);
            let start = self.layout.frame_start(PageId { extent, page: gathered.start });
            let result = self.write_bytes(start, frames, class).await;
            self.wrote(extent, opening, first, result);
        }
    }

    /// Takes the pages of the next write; nothing when the queue is empty.
    fn gather(self: &Arc<Self>, extent: ExtentId, opening: Opening) -> Option<Gathered> {
        let mut state = self.state();
        // All may have landed before a task that was started for the rest had its turn.
        let tail = state.extents.tail(extent, opening)?;
        let landed = tail.lasting(self.durability);
        let start = tail.taken();
        let (pages, starts) = tail.take(&self.layout);
        if pages.is_empty() {
            tail.wake(self.durability);
        }
        let label = state.extents.used(extent).1.label;
        drop(state);
        if starts {
            self.start_writer(extent, opening);
        }
        (!pages.is_empty()).then_some(Gathered { pages, start, opening, label, landed })
    }

    fn frames(&self, extent: ExtentId, gathered: &Gathered) -> Segments {
        let heads = self.heads(extent, gathered);
        let (mut frames, mut end, mut at) = (Segments::new(), gathered.start, 0);
        for Queued { number, end: page_end, page, .. } in &gathered.pages {
            frames.extend(self.padding(end, *number));
            end = *page_end;
            let head = heads.slice(at..at + head_bytes(&self.layout, page));
            at += head.len();
            push(&self.layout, head, page, &self.zeros, &mut frames);
        }
        frames.extend(self.padding(end, self.layout.first_of_block(end)));
        frames
    }

    /// The heads of all pages, one behind the other.
    fn heads(&self, extent: ExtentId, gathered: &Gathered) -> Buf {
        let Gathered { pages, opening, label, landed, .. } = gathered;
        let origin = self.origin(extent, *opening);
        let len = |queued: &Queued| head_bytes(&self.layout, &queued.page) as usize;
        let mut heads = BufMut::unpooled(pages.iter().map(len).sum());
        let mut rest = heads.as_mut();
        for queued in pages {
            let (bytes, more) = rest.split_at_mut(len(queued));
            rest = more;
            let head = Head {
                origin,
                label: *label,
                page: queued.number,
                landed: *landed,
                padding: queued.padding,
                spare_len: 0,
                data_len: 0,
                data_crc: 0,
            };
            head.fill(&queued.page, bytes);
        }
        heads.freeze()
    }

    /// What lies between frames, from unit `start` to `end`.
    fn padding(&self, start: u32, end: u32) -> Option<Buf> {
        (start < end).then(|| self.zeros.slice(0..self.layout.units_bytes(end - start)))
    }

    fn wrote(
        self: &Arc<Self>,
        extent: ExtentId,
        opening: Opening,
        first: u32,
        result: Result<(), Error>,
    ) {
        let mut state = self.state();
        let state = &mut *state;
        let tail = state.extents.tail(extent, opening).expect("it is appended to while it writes");
        tail.wrote(first, result);
        if tail.written() > tail.flushed() && state.ended.is_none() {
            state.flushes.note_written(extent, opening, tail.written());
            if self.durability == Durability::Group {
                self.want_flush(&mut state.flushes);
            }
        }
        tail.wake(self.durability);
        let written = tail.written();
        if self.durability == Durability::Capacitor && written > 0 {
            self.enter_landed(state, extent, opening, written);
        }
    }
}
