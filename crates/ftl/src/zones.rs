mod buffer;
mod content;
mod error;
mod open;
mod recovery;
mod save;
mod saved;
mod spare;
mod state;
mod states;

pub use error::ZoneError;
pub use recovery::ZonesRecovery;
pub use saved::SavedZones;
pub use state::{ZoneAction, ZoneInfo, ZoneState};

use base::Buf;
use base::limits::BLOCK_BYTES;
use buffer::Buffer;
use clock::{Class, Rank, Stage, TaskId, join_all};
use content::{Content, Pages, Part, Unlanded};
use media::{ExtentId, Label, Media, Page, PageId, Segments, Span, Stream};
use spare::{Kind, Spare};
use states::States;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The parameters of a zoned device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesConfig {
    /// Zones that may be open at a time; 0 for no limit.
    pub max_open: u32,
    /// Zones that may be open or closed at a time; 0 for no limit.
    pub max_active: u32,
    /// Bytes of protected memory for writes whose page has not landed. Partly filled pages, one for
    /// each active zone, may exceed it.
    pub buffer_bytes: u64,
    /// Number of zones; `None` for the most, which is the medium's extents less
    /// [`Zones::SPARE_EXTENTS`].
    pub zones: Option<u32>,
}

/// The sizes of a zoned device, which never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesShape {
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Blocks from the start of a zone to that of the next: a power of two.
    pub zone_blocks: u64,
    /// Blocks of a zone that can be written, from its start.
    pub zone_capacity: u64,
    /// Zones.
    pub zones: u32,
}

impl ZonesShape {
    /// Logical blocks of all zones, with those that cannot be written.
    pub const fn blocks(&self) -> u64 {
        self.zone_blocks * self.zones as u64
    }
}

/// Zones of logical blocks (ZNS Command Set 1.1), each an extent of a medium.
///
/// A write is acknowledged when it is in the open page of its zone, in protected memory. A full
/// page is appended to the zone's extent and read from memory until it has landed.
///
/// # Loss of power
/// [`Self::save_open_pages`] puts the protected memory into an extent of its own, as far as there
/// is power for that; [`Self::open`] takes it back. Zones that were open are closed then, or empty;
/// those that were full, or finished, are so still. What was neither saved nor landed is cut off:
/// the write pointer is behind the last block before which nothing is missing.
///
/// Reading an unreadable page fails with Unrecovered; other pages are not affected. If no later
/// page proves that the page had landed, `open` cuts it off and counts it.
///
/// Only [`Self::save_open_pages`] makes the states read only and offline durable.
pub struct Zones {
    media: Arc<dyn Media>,
    shape: ZonesShape,
    page_bytes: u32,
    /// The content of a page that was never written.
    zeros: Buf,
    state: Mutex<State>,
}

struct State {
    states: States,
    contents: Box<[Option<Arc<Content>>]>,
    buffer: Buffer,
    /// Contents with closed pages and no extent, which wait until a reset frees one.
    wanting: VecDeque<Arc<Content>>,
    /// Contents whose extents are about to be free.
    leaving: Vec<Arc<Content>>,
    /// Number of the next filling of a zone, or of the next saving.
    next_fill: u64,
    /// Appends that are under way, and the tasks that wait until there are none.
    appends: u32,
    savers: Vec<TaskId>,
    /// What [`Zones::open`] took back is still in its extents, and the tasks that wait until it is
    /// not.
    has_saved: bool,
    leavers: Vec<TaskId>,
}

impl State {
    const fn number_fill(&mut self) -> u64 {
        self.next_fill += 1;
        self.next_fill - 1
    }
}

impl Zones {
    /// Extents in addition to those of the zones. A loss of power saves memory to one; the one of
    /// the previous save may still be in use.
    pub const SPARE_EXTENTS: u32 = 2;

