use crate::drive::Drive;
use crate::frame::{DataCrc, Head, State};
use crate::layout::{HEAD_BYTES, NOTE_BYTES};
use crate::origin::Opening;
use base::Buf;
use clock::Class;
use media::{ExtentId, Label, Page, PageId};

/// Bytes that are read at a time: a disk is at its sequential rate.
const WINDOW_BYTES: u32 = 1 << 20;

/// The class of what a start reads: whoever needs the drive waits for it.
pub(crate) const CLASS: Class = Class::HostRead;

/// Goes through the frames of an extent.
pub(crate) struct Walk<'a> {
    drive: &'a Drive,
    extent: ExtentId,
    /// The first unit that was read, and as many as there are here.
    window: Option<(u32, Page)>,
}

/// What lies at a place where a frame may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The first unit behind the frame before.
    pub(crate) start: u32,
    pub(crate) page: u32,
    pub(crate) state: State,
}

/// What the frames of one opening tell.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Frames, and where one should have begun.
    pub(crate) places: Vec<Place>,
    /// All pages below outlived any loss of power.
    pub(crate) landed: u32,
    pub(crate) label: Option<Label>,
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(drive: &'a Drive, extent: ExtentId) -> Self {
        Self { drive, extent, window: None }
    }

    /// The frames of `opening` below unit `end`, and where one should have begun and none does.
    /// Their data is looked at if `is_thorough`.
    pub(crate) async fn frames(mut self, opening: Opening, end: u32, is_thorough: bool) -> Walked {
        let mut walked = Walked::default();
        let mut page = 0;
        while page < end {
            let start = page;
            let Some((head, is_whole)) = self.frame_from(opening, start, end).await else {
                let can_be_read = self.window_at(page).await.is_some();
                let state = if can_be_read { State::Torn } else { State::Damaged };
                (page, _) = self.next_frame(opening, start, end).await;
                let begin = self.begin_of(start, page).await;
                walked.places.push(Place { start, page: begin, state });
                continue;
            };
            page = head.page;
            let state = match (is_whole, is_thorough) {
                (true, false) => State::Whole,
                (false, false) => State::Damaged,
                (_, true) => match self.data_of(&head).await {
                    // All of it was written: reads correct the bit.
                    State::Whole if !is_whole => State::Damaged,
                    state => state,
                },
            };
            walked.landed = walked.landed.max(head.landed);
            walked.label.get_or_insert(head.label);
            walked.places.push(Place { start, page, state });
            page += head.units(&self.drive.layout);
        }
        walked
    }

    /// The head of the frame that begins at `page`, or that says that all from there on to it is
    /// padding, and whether it is whole: of one of which a bit was turned over it is what it was.
    async fn frame_from(&mut self, opening: Opening, page: u32, end: u32) -> Option<(Head, bool)> {
        let last = self.drive.layout.frames().aligned(page).min(end - 1);
        let belongs = |head: &Head| head.page == page || head.end_before() == page;
        for at in page..=last {
            if let Some(head) = self.head_of(opening, at).await.filter(belongs) {
                return Some((head, true));
            }
        }
        self.flipped_frame_from(opening, page, end).await.map(|head| (head, false))
    }

    /// The same of a head of which a bit was turned over.
    pub(crate) async fn flipped_frame_from(
        &mut self,
        opening: Opening,
        page: u32,
        end: u32,
    ) -> Option<Head> {
        let last = self.drive.layout.frames().aligned(page).min(end - 1);
        let belongs = |head: &Head| head.page == page || head.end_before() == page;
        for at in page..=last {
            if let Some(head) = self.flipped_head_of(opening, at).await.filter(belongs) {
                return Some(head);
            }
        }
        None
    }

    /// The first unit behind `page` at which a frame of `opening` begins, `end` if none does, and
    /// whether what lies before it from `page` on is padding.
    pub(crate) async fn next_frame(
        &mut self,
        opening: Opening,
        page: u32,
        end: u32,
    ) -> (u32, bool) {
        for next in page + 1..end {
            if let Some(head) = self.head_of(opening, next).await {
                return (next, head.end_before() == page);
            }
        }
        (end, false)
    }

    /// Where a frame of which nothing is left is likely to have begun, between `start`, where the
    /// one before ends, and `end`: behind what looks like padding up to the next block.
    pub(crate) async fn begin_of(&mut self, start: u32, end: u32) -> u32 {
        let block = self.drive.layout.first_of_block(start);
        if block >= end {
            return start;
        }
        for unit in start..block {
            let found = self.bytes(unit, 0, self.drive.layout.unit_bytes).await;
            let bytes = found.as_ref().and_then(Buf::bytes);
            if !bytes.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)) {
                return start;
            }
        }
        block
    }

    async fn head_of(&mut self, opening: Opening, page: u32) -> Option<Head> {
        let at = PageId { extent: self.extent, page };
        self.head(page).await.filter(|head| self.drive.is_at(head, at, opening))
    }

    /// The head at a unit as it was before a bit was turned over.
    async fn flipped_head_of(&mut self, opening: Opening, page: u32) -> Option<Head> {
        let at = PageId { extent: self.extent, page };
        let unit_bytes = self.drive.layout.unit_bytes;
        let room = (self.drive.layout.pages() - page) * unit_bytes;
        let bytes = self.bytes(page, 0, room.min(NOTE_BYTES)).await?;
        let repaired = Head::repair(bytes.bytes()?, |head| self.drive.is_at(head, at, opening));
        repaired.map(|(head, _)| head)
    }

    /// The head that stands at a unit, whosever it is.
    pub(crate) async fn head(&mut self, page: u32) -> Option<Head> {
        let first = self.bytes(page, 0, HEAD_BYTES).await?;
        let len = Head::len_of(first.bytes()?)?;
        let whole = self.bytes(page, 0, len).await?;
        Head::decode(whole.bytes()?)
    }

    /// Whether the data of a frame is what its head says.
    async fn data_of(&mut self, head: &Head) -> State {
        let layout = self.drive.layout;
        let start = head.page + layout.frames().head_units(head.spare_len);
        let (mut crc, mut done) = (DataCrc::default(), 0);
        while done < head.data_len {
            let unit = start + done / layout.unit_bytes;
            let Some((first, window)) = self.window_at(unit).await else {
                return State::Damaged;
            };
            let offset = layout.units_bytes(unit - first);
            let len = (window.data_bytes() - offset).min(head.data_len - done);
            let pieces = window.segments_at(offset, len).expect("the window has as much");
            pieces.iter().for_each(|piece| crc.add(piece));
            done += len;
        }
        if crc.value() == head.data_crc { State::Whole } else { State::Torn }
    }

    /// `len` bytes from byte `start` of a unit on, in one piece; `None` where they cannot be read,
    /// or are none.
    async fn bytes(&mut self, unit: u32, start: u32, len: u32) -> Option<Buf> {
        let unit_bytes = self.drive.layout.unit_bytes;
        let mut parts = Vec::new();
        let mut at = unit * unit_bytes + start;
        let end = at + len;
        while at < end {
            if at / unit_bytes >= self.drive.layout.pages() {
                return None;
            }
            let (first, window) = self.window_at(at / unit_bytes).await?;
            let offset = at - first * unit_bytes;
            let here = (window.data_bytes() - offset).min(end - at);
            parts.push(window.data_at(offset, here)?);
            at += here;
        }
        Buf::join(&parts)
    }

    /// What was read with `unit` in it, and its first unit.
    async fn window_at(&mut self, unit: u32) -> Option<&(u32, Page)> {
        let Self { drive, extent, .. } = *self;
        let unit_bytes = drive.layout.unit_bytes;
        let has_it = self.window.as_ref().is_some_and(|(first, window)| {
            (*first..first + window.data_bytes() / unit_bytes).contains(&unit)
        });
        if !has_it {
            let start = drive.layout.frame_start(PageId { extent, page: unit });
            let units = (WINDOW_BYTES / unit_bytes).min(drive.layout.pages() - unit);
            let mut found = drive.read_bytes(start, units * unit_bytes, CLASS).await;
            if found.is_err() {
                // One block that cannot be read takes no others with it.
                found = drive.read_bytes(start, unit_bytes, CLASS).await;
            }
            self.window = found.ok().map(|found| (unit, Page::new(&[], found)));
        }
        self.window.as_ref()
    }
}
