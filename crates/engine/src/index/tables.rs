//! Table pages: the pages that an index and checkpoints keep on the medium.
//!
//! They are records of [`Kind::Table`] in extents of a stream of their own. No index entry points
//! to them and no usage counts them; the writer of a page keeps its address. After the name the key
//! of each says where the root of the newest checkpoint lay when it was written, so that opening
//! finds that from the last pages alone.
//!
//! A page is one flash page or less: [`Tables::page_bytes_max`]. Extents are reset by
//! [`Store::checkpoint`](crate::Store::checkpoint), once a checkpoint is complete, if neither that
//! one nor the index names them. When the extents that are kept for the index run low, the index
//! asks for one ([`Tables::ask_for_checkpoint`]).

use crate::clean::turn::Turn;
use crate::error::Error;
use crate::extent::Extents;
use crate::format::address::Address;
use crate::format::layout::{Layout, PageKind};
use crate::format::mend::readable;
use crate::format::page_view::PageView;
use crate::format::record::{Header, InBatch, Kind, Sequence, header_len};
use crate::key_space::TableId;
use crate::log::{Appended, Log, NoRoom, Pin};
use crate::recover::entered::Entered;
use crate::write::pending::durable;
use base::Buf;
use base::checksum::crc32c;
use clock::{Class, Guard, LocalFuture, Lock, Order, Rank, Stage, TaskId};
use media::{ExtentId, Media, Page, PageId, Stream};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of the key of a table page.
const KEY_BYTES: usize = 24;

/// The name of a table page, chosen by its owner. Names of all ones are reserved for checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TablePageName(pub [u8; 16]);

impl TablePageName {
    /// A piece of the root of a checkpoint.
    pub(crate) const PIECE: Self = Self([0xFE; 16]);
    /// The root of a checkpoint.
    pub(crate) const ROOT: Self = Self([0xFF; 16]);
}

/// An extent of table pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableExtent {
    /// Which.
    pub id: ExtentId,
    /// Flash pages written, or on their way.
    pub pages: u32,
    /// True when nothing more will be appended to it.
    pub is_sealed: bool,
}

/// Finds the entries of a table whose hashes are in a range.
pub(crate) type FindEntries = Box<
    dyn Fn(TableId, RangeInclusive<u64>) -> LocalFuture<'static, Vec<(u64, Address)>> + Send + Sync,
>;

/// Where table pages go. Shared by the store and its index.
pub struct Tables {
    pub(crate) log: Arc<Log>,
    /// Finds entries in the log; there is none in tests of an index.
    finder: OnceLock<FindEntries>,
    /// While the store is being opened.
    entered: Mutex<Option<Entered>>,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where the root of the newest checkpoint lies, complete or on its way.
    root: Option<Address>,
    /// The extents of the last complete checkpoint.
    complete: BTreeSet<ExtentId>,
    /// A checkpoint is being written.
    is_running: bool,
    /// It is to be given up: the log needs its space.
    gives_way: bool,
    /// A checkpoint was asked for.
    is_asked: bool,
    maker: Maker,
    /// Tasks that wait for a checkpoint to end.
    waiters: Vec<TaskId>,
    keeper: Keeper,
    pages_read: u64,
    pages_written: u64,
    /// By the numbers of the reactors that wrote them, since the store was opened.
    written_by: BTreeMap<u32, u64>,
}

/// The task of an index that writes its pages.
#[derive(Debug, Default)]
struct Keeper {
    is_at_work: bool,
    /// It must not begin again.
    is_dismissed: bool,
    /// The task that waits for it to end.
    waiter: Option<TaskId>,
}

/// The task that makes checkpoints.
#[derive(Debug, Default)]
enum Maker {
    /// There is no such task: the store is being opened.
    #[default]
    Absent,
    AtWork,
    /// The task waits until a checkpoint is needed.
    Resting(TaskId),
}