    /// Returns the spare bytes of each page that zones need with pages of `page_bytes`.
    pub const fn spare_bytes(page_bytes: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "a few bytes for each block of a page")]
        let bytes = spare::spare_bytes(page_bytes / BLOCK_BYTES) as u32;
        bytes
    }

    /// Empty zones on an empty medium. Panics when a page of the medium is not a whole number of
    /// blocks, or has fewer spare bytes than [`Self::spare_bytes`], or it has fewer extents than
    /// the zones of `config` and [`Self::SPARE_EXTENTS`].
    pub fn format(media: Arc<dyn Media>, config: ZonesConfig) -> Arc<Self> {
        Arc::new(Self::on(media, config))
    }

    fn on(media: Arc<dyn Media>, config: ZonesConfig) -> Self {
        let medium = media.shape();
        assert!(
            medium.page_bytes > 0 && medium.page_bytes.is_multiple_of(BLOCK_BYTES),
            "a page of {} bytes holds whole blocks of {BLOCK_BYTES} bytes",
            medium.page_bytes
        );
        assert!(
            medium.spare_bytes >= Self::spare_bytes(medium.page_bytes),
            "{} spare bytes are enough for the checksums of a page of zones",
            medium.spare_bytes
        );
        let most = medium.extents.saturating_sub(Self::SPARE_EXTENTS);
        let zones = config.zones.unwrap_or(most);
        assert!(
            (1..=most).contains(&zones),
            "{zones} zones and {} spare extents fit a medium of {} extents",
            Self::SPARE_EXTENTS,
            medium.extents
        );
        let capacity = medium.extent_bytes() / u64::from(BLOCK_BYTES);
        let shape = ZonesShape {
            block_bytes: BLOCK_BYTES,
            zone_blocks: capacity.next_power_of_two(),
            zone_capacity: capacity,
            zones,
        };
        let state = State {
            states: States::new(zones, capacity, config.max_open, config.max_active),
            contents: vec![None; zones as usize].into(),
            buffer: Buffer::new(config.buffer_bytes),
            wanting: VecDeque::new(),
            leaving: Vec::new(),
            next_fill: 1,
            appends: 0,
            savers: Vec::new(),
            has_saved: false,
            leavers: Vec::new(),
        };
        let page_bytes = medium.page_bytes;
        let zeros = Buf::copy_from(&vec![0; page_bytes as usize]);
        Self { media, shape, page_bytes, zeros, state: Mutex::new(state) }
    }

    /// Returns the sizes of the device.
    pub const fn shape(&self) -> ZonesShape {
        self.shape
    }

    /// Returns the present state of `zone`.
    pub fn report(&self, zone: u32) -> Result<ZoneInfo, ZoneError> {
        self.assert_zone(zone)?;
        let state = self.state();
        let start = u64::from(zone) * self.shape.zone_blocks;
        let is_known = |state: ZoneState| state == ZoneState::Empty || state.is_active();
        let zone_state = state.states.state(zone);
        Ok(ZoneInfo {
            state: zone_state,
            write_pointer: if is_known(zone_state) {
                start + state.states.written(zone)
            } else {
                u64::MAX
            },
            start,
            capacity: self.shape.zone_capacity,
        })
    }

    /// Returns the limits on open and on active zones; `None` for no limit.
    pub fn limits(&self) -> [Option<u32>; 2] {
        self.state().states.limits()
    }

    /// Returns the content of `count` blocks from `lba` on; zeros where nothing was written. Reads
    /// do not cross zones: the device does not claim Read Across Zone Boundaries.
    pub async fn read(
        self: &Arc<Self>,
        lba: u64,
        count: u32,
        class: Class,
    ) -> Result<Segments, ZoneError> {
        let (zone, offset) = self.locate(lba, u64::from(count))?;
        let end = offset + u64::from(count);
        if end > self.shape.zone_blocks {
            return Err(ZoneError::Boundary);
        }
        let (written, reading) = {
            let state = self.state();
            if state.states.state(zone) == ZoneState::Offline {
                return Err(ZoneError::Offline);
            }
            let written = end.min(state.states.written(zone)).max(offset);
            let bytes = |blocks: u64| blocks * u64::from(BLOCK_BYTES);
            let content = state.contents[zone as usize].as_ref().filter(|_| offset < written);
            let reading =
                content.map(|content| content.read(bytes(offset), bytes(written), self.page_bytes));
            (written, reading)
        };
        let mut data = match reading {
            // `_reading` delays a reset until all parts are read.
            Some((_reading, parts)) => self.collect(parts, class).await?,
            None => Segments::new(),
        };
        let mut missing = (end - written) * u64::from(BLOCK_BYTES);
        while missing > 0 {
            let len = u32::try_from(missing).unwrap_or(u32::MAX).min(self.zeros.len());
            data.push(self.zeros.slice(0..len));
            missing -= u64::from(len);
        }
        Ok(data)
    }

    /// Writes `data` at `lba`, which must be the write pointer of its zone. Returns when the data
    /// is in protected memory.
    pub async fn write(
        self: &Arc<Self>,
        lba: u64,
        data: Segments,
        class: Class,
    ) -> Result<(), ZoneError> {
        let (zone, offset) = self.locate(lba, blocks_of(&data))?;
        self.put(zone, Some(offset), data, class).await.map(|_| ())
    }

    /// Writes `data` at the write pointer of the zone that begins at `start`, and
    /// returns the block at which it went. Otherwise as [`Self::write`].
    pub async fn append(
        self: &Arc<Self>,
        start: u64,
        data: Segments,
        class: Class,
    ) -> Result<u64, ZoneError> {
        let (zone, offset) = self.locate(start, 0)?;
        if offset != 0 {
            return Err(ZoneError::NotAStart);
        }
        self.put(zone, None, data, class).await.map(|at| start + at)
    }

    /// Reads the blocks of all `sources`, each a first block and a count, and writes them
    /// consecutively at `to`. All are blocks of this device.
    pub async fn copy(
        self: &Arc<Self>,
        sources: &[(u64, u32)],
        to: u64,
        class: Class,
    ) -> Result<(), ZoneError> {
        let reads = sources.iter().map(|(lba, count)| {
            let (zones, lba, count) = (self.clone(), *lba, *count);
            async move { zones.read(lba, count, class).await }
        });
        let mut data = Segments::new();
        for read in join_all(reads.collect()).await {
            data.extend(read?);
        }
        self.write(to, data, class).await
    }

    /// Applies `action` to one zone. A reset empties the zone at once and returns when the zone's
    /// extent is erased.
    pub async fn change(self: &Arc<Self>, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        self.assert_zone(zone)?;
        let content = self.act(&mut self.state(), zone, action)?;
        match content {
            Some(content) => self.leave(content).await,
            None => Ok(()),
        }
    }

    /// Applies `action` to all zones in a suitable state (Select All): opens closed ones, closes
    /// open ones, finishes active ones, resets active and full ones. Opens all or none.
    pub async fn change_all(self: &Arc<Self>, action: ZoneAction) -> Result<(), ZoneError> {
        let leaves = {
            let mut state = self.state();
            let states = &mut state.states;
            let zones = match action {
                ZoneAction::Open => return states.open_all(),
                ZoneAction::Close => states.which(ZoneState::is_open),
                ZoneAction::Finish => states.which(ZoneState::is_active),
                ZoneAction::Reset => states.which(|s| s.is_active() || s == ZoneState::Full),
            };
            let mut leaves = Vec::new();
            for zone in zones {
                let content = self.act(&mut state, zone, action)?;
                leaves.extend(content.map(|content| {
                    let zones = self.clone();
                    async move { zones.leave(content).await }
                }));
            }
            leaves
        };
        join_all(leaves).await.into_iter().collect()
    }

    /// Waits until the closed pages have landed. Open pages stay in protected memory. Never returns
    /// if power is lost before they have landed and does not suffice for them.
    pub async fn flush(&self) {
        if !self.state().buffer.is_flushed() {
            clock::park(Rank::Free, Stage::Batch).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn assert_zone(&self, zone: u32) -> Result<(), ZoneError> {
        if zone < self.shape.zones { Ok(()) } else { Err(ZoneError::OutOfRange) }
    }

    /// Returns the zone of `lba` and the offset in it, in blocks, if the device has `count` blocks
    /// from `lba`.
    #[inline]
    fn locate(&self, lba: u64, count: u64) -> Result<(u32, u64), ZoneError> {
        let end = lba.checked_add(count).ok_or(ZoneError::OutOfRange)?;
        if end > self.shape.blocks() || lba >= self.shape.blocks() {
            return Err(ZoneError::OutOfRange);
        }
        let zone = u32::try_from(lba / self.shape.zone_blocks).expect("below the zones");
        Ok((zone, lba % self.shape.zone_blocks))
    }

    /// Writes `data` to a zone once it fits the buffer, and returns its offset.
    async fn put(
        self: &Arc<Self>,
        zone: u32,
        offset: Option<u64>,
        data: Segments,
        class: Class,
    ) -> Result<u64, ZoneError> {
        let blocks = blocks_of(&data);
        let bytes = blocks * u64::from(BLOCK_BYTES);
        if !self.state().buffer.enter(bytes) {
            clock::park(Rank::Credit, Stage::Queue).await;
            self.state().buffer.leave_queue();
        }
        let mut state = self.state();
        let at = state.states.write(zone, offset, blocks);
        if at.is_ok() {
            state.buffer.add(bytes);
            let content = Self::content(&mut state, zone);
            let closed = content.pages().join(data, self.page_bytes);
            for (number, data) in closed {
                self.send(&mut state, &content, (number, Kind::Data, data), class);
            }
        }
        state.buffer.wake_next();
        at
    }

    /// Returns the content of `zone`, a new one if it was empty.
    fn content(state: &mut State, zone: u32) -> Arc<Content> {
        if let Some(content) = &state.contents[zone as usize] {
            return content.clone();
        }
        let content = Arc::new(Content::new(zone, state.number_fill()));
        state.contents[zone as usize] = Some(content.clone());
        content
    }

    /// Changes a zone's state, and returns its content if that is to be dropped.
    fn act(
        self: &Arc<Self>,
        state: &mut State,
        zone: u32,
        action: ZoneAction,
    ) -> Result<Option<Arc<Content>>, ZoneError> {
        let was_full = state.states.state(zone) == ZoneState::Full;
        state.states.change(zone, action)?;
        match action {
            ZoneAction::Open | ZoneAction::Close => {}
            ZoneAction::Finish if was_full => {}
            ZoneAction::Finish => {
                // The page records that the zone is full, so it is written even without data.
                let content = Self::content(state, zone);
                let (number, data) = content.pages().close();
                self.send(state, &content, (number, Kind::Finished, data), Class::HostWrite);
            }
            ZoneAction::Reset => {
                let content = state.contents[zone as usize].take();
                state.leaving.extend(content.clone());
                return Ok(content);
            }
        }
        Ok(None)
    }

    /// Starts the append of a closed page (its number, kind and data), or queues it until an extent
    /// is free.
    fn send(
        self: &Arc<Self>,
        state: &mut State,
        content: &Arc<Content>,
        (number, kind, data): (u32, Kind, Segments),
        class: Class,
    ) {
        let mut pages = content.pages();
        let first = pages.unlanded.keys().next().copied();
        let landed = first.unwrap_or(number);
        let (zone, fill) = (content.zone, content.fill);
        let spare = Spare { kind, zone, page: number, fill, landed, copied: 0, blocks: 0 };
        let ticket = Some(state.buffer.close_page());
        let unlanded = Unlanded { page: spare.page(data), ticket, class };
        pages.unlanded.insert(number, unlanded.clone());
        if pages.extent.is_none() && first.is_none() {
            pages.extent = self.take_extent(state, content);
            if pages.extent.is_none() && !state.leaving.is_empty() {
                state.wanting.push_back(content.clone());
            }
        }
        if pages.extent.is_some() {
            self.append_page(state, content, &mut pages, (number, unlanded));
        } else if state.leaving.is_empty() {
            Self::refuse(state, content, &mut pages);
        }
    }

    /// Returns an extent for `content`. Keeps one for a save at a loss of power, unless no reset
    /// will free another.
    fn take_extent(&self, state: &State, content: &Content) -> Option<ExtentId> {
        let has_one = self.media.free_extents() > 1 || state.leaving.is_empty();
        has_one.then(|| self.media.open(label(content.zone, content.fill)).ok()).flatten()
    }

    /// Handles the lack of an extent for `content`: its zone becomes read only, from memory.
    fn refuse(state: &mut State, content: &Content, pages: &mut Pages) {
        for unlanded in pages.unlanded.values_mut() {
            if let Some(ticket) = unlanded.ticket.take() {
                state.buffer.remove(u64::from(unlanded.page.data_bytes()), Some(ticket));
            }
        }
        state.states.fail(content.zone, ZoneState::ReadOnly);
    }

    fn append_page(
        self: &Arc<Self>,
        state: &mut State,
        content: &Arc<Content>,
        pages: &mut Pages,
        (number, unlanded): (u32, Unlanded),
    ) {
        let extent = pages.extent.expect("pages are appended to the extent of their zone");
        state.appends += 1;
        let class = pages.begin_append(unlanded.class);
        let (zones, content) = (self.clone(), content.clone());
        clock::spawn(async move {
            let at = PageId { extent, page: number };
            let result = zones.media.append(at, unlanded.page.clone(), class).await;
            zones.landed(&content, number, &unlanded, result);
        });
    }

    fn landed(
        self: &Arc<Self>,
        content: &Arc<Content>,
        number: u32,
        unlanded: &Unlanded,
        result: Result<(), media::Error>,
    ) {
        let mut state = self.state();
        content.pages().end_append(number, result.is_ok());
        // A page that lost power stays in the buffer: no flush may report it as durable, and no
        // waiting write may take its room.
        if result != Err(media::Error::PowerLost) {
            state.buffer.remove(u64::from(unlanded.page.data_bytes()), unlanded.ticket);
            let present = state.contents[content.zone as usize].as_ref();
            let is_present = present.is_some_and(|present| Arc::ptr_eq(present, content));
            if result.is_err() && is_present {
                state.states.fail(content.zone, ZoneState::ReadOnly);
            }
            state.buffer.wake_next();
        }
        state.appends -= 1;
        if state.appends == 0 {
            state.savers.drain(..).for_each(clock::wake);
        }
    }

    /// Drops a zone's content after a reset and frees its extent.
    async fn leave(self: &Arc<Self>, content: Arc<Content>) -> Result<(), ZoneError> {
        if !self.drop_unsent(&content) {
            clock::park(Rank::Free, Stage::Queue).await;
        }
        self.saved_is_gone().await;
        let extent = content.pages().extent;
        let result = match extent {
            Some(extent) => self.media.reset(extent, Class::HostWrite).await,
            None => Ok(()),
        };
        let mut state = self.state();
        state.leaving.retain(|leaving| !Arc::ptr_eq(leaving, &content));
        if result.is_err() {
            state.states.fail(content.zone, ZoneState::Offline);
            if let Some(later) = state.contents[content.zone as usize].take() {
                state.leaving.push(later.clone());
                let zones = self.clone();
                // On failure the zone is offline.
                clock::spawn(async move { zones.leave(later).await.unwrap_or_default() });
            }
        }
        self.supply(&mut state);
        Ok(result?)
    }

    /// Makes room for others in the buffer where pages are not on their way to an extent. True when
    /// none is on its way and no task reads; else the current task is woken then.
    fn drop_unsent(&self, content: &Content) -> bool {
        let mut state = self.state();
        let mut pages = content.pages();
        state.buffer.remove(pages.open_bytes().into(), None);
        if pages.extent.is_none() {
            for unlanded in pages.unlanded.values_mut() {
                if let Some(ticket) = unlanded.ticket.take() {
                    state.buffer.remove(unlanded.page.data_bytes().into(), Some(ticket));
                }
            }
        }
        let is_left = pages.is_left();
        drop(pages);
        state.buffer.wake_next();
        is_left
    }

    /// Gives free extents to the contents that wait for one, or refuses them when no more will be
    /// free.
    fn supply(self: &Arc<Self>, state: &mut State) {
        while let Some(content) = state.wanting.front().cloned() {
            let mut pages = content.pages();
            let mut waiting = pages.unlanded.clone();
            waiting.retain(|_, unlanded| unlanded.ticket.is_some());
            if !waiting.is_empty() {
                pages.extent = self.take_extent(state, &content);
                match pages.extent {
                    None if !state.leaving.is_empty() => return,
                    None => Self::refuse(state, &content, &mut pages),
                    Some(_) => {
                        for unlanded in waiting {
                            self.append_page(state, &content, &mut pages, unlanded);
                        }
                    }
                }
            }
            drop(pages);
            state.wanting.pop_front();
        }
    }

    /// Returns the data of `parts`, in order.
    async fn collect(
        self: &Arc<Self>,
        parts: Vec<Part>,
        class: Class,
    ) -> Result<Segments, ZoneError> {
        if let [part] = &*parts {
            return self.part(part, class).await;
        }
        let reads = parts.into_iter().map(|part| {
            let zones = self.clone();
            async move { zones.part(&part, class).await }
        });
        let mut data = Segments::new();
        for part in join_all(reads.collect()).await {
            data.extend(part?);
        }
        Ok(data)
    }

    async fn part(&self, part: &Part, class: Class) -> Result<Segments, ZoneError> {
        match part {
            Part::InMemory(data) => Ok(data.clone()),
            Part::Landed { extent, page, start, len } => {
                let at = PageId { extent: *extent, page: *page };
                let page = self.media.read(Span::of(at), &|_: &Page| *len, class).await?;
                let found = spare::verified(&page, *start, *len);
                Ok(found.ok_or(media::Error::Unrecovered(at))?)
            }
            Part::Lost { extent, page } => {
                Err(media::Error::Unrecovered(PageId { extent: *extent, page: *page }).into())
            }
        }
    }
}

/// Returns the label of the extent of a zone's filling.
fn label(zone: u32, fill: u64) -> Label {
    Label { stream: Stream::Host, epoch: fill << 32 | u64::from(zone) }
}

/// Returns the number of whole logical blocks in `data`.
fn blocks_of(data: &Segments) -> u64 {
    let bytes: u64 = data.iter().map(|segment| u64::from(segment.len())).sum();
    assert!(
        bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES.into()),
        "a write of {bytes} bytes has whole blocks of {BLOCK_BYTES} bytes"
    );
    bytes / u64::from(BLOCK_BYTES)
}

impl fmt::Debug for Zones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zones of {:?}", self.shape)
    }
}
