mod buffer;
mod content;
mod error;
mod state;
mod states;

pub use error::ZoneError;
pub use state::{ZoneAction, ZoneInfo, ZoneState};

use base::Buf;
use base::limits::BLOCK_BYTES;
use buffer::Buffer;
use clock::{Class, Rank, Stage, join_all};
use content::{Content, Pages, Part, Unlanded};
use media::{Label, Media, Page, PageId, Segments, Stream};
use states::States;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a zoned device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesConfig {
    /// Zones that may be open at a time; 0 for no limit.
    pub max_open: u32,
    /// Zones that may be open or closed at a time; 0 for no limit.
    pub max_active: u32,
    /// Protected memory in which writes gather until their page has landed. Pages that are not full
    /// yet may exceed it: one for each active zone.
    pub buffer_bytes: u64,
    /// Zones; `None` for as many as the medium has extents, which is also the most.
    pub zones: Option<u32>,
}

/// The sizes of a zoned device. They never change.
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

/// Zones of logical blocks, as the ZNS Command Set 1.1 has them, each an extent of a medium.
///
/// A write is answered when it is in the open page of its zone, which is protected memory. A page
/// that is full is appended to the zone's extent; until it has landed it is read from memory.
pub struct Zones {
    media: Arc<dyn Media>,
    shape: ZonesShape,
    page_bytes: u32,
    /// A page that was never written.
    zeros: Buf,
    state: Mutex<State>,
}

struct State {
    states: States,
    contents: Box<[Option<Arc<Content>>]>,
    buffer: Buffer,
    /// Contents with closed pages and no extent: all are in use until a reset has ended.
    wanting: VecDeque<Arc<Content>>,
}

impl Zones {
    /// Empty zones on an empty medium. Panics when a page of the medium is not a whole number of
    /// blocks, or it has fewer extents than there shall be zones.
    pub fn format(media: Arc<dyn Media>, config: ZonesConfig) -> Arc<Self> {
        let medium = media.shape();
        assert!(
            medium.page_bytes > 0 && medium.page_bytes.is_multiple_of(BLOCK_BYTES),
            "a page of {} bytes holds whole blocks of {BLOCK_BYTES} bytes",
            medium.page_bytes
        );
        let zones = config.zones.unwrap_or(medium.extents);
        assert!(
            (1..=medium.extents).contains(&zones),
            "{zones} zones fit a medium of {} extents",
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
        };
        let page_bytes = medium.page_bytes;
        let zeros = Buf::copy_from(&vec![0; page_bytes as usize]);
        Arc::new(Self { media, shape, page_bytes, zeros, state: Mutex::new(state) })
    }

    /// The sizes of the device.
    pub const fn shape(&self) -> ZonesShape {
        self.shape
    }

    /// What `zone` is like at this instant.
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

    /// The content of `count` blocks from `lba` on; zeros where nothing was written. Reads do not
    /// cross zones: the device does not claim Read Across Zone Boundaries.
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
            // What is read is kept from a reset until all parts are here.
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

    /// Writes `data` at `lba`, which is the write pointer of its zone. Returns when the data is in
    /// protected memory.
    pub async fn write(
        self: &Arc<Self>,
        lba: u64,
        data: Segments,
        class: Class,
    ) -> Result<(), ZoneError> {
        let (zone, offset) = self.locate(lba, blocks_of(&data))?;
        self.put(zone, Some(offset), data, class).await.map(|_| ())
    }

    /// Writes `data` wherever the write pointer of the zone that begins at `start` stands, and
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

    /// Reads the blocks of all `sources`, each a first block and a count, and writes them one after
    /// the other at `to`, all inside the device.
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

    /// Does `action` to one zone. A reset returns when the zone's extent is erased; the zone is
    /// empty from the start.
    pub async fn change(self: &Arc<Self>, zone: u32, action: ZoneAction) -> Result<(), ZoneError> {
        self.assert_zone(zone)?;
        let content = self.act(&mut self.state(), zone, action)?;
        match content {
            Some(content) => self.leave(content).await,
            None => Ok(()),
        }
    }

    /// Does `action` to all zones for which it means something (Select All): opens those that are
    /// closed, closes those that are open, finishes those that are active, empties those that are
    /// active or full. Opens all or none.
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

    /// Waits until the full pages that are under way have landed. What is in open pages lies in
    /// protected memory and stays there.
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

    /// The zone of `lba` and its offset there, in blocks, if the device has `count` blocks from it.
    #[inline]
    fn locate(&self, lba: u64, count: u64) -> Result<(u32, u64), ZoneError> {
        let end = lba.checked_add(count).ok_or(ZoneError::OutOfRange)?;
        if end > self.shape.blocks() || lba >= self.shape.blocks() {
            return Err(ZoneError::OutOfRange);
        }
        let zone = u32::try_from(lba / self.shape.zone_blocks).expect("below the zones");
        Ok((zone, lba % self.shape.zone_blocks))
    }