/// The information about roots on a page of the medium.
pub(crate) enum Named {
    /// This is the newest before or on the page; there may be none.
    Root(Option<Address>),
    /// The page is of a summary, which begins at this page.
    Summary(u32),
    /// Nothing that can be read.
    Nothing,
}

/// The table pages of an idle store, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedTables {
    root: Option<Address>,
    complete: BTreeSet<ExtentId>,
    pages_read: u64,
    pages_written: u64,
}

struct TablePage {
    name: TablePageName,
    value: Buf,
}

impl Tables {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        let state = Lock::new(Order::Tables, State::default());
        Self { log, finder: OnceLock::new(), entered: Mutex::default(), state }
    }

    /// Makes the tables of a medium without a store, with `extents` kept for them: for tests of an
    /// index.
    pub fn on(media: Arc<dyn Media>, extents: u32) -> Arc<Self> {
        let log = Log::new(media, Extents::default(), Sequence::first());
        log.whole().space.keep(extents);
        Arc::new(Self::new(log.share()))
    }

    /// Sets the function that finds the entries of unreadable pages in the log.
    pub(crate) fn find_entries_by(&self, finder: FindEntries) {
        assert!(self.finder.set(finder).is_ok(), "they are of one store");
    }

    /// Returns the entries of an unreadable table page, found in the log: those of the keys of
    /// `table` whose hashes are among `hashes`. Without a store there are none.
    ///
    /// No task may change one of these entries until they are in memory again: a task that is about
    /// to change one waits in [`Index::load`](crate::Index::load).
    pub async fn entries_of(
        &self,
        table: TableId,
        hashes: RangeInclusive<u64>,
    ) -> Vec<(u64, Address)> {
        match self.finder.get() {
            Some(find) => clock::account_to(Stage::Index, find(table, hashes)).await,
            None => Vec::new(),
        }
    }

    /// `None` while a checkpoint is being written, or wanted.
    pub(crate) fn save(&self) -> Option<SavedTables> {
        let state = self.state();
        let is_quiet = !state.is_running && !state.is_asked && state.waiters.is_empty();
        is_quiet.then(|| SavedTables {
            root: state.root,
            complete: state.complete.clone(),
            pages_read: state.pages_read,
            pages_written: state.pages_written,
        })
    }

    /// Restores what [`Self::save`] returned.
    pub(crate) fn restore(&self, saved: SavedTables) {
        let mut state = self.state();
        (state.root, state.complete) = (saved.root, saved.complete);
        (state.pages_read, state.pages_written) = (saved.pages_read, saved.pages_written);
    }

    /// Notes that the opening of the store begins.
    pub(crate) fn begin_opening(&self) {
        *self.entered() = Some(Entered::default());
    }

    /// Notes that the store is open; false when entries were lost during the opening.
    pub(crate) fn end_opening(&self) -> bool {
        self.entered().take().is_none_or(|entered| !entered.is_damaged)
    }

    /// Calls `look` with the records entered so far; `None` when the store is open.
    pub(crate) fn while_opening<T>(&self, look: impl FnOnce(&mut Entered) -> T) -> Option<T> {
        self.entered().as_mut().map(look)
    }

    fn entered(&self) -> MutexGuard<'_, Option<Entered>> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[track_caller]
    fn state(&self) -> Guard<'_, State> {
        self.state.lock()
    }

    /// Returns the most bytes of a table page: those that fit a page of the medium.
    pub fn page_bytes_max(&self) -> u32 {
        self.log.layout.page_value_max(header_len(KEY_BYTES, None))
    }

    /// Writes table pages, in order, and returns where they lie. Durable on return.
    ///
    /// [`Error::CapacityExceeded`] when there is no room for all of them: then some may have been
    /// written in vain.
    ///
    /// # Panics
    /// When a page has more bytes than fit.
    pub async fn write_all(&self, pages: Vec<(TablePageName, Buf)>) -> Result<Vec<Address>, Error> {
        let mut addresses = Vec::with_capacity(pages.len());
        let mut pending = Vec::new();
        // Only the caller will count these extents as in use, once it has the addresses. The pins
        // keep them from being reset until then.
        let mut pins = Vec::new();
        let root = self.state().root;
        let last = pages.len().saturating_sub(1);
        let mut turn = Turn::default();
        for (number, (name, value)) in pages.iter().enumerate() {
            let record = (*name, value, value.crc32c());
            let appended = self.append(record, root, number == last, &mut pins);
            let Ok(Appended { address, pages, .. }) = appended else { break };
            addresses.push(address);
            pending.extend(pages);
            turn.took_bytes(1, value.len()).await;
        }
        pending.dedup_by(|a, b| Arc::ptr_eq(a, b));
        self.state().count_written(clock::reactor_id(), pending.len() as u64);
        durable(&pending).await?;
        if addresses.len() < pages.len() {
            return Err(Error::CapacityExceeded);
        }
        Ok(addresses)
    }

    /// Appends a table page with its checksum to the first writer's stream. If it is the last of
    /// its list, or there is no room for it, the open page of the medium is closed too: a list
    /// waits for no other. Short table pages before the last may share a page of the medium with
    /// those of another list.
    fn append<'l>(
        &'l self,
        (name, value, value_crc): (TablePageName, &Buf, u32),
        root: Option<Address>,
        is_last: bool,
        pins: &mut Vec<Pin<'l>>,
    ) -> Result<Appended, NoRoom> {
        assert!(value.len() <= self.page_bytes_max(), "a table page is one page of flash");
        let mut header = Header {
            sequence: Sequence::default(),
            kind: Kind::Table,
            table: TableId::STORE,
            value_len: value.len(),
            value_crc,
            value_offset: 0,
            expires: None,
            batch: InBatch::default(),
            key: &table_key(name, root),
        };
        let mut writing = self.log.writing_copies();
        let mut part = writing.part();
        let appended = self.log.append(&mut part, Stream::Index, &mut header, value);
        if let Ok(Appended { address, extent, .. }) = &appended {
            pins.push(self.log.pin(part.shared.get(), *extent));
            if name == TablePageName::ROOT {
                self.state().root = Some(*address);
            }
        }
        if is_last || appended.is_err() {
            self.log.pad(&mut part, Stream::Index);
        }
        appended
    }

    /// Reads a table page; all its time goes to [`Stage::Index`].
    ///
    /// [`Error::Unrecovered`] when it is not what was written.
    pub async fn read(&self, at: Address, class: Class) -> Result<Buf, Error> {
        clock::account_to(Stage::Index, self.page(at, class)).await.map(|page| page.value)
    }

    /// Returns the root at `at`, as it was written; `None` when there is none, or not a whole one.
    pub(crate) async fn read_root(&self, at: Address) -> Option<Buf> {
        let page = self.page(at, Class::Index).await.ok()?;
        (page.name == TablePageName::ROOT).then_some(page.value)
    }

    async fn page(&self, at: Address, class: Class) -> Result<TablePage, Error> {
        let mut visit = self.log.visit(&mut self.log.whole(), at);
        if let Some(unlanded) = visit.on_its_way.record.take() {
            let (name, _) = split_key(unlanded.header.key.as_bytes()).ok_or(Error::Unrecovered)?;
            return Ok(TablePage { name, value: unlanded.part });
        }
        let layout = self.log.layout;
        let (offset, span) = (layout.offset(at), layout.span(at));
        let wanted = |page: &Page| {
            let Some(view) = PageView::new(layout, page) else { return 0 };
            let part = view.header(offset).map_or(0, |header| view.part_len(&header, layout));
            view.front_wanted(offset) + part
        };
        self.state().pages_read += 1;
        let page = self.log.media.read(span, &wanted, class).await?;
        if let Some(found) = TablePage::on(layout, &page, offset) {
            return Ok(found);
        }
        // The value's place is known only if the header is whole.
        self.state().pages_read += 1;
        let everything = |page: &Page| page.data_bytes();
        let page = self.log.media.read(span, &everything, class).await?;
        let page = readable(layout, &page).ok_or(Error::Unrecovered)?;
        TablePage::on(layout, &page, offset).ok_or(Error::Unrecovered)
    }

    /// Returns the information about roots on the page at `at`.
    pub(crate) async fn named_on(&self, at: PageId) -> Named {
        let layout = self.log.layout;
        let headers =
            |page: &Page| PageView::new(layout, page).map_or(0, |view| view.prologue.front_len);
        self.state().pages_read += 1;
        let read = self.log.media.read(layout.headers_span(at), &headers, Class::Index).await;
        let Some(page) = read.ok().and_then(|page| readable(layout, &page)) else {
            return Named::Nothing;
        };
        let Some(view) = PageView::new(layout, &page) else { return Named::Nothing };
        if view.prologue.kind == PageKind::Summary {
            let before = view.prologue.continuation.saturating_mul(layout.full_numbers());
            return Named::Summary(at.page.saturating_sub(before));
        }
        let Some((offset, header)) = view.headers(layout).last() else { return Named::Nothing };
        match split_key(header.key) {
            Some((TablePageName::ROOT, _)) => {
                let number = self.log.number(at.extent, at.page);
                Named::Root(Some(layout.address(number, offset, header.len(), header.value_len)))
            }
            Some((_, root)) => Named::Root(root),
            None => Named::Nothing,
        }
    }

    /// Returns the number of pages of the medium that can be read or written side by side.
    pub fn parallelism(&self) -> usize {
        self.log.shape.parallelism as usize
    }

    /// Returns the extent that a table page lies in.
    pub fn extent_of(&self, at: Address) -> ExtentId {
        self.log.page_id(at).extent
    }

    /// Returns the extents that hold table pages.
    pub fn extents(&self) -> Vec<TableExtent> {
        let state = self.log.whole();
        let tables = state.extents.iter().filter(|(_, e)| e.label.stream == Stream::Index);
        tables
            .map(|(id, e)| TableExtent { id, pages: e.pages(), is_sealed: e.is_sealed() })
            .collect()
    }

    /// Returns the number of extents that table pages can still open, of those that are kept for
    /// them.
    pub fn extents_left(&self) -> u32 {
        self.log.whole().space.kept()
    }

    /// Notes that the index's task that writes its pages begins; false when it must not begin.
    pub(crate) fn begin_keeping(&self) -> bool {
        let keeper = &mut self.state().keeper;
        keeper.is_at_work = !keeper.is_dismissed;
        keeper.is_at_work
    }

    pub(crate) fn end_keeping(&self) {
        let keeper = &mut self.state().keeper;
        keeper.is_at_work = false;
        keeper.waiter.take().into_iter().for_each(clock::wake);
    }

    /// Ends that task for good and waits for its end: the medium is then free for another store.
    /// The caller holds no latch and no permit.
    pub(crate) async fn dismiss_keeper(&self) {
        let is_at_work = {
            let keeper = &mut self.state().keeper;
            keeper.is_dismissed = true;
            keeper.waiter = keeper.is_at_work.then(clock::current);
            keeper.is_at_work
        };
        if is_at_work {
            clock::park(Rank::Free, Stage::Index).await;
        }
    }

    /// Returns true when a task makes the checkpoints that are asked for.
    pub fn makes_checkpoints(&self) -> bool {
        !matches!(self.state().maker, Maker::Absent)
    }

    /// Makes the current task the one that makes checkpoints.
    pub(crate) fn make_checkpoints(&self) {
        self.state().maker = Maker::AtWork;
    }

    /// Resets the extents of table pages that neither the last complete checkpoint nor `in_use`
    /// names. Does nothing while a checkpoint is being written, which may need any.
    pub async fn reset_needless(&self, in_use: impl Fn() -> BTreeSet<ExtentId>) {
        if std::mem::replace(&mut self.state().is_running, true) {
            return;
        }
        self.reset_all_but(&in_use()).await;
        self.end_checkpoint();
    }

    /// As [`Self::reset_needless`], for the task that writes the checkpoint.
    pub(crate) async fn reset_all_but(&self, in_use: &BTreeSet<ExtentId>) {
        let extents = self.extents().into_iter().map(|extent| extent.id);
        let needless = extents.filter(|id| !self.of_checkpoint(*id) && !in_use.contains(id));
        let forgotten: Vec<_> = needless.filter(|id| self.log.forget_tables(*id)).collect();
        for extent in forgotten {
            self.log.erase(extent, Class::Index).await;
        }
    }

    /// Asks for a checkpoint, which frees extents. It is made as soon as none is being made.
    pub fn ask_for_checkpoint(&self) {
        self.state().is_asked = true;
        self.wake_maker();
    }

    /// Asks for a checkpoint and waits until one has ended, complete or not. The caller holds
    /// nothing.
    pub async fn checkpoint_ended(&self) {
        self.ask_for_checkpoint();
        self.end_of_checkpoint().await;
    }

    /// Returns true when the checkpoint that is being written is to be given up: the log needs its
    /// space.
    pub fn gives_way(&self) -> bool {
        self.state().gives_way
    }

    /// Returns the numbers of pages of the medium read and written for tables.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        let state = self.state();
        (state.pages_read, state.pages_written)
    }

    /// Returns the numbers of pages of the medium that each reactor has written for tables since
    /// the store was opened.
    pub(crate) fn written_by(&self) -> BTreeMap<u32, u64> {
        self.state().written_by.clone()
    }

    /// Begins a checkpoint; false when one is being written.
    pub(crate) fn begin_checkpoint(&self) -> bool {
        let mut state = self.state();
        let begins = !std::mem::replace(&mut state.is_running, true);
        if begins {
            state.is_asked = false;
        }
        begins
    }

    pub(crate) fn end_checkpoint(&self) {
        let mut state = self.state();
        (state.is_running, state.gives_way) = (false, false);
        state.waiters.drain(..).for_each(clock::wake);
    }

    /// Waits until the checkpoint that is being written has ended, or the next one.
    pub(crate) async fn end_of_checkpoint(&self) {
        self.state().waiters.push(clock::current());
        clock::park(Rank::Free, Stage::Index).await;
    }

    /// Notes that the checkpoint in these extents is complete: opening will use it.
    pub(crate) fn complete_checkpoint(&self, extents: BTreeSet<ExtentId>) {
        self.state().complete = extents;
    }

    /// Forgets the complete checkpoint.
    pub(crate) fn forget_checkpoint(&self) {
        let mut state = self.state();
        state.root = None;
        state.complete.clear();
    }

    /// Notes the checkpoint by which the store is opened.
    pub(crate) fn reopen_checkpoint(&self, root: Address, extents: BTreeSet<ExtentId>) {
        self.state().root = Some(root);
        self.complete_checkpoint(extents);
    }

    /// Returns true when the last complete checkpoint needs the extent.
    pub(crate) fn of_checkpoint(&self, extent: ExtentId) -> bool {
        self.state().complete.contains(&extent)
    }

    /// Returns true when there is a complete checkpoint and it does not need the extent.
    pub(crate) fn is_needless(&self, extent: ExtentId) -> bool {
        let state = self.state();
        !state.complete.is_empty() && !state.complete.contains(&extent)
    }

    /// Tells the checkpoint that is being written to give way; false when there is none.
    pub(crate) fn give_way(&self) -> bool {
        let mut state = self.state();
        state.gives_way = state.is_running;
        state.is_running
    }

    /// Notes that the current task, which makes checkpoints, is about to wait until one is needed.
    /// Returns false, and notes nothing, if one was asked for, unless it `ignores_request`.
    pub(crate) fn rest(&self, ignores_request: bool) -> bool {
        let mut state = self.state();
        let rests = ignores_request || !state.is_asked;
        if rests {
            state.maker = Maker::Resting(clock::current());
        }
        rests
    }

    pub(crate) fn wake_maker(&self) {
        let mut state = self.state();
        if let Maker::Resting(maker) = state.maker {
            state.maker = Maker::AtWork;
            clock::wake(maker);
        }
    }
}

