use crate::drive::Drive;
use crate::durability::Durability;
use crate::extents::Extent;
use crate::frame::{Head, Written};
use crate::origin::Opening;
use crate::tail::Queued;
use base::Buf;
use clock::{Class, Guard, Rank, Stage};
use media::{Error, ExtentId, Label, Page, PageId, Segments};
use std::sync::{Arc, Weak};

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
    /// Appends a page; see [`media::Media::append`].
    pub(crate) async fn append(
        self: &Arc<Self>,
        at: PageId,
        page: Page,
        class: Class,
    ) -> Result<(), Error> {
        match self.queue(at, page, class) {
            Ok(end) => self.landed(at.extent, end).await,
            Err(error) => {
                // The caller may reset the extent after that.
                let _ = self.landed(at.extent, at.page).await;
                Err(error)
            }
        }
    }

    /// Queues a page. Returns where it ends. See [`media::OnDisk::queue`].
    pub(crate) fn queue(
        self: &Arc<Self>,
        at: PageId,
        page: Page,
        class: Class,
    ) -> Result<u32, Error> {
        let shape = &self.shape;
        let (spare_len, data_len) = (page.spare().len(), page.data_bytes());
        assert!(data_len <= shape.page_bytes, "the data of {at} fits its page");
        assert!(spare_len <= shape.spare_bytes as usize, "{at} fits its spare area");
        let spare_len = u32::try_from(spare_len).expect("it fits the spare area");
        let units = shape.numbers(spare_len, data_len);
        self.writable()?;
        let mut extent = self.extent(at.extent);
        let opening = extent.opening;
        let used = extent.used();
        let tail = used.tail.as_mut().unwrap_or_else(|| panic!("extent {} is sealed", at.extent.0));
        let place = tail.next_place().unwrap_or(used.end);
        assert!(place == at.page, "{at} is appended to {} units", used.end);
        let padding = u8::try_from(at.page - used.end).expect("less than a block");
        used.end = at.page + units;
        assert!(used.end <= shape.pages_per_extent, "{at} lies within its extent");
        let end = used.end;
        used.pages.as_mut().expect("they are known while it is appended to").push(at.page);
        let queued = Queued { number: at.page, padding, end, page, class };
        let starts = tail.queue(queued, &self.layout)?;
        drop(extent);
        if starts {
            self.start_writer(at.extent, opening);
        }
        Ok(end)
    }

    /// Waits until all pages of an extent below `end` have landed.
    pub(crate) async fn landed(&self, extent: ExtentId, end: u32) -> Result<(), Error> {
        loop {
            let outcome = match &mut self.extent(extent).used().tail {
                Some(tail) => tail.outcome_or_wait(end, self.durability),
                // What was sealed has landed.
                None => Some(Ok(())),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
            clock::park(Rank::Array, Stage::Array).await;
        }
    }

    /// See [`media::OnDisk::place`].
    pub(crate) fn place(&self, from: PageId, holds: bool) -> u32 {
        let mut extent = self.extent(from.extent);
        // An extent without a tail has ended.
        let tail = extent.used().tail.as_mut();
        tail.map_or(from.page, |tail| tail.place(from.page, holds, &self.layout))
    }

    /// Pages that were given a place will not be appended.
    pub(crate) fn expect_nothing(self: &Arc<Self>, id: ExtentId) {
        let mut extent = self.extent(id);
        let opening = extent.opening;
        let tail = extent.used().tail.as_mut();
        let starts = tail.is_some_and(|tail| tail.expect_nothing(&self.layout));
        drop(extent);
        if starts {
            self.start_writer(id, opening);
        }
    }

    pub(crate) fn start_writer(self: &Arc<Self>, extent: ExtentId, opening: Opening) {
        clock::spawn(self.clone().write_queued(extent, opening));
    }

    /// Writes what is in an extent's queue, as much at a time as there is by then.
    async fn write_queued(self: Arc<Self>, extent: ExtentId, opening: Opening) {
        clock::name_task("page program");
        while let Some(gathered) = self.gather(extent, opening) {
            let (first, class) = (gathered.pages[0].number, gathered.pages[0].class);
            let frames = self.frames(extent, &gathered);
            let start = self.layout.frame_start(PageId { extent, page: gathered.start });
            // The log has the pages too, and may use their memory again once they have landed.
            drop(gathered);
            let result = self.write_bytes(start, frames, class).await;
            self.wrote(extent, opening, first, result);
        }
    }

    /// Takes the pages of the next write; nothing when the queue is empty.
    fn gather(self: &Arc<Self>, id: ExtentId, opening: Opening) -> Option<Gathered> {
        let mut extent = self.extent(id);
        // All may have landed before a task that was started for the rest had its turn.
        let tail = extent.tail(opening)?;
        let landed = tail.lasting(self.durability);
        let start = tail.taken();
        let (pages, starts) = tail.take(&self.layout);
        if pages.is_empty() {
            self.tell_ends(extent, id, opening);
            return None;
        }
        let label = extent.used().label;
        drop(extent);
        if starts {
            self.start_writer(id, opening);
        }
        Some(Gathered { pages, start, opening, label, landed })
    }

    fn frames(&self, extent: ExtentId, gathered: &Gathered) -> Segments {
        let mut end = gathered.start;
        let written = gathered.pages.iter().map(|queued| {
            let before = queued.number - std::mem::replace(&mut end, queued.end);
            Written::of(&self.layout, before, &queued.page)
        });
        let written: Vec<_> = written.collect();
        let after = self.layout.units_bytes(self.layout.first_of_block(end) - end);
        let own = self.own(extent, gathered, &written, after);
        let mut frames = Segments::with_capacity(2 * written.len() + 1);
        let (mut start, mut at) = (0, 0);
        for (queued, written) in gathered.pages.iter().zip(&written) {
            if let Some(gap) = written.gap() {
                frames.push(own.slice(start..at + gap));
                start = at + gap;
                queued.page.with_segments(|data| {
                    frames.extend(data.iter().filter(|segment| segment.len() > 0).cloned());
                });
            }
            at += written.own();
        }
        frames.extend((start < own.len()).then(|| own.slice(start..own.len())));
        frames
    }

    /// What is written beside data by reference, one behind the other, and `after` zeros.
    fn own(&self, extent: ExtentId, gathered: &Gathered, written: &[Written], after: u32) -> Buf {
        let Gathered { pages, opening, label, landed, .. } = gathered;
        let origin = self.origin(extent, *opening);
        let len = written.iter().map(Written::own).sum::<u32>() + after;
        let mut own = self.pool.take(len as usize);
        let mut rest = own.as_mut();
        for (queued, written) in pages.iter().zip(written) {
            let (bytes, more) = rest.split_at_mut(written.own() as usize);
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
            written.fill(head, &queued.page, bytes);
        }
        rest.fill(0);
        own.freeze()
    }

    fn wrote(
        self: &Arc<Self>,
        id: ExtentId,
        opening: Opening,
        first: u32,
        result: Result<(), Error>,
    ) {
        let mut extent = self.extent(id);
        let tail = extent.tail(opening).expect("it is appended to while it writes");
        tail.wrote(first, result);
        let (written, flushed) = (tail.written(), tail.flushed());
        if self.durability != Durability::Capacitor && written > flushed {
            self.flush_next(|flushes| flushes.note_written(id, opening, written));
        }
        if self.durability == Durability::Capacitor && written > 0 {
            self.enter_landed(id, &extent, opening, written);
        }
        self.tell_ends(extent, id, opening);
    }

    /// Tells how appends to an extent have ended, if that has changed.
    pub(crate) fn tell_ends(&self, mut extent: Guard<'_, Extent>, id: ExtentId, opening: Opening) {
        if !extent.tail(opening).is_some_and(|tail| tail.tell(self.durability)) {
            return;
        }
        drop(extent);
        let log = self.state().log.as_ref().and_then(Weak::upgrade);
        if let Some(log) = log {
            log.land(id);
        }
    }
}