    /// Writes `data` to a zone once it fits the buffer, and returns the offset at which it went.
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
            let content =
                state.contents[zone as usize].get_or_insert_with(|| Arc::new(Content::new(zone)));
            let content = content.clone();
            let closed = content.pages().join(data, self.page_bytes);
            for (number, page) in closed {
                self.send(&mut state, &content, number, page, class);
            }
        }
        state.buffer.wake_next();
        at
    }

    /// Changes a zone, and returns what it held if that has to go.
    fn act(
        self: &Arc<Self>,
        state: &mut State,
        zone: u32,
        action: ZoneAction,
    ) -> Result<Option<Arc<Content>>, ZoneError> {
        state.states.change(zone, action)?;
        match action {
            ZoneAction::Open | ZoneAction::Close => {}
            ZoneAction::Finish => {
                let Some(content) = state.contents[zone as usize].clone() else { return Ok(None) };
                let closed = content.pages().close();
                if let Some((number, page)) = closed {
                    self.send(state, &content, number, page, Class::HostWrite);
                }
            }
            ZoneAction::Reset => return Ok(state.contents[zone as usize].take()),
        }
        Ok(None)
    }

    /// Starts the append of a closed page, or has it wait for an extent.
    fn send(
        self: &Arc<Self>,
        state: &mut State,
        content: &Arc<Content>,
        number: u32,
        page: Arc<Page>,
        class: Class,
    ) {
        let unlanded = Unlanded { page, ticket: state.buffer.close_page(), class };
        let mut pages = content.pages();
        let is_first = pages.unlanded.is_empty();
        pages.unlanded.insert(number, unlanded.clone());
        if pages.extent.is_none() && is_first {
            pages.extent = self.media.open(label(content)).ok();
            if pages.extent.is_none() {
                state.wanting.push_back(content.clone());
            }
        }
        if pages.extent.is_some() {
            self.append_page(content, &mut pages, number, unlanded);
        }
    }

    fn append_page(
        self: &Arc<Self>,
        content: &Arc<Content>,
        pages: &mut Pages,
        number: u32,
        unlanded: Unlanded,
    ) {
        let extent = pages.extent.expect("pages are appended to the extent of their zone");
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
        state.buffer.remove(u64::from(unlanded.page.data_bytes()), Some(unlanded.ticket));
        content.pages().end_append(number, result.is_ok());
        let present = state.contents[content.zone as usize].as_ref();
        if result.is_err() && present.is_some_and(|present| Arc::ptr_eq(present, content)) {
            state.states.fail(content.zone, ZoneState::ReadOnly);
        }
        state.buffer.wake_next();
    }

    /// Drops what a zone held before its reset, and gives its extent back.
    async fn leave(self: &Arc<Self>, content: Arc<Content>) -> Result<(), ZoneError> {
        if !self.drop_unsent(&content) {
            clock::park(Rank::Free, Stage::Queue).await;
        }
        let Some(extent) = content.pages().extent else { return Ok(()) };
        let result = self.media.reset(extent, Class::HostWrite).await;
        let mut state = self.state();
        if result.is_err() {
            state.states.fail(content.zone, ZoneState::Offline);
            if let Some(later) = state.contents[content.zone as usize].take() {
                let zones = self.clone();
                // Whatever becomes of it, the zone is offline.
                clock::spawn(async move { zones.leave(later).await.unwrap_or_default() });
            }
        }
        self.supply(&mut state);
        Ok(result?)
    }

    /// Forgets the pages that are not on their way to an extent. True when none is on its way, and
    /// nobody reads; else the current task is woken then.
    fn drop_unsent(&self, content: &Content) -> bool {
        let mut state = self.state();
        let mut pages = content.pages();
        let open_bytes = pages.drop_open();
        state.buffer.remove(open_bytes, None);
        if pages.extent.is_none() {
            for unlanded in std::mem::take(&mut pages.unlanded).into_values() {
                let bytes = u64::from(unlanded.page.data_bytes());
                state.buffer.remove(bytes, Some(unlanded.ticket));
            }
        }
        let is_left = pages.is_left();
        drop(pages);
        state.buffer.wake_next();
        is_left
    }

    /// Gives free extents to those that wait for one.
    fn supply(self: &Arc<Self>, state: &mut State) {
        while let Some(content) = state.wanting.front().cloned() {
            let mut pages = content.pages();
            let waiting = pages.unlanded.clone();
            if !waiting.is_empty() {
                let Ok(extent) = self.media.open(label(&content)) else { return };
                pages.extent = Some(extent);
            }
            for (number, unlanded) in waiting {
                self.append_page(&content, &mut pages, number, unlanded);
            }
            drop(pages);
            state.wanting.pop_front();
        }
    }

    /// The data of `parts`, in order.
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
                let page = self.media.read(at, &|_: &Page| *len, class).await?;
                let found = page.segments_at(*start, *len);
                Ok(found.ok_or(media::Error::Unrecovered(at))?)
            }
        }
    }
}

/// The label of a zone's extent: its epoch is the zone's number.
fn label(content: &Content) -> Label {
    Label { stream: Stream::Host, epoch: content.zone.into() }
}

/// Whole logical blocks of `data`.
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