impl State {
    fn count_written(&mut self, reactor: u32, pages: u64) {
        self.pages_written += pages;
        *self.written_by.entry(reactor).or_default() += pages;
    }
}

impl TablePage {
    /// That whose header is at `offset` of a page that was read, as it was written.
    fn on(layout: Layout, page: &Page, offset: usize) -> Option<Self> {
        let view = PageView::new(layout, page)?;
        let header = view.header(offset).filter(|header| header.kind == Kind::Table)?;
        let (name, _) = split_key(header.key)?;
        let part = view.part(&header, layout).filter(|part| part.len() == header.value_len)?;
        let value = if part.crc32c() == header.value_crc {
            part
        } else {
            Buf::copy_from(&mended(part.bytes()?, header.value_crc)?)
        };
        Some(Self { name, value })
    }
}

/// What CRC-32C makes of a message whose last bit alone is set: its polynomial (RFC 3720), bits in
/// the order of the checksum.
const CRC_OF_LAST_BIT: u32 = 0x82F6_3B78;

/// `bytes` with the one bit turned over that makes their CRC-32C `crc`; `None` when there is none.
/// No two flipped bits look like one: any two messages of up to 2^31 bits and equal checksums
/// differ in four at least (Koopman, 2002).
fn mended(bytes: &[u8], crc: u32) -> Option<Vec<u8>> {
    let wanted = crc32c(bytes) ^ crc;
    let mut of_bit = CRC_OF_LAST_BIT;
    for bit in (0..bytes.len() * 8).rev() {
        if of_bit == wanted {
            let mut mended = bytes.to_vec();
            mended[bit / 8] ^= 1 << (bit % 8);
            return Some(mended);
        }
        of_bit = (of_bit >> 1) ^ if of_bit & 1 == 1 { CRC_OF_LAST_BIT } else { 0 };
    }
    None
}

/// Returns the key of a table page: its name, and where the newest root lay, plus one.
fn table_key(name: TablePageName, root: Option<Address>) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let root = root.map_or(0, |root| root.to_bits() + 1);
    key[..16].copy_from_slice(&name.0);
    key[16..].copy_from_slice(&root.to_le_bytes());
    key
}

/// Returns the name and the root in the key of a table page.
fn split_key(key: &[u8]) -> Option<(TablePageName, Option<Address>)> {
    let key: &[u8; KEY_BYTES] = key.try_into().ok()?;
    let (name, root) = key.split_first_chunk()?;
    let root = u64::from_le_bytes(root.try_into().ok()?);
    let root = root.checked_sub(1).filter(|bits| bits >> Address::BITS == 0);
    Some((TablePageName(*name), root.map(Address::from_bits)))
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tables({:?})", self.extents())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn any_one_flipped_bit_is_mended_and_no_two_are_taken_for_one() {
        let mut rng = Rng::new(1);
        for len in [1, 2, 7, 64, 300] {
            let whole: Vec<u8> = (0..len).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
            let crc = crc32c(&whole);
            for bit in 0..len * 8 {
                let mut bytes = whole.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(mended(&bytes, crc), Some(whole.clone()), "bit {bit} of {len} bytes");
                let other = (bit + 1 + bit % 5) % (len * 8);
                bytes[other / 8] ^= 1 << (other % 8);
                assert_eq!(mended(&bytes, crc), None, "bits {bit} and {other} of {len} bytes");
            }
        }
    }
}
