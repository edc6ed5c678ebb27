//! Readers of the log: what keeps an extent in use, and the records in memory.

use super::unlanded::UnlandedPage;
use super::writer::Writer;
use super::{LateWhole, Log, PinOf, State, Whole};
use crate::extent::Extent;
use crate::format::address::{Address, PageNumber};
use crate::format::page_view::PageView;
use crate::format::record::{Header, OwnedHeader};
use crate::write::pending::Pending;
use base::Buf;
use media::ExtentId;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A record that has not landed yet.
pub(crate) struct Unlanded {
    pub(crate) pages: Arc<Pending>,
    pub(crate) header: OwnedHeader,
    /// The value, or of a long one the part on the first page.
    pub(crate) part: Buf,
}

/// The parts of a record in memory that are not durable yet.
#[derive(Default)]
pub(crate) struct OnItsWay {
    /// The record, while its first page has not landed. Boxed, for a reader keeps a place for it
    /// while it waits, and few records are on their way.
    pub(crate) record: Option<Box<Unlanded>>,
    /// All pages of its batch, while one of them has not landed.
    pub(crate) batch: Option<Arc<[Arc<Pending>]>>,
}

/// A reader at a record. The record's extent is not reset before this drops.
pub(crate) struct Visit<'a> {
    pub(crate) address: Address,
    /// As it was when the visit began.
    pub(crate) on_its_way: OnItsWay,
    _pin: Pin<'a>,
}

/// An extent that is not reset before this drops.
pub(crate) struct Pin<'a> {
    log: &'a Log,
    extent: ExtentId,
}

impl<'a> Pin<'a> {
    /// For an extent that has been pinned already.
    pub(crate) const fn taken(log: &'a Log, extent: ExtentId) -> Self {
        Self { log, extent }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.log.pins.remove(self.extent, PinOf::Reader);
    }
}

impl Log {
    /// Begins a visit of the record at `address`: the index leads to it while the log is locked, or
    /// its extent is pinned.
    pub(crate) fn visit(&self, state: &mut Whole<'_>, address: Address) -> Visit<'_> {
        let extent = self.page_id(address).extent;
        let pin = self.pin(state, extent);
        let writer = state.owner(extent);
        let record = self.unlanded(writer, address).map(Box::new);
        let batch = writer.unlanded.batch_of(address);
        Visit { address, on_its_way: OnItsWay { record, batch }, _pin: pin }
    }

    /// Begins visits of the records at `addresses`, to which the index leads in this stretch. Locks
    /// the log if one of them may not have landed.
    #[inline]
    pub(crate) fn visit_all<'a>(
        &'a self,
        state: &mut LateWhole<'a>,
        addresses: &[Address],
        visits: &mut impl Extend<Visit<'a>>,
    ) {
        if !state.is_locked() && addresses.iter().all(|at| self.has_landed(*at)) {
            visits.extend(addresses.iter().map(|at| self.visit_landed(*at)));
        } else {
            visits.extend(addresses.iter().map(|at| self.visit(state.get(), *at)));
        }
    }

    /// As [`Self::visit`], of a record that has landed with its batch, to which the index leads in
    /// this stretch. The log need not be locked.
    #[inline]
    pub(crate) fn visit_landed(&self, address: Address) -> Visit<'_> {
        let extent = self.page_id(address).extent;
        self.pins.add(extent, PinOf::Reader);
        let on_its_way = OnItsWay::default();
        Visit { address, on_its_way, _pin: Pin { log: self, extent } }
    }

    /// Returns true if the record at `address` and its batch have landed. May return false for one
    /// that has. The caller has locked the lane whose index leads to it.
    #[inline]
    pub(crate) fn has_landed(&self, address: Address) -> bool {
        self.settled.has(self.page_id(address))
    }

    /// Returns whether the record at `address` and its batch have landed, in an extent of which
    /// every page has landed. Its key may be reported at once, if its value is on one page.
    pub(crate) fn has_settled(&self, state: &Whole<'_>, address: Address) -> bool {
        let extent = self.page_id(address).extent;
        if state.owner(extent).unlanded.has(address) {
            return false;
        }
        let extent = state.extents.find(extent);
        extent.is_some_and(|extent| !extent.gave_up_in(state.sequence.mount()))
    }

    /// Keeps the records of `extent` where they are, if it is in use.
    pub(crate) fn pin_used(&self, extent: ExtentId) -> Option<Pin<'_>> {
        let mut state = self.whole();
        state.extents.find(extent)?;
        Some(self.pin(&mut state, extent))
    }

    /// Returns true if a page has failed to land since the store was opened.
    #[inline]
    pub(crate) fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// Returns whether one of `pages` failed to land since the store was opened. Readers must not
    /// see its records, which are undone, even if the medium has them. For an extent that was reset
    /// it returns false.
    pub(crate) fn has_failed(&self, extent: ExtentId, pages: RangeInclusive<u32>) -> bool {
        if !self.has_given_up() {
            return false;
        }
        let state = self.whole();
        let has_failed = |extent: &Extent| {
            let gave_up = extent.gave_up_in(state.sequence.mount());
            gave_up && extent.holes().iter().any(|hole| pages.contains(hole))
        };
        state.extents.find(extent).is_some_and(has_failed)
    }

    /// Keeps `extent` from being reset.
    pub(crate) fn pin(&self, state: &mut State, extent: ExtentId) -> Pin<'_> {
        assert!(state.extents.find(extent).is_some(), "an extent in use is pinned");
        self.pins.add(extent, PinOf::Reader);
        Pin { log: self, extent }
    }

    /// Returns what `read` makes of the header of a record of `writer` whose page has not landed,
    /// with that page. Also returns the pages of its batch, unless all have landed.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    pub(crate) fn unlanded_header<T>(
        &self,
        writer: &Writer,
        address: Address,
        read: impl FnOnce(&Header<'_>) -> T,
    ) -> (Option<(T, Arc<Pending>)>, Option<Arc<[Arc<Pending>]>>) {
        let unlanded = self
            .with_unlanded(writer, address, |pages, header, _| Some((read(header), pages.clone())));
        (unlanded, writer.unlanded.batch_of(address))
    }

    /// Returns a record whose page has not landed.
    #[inline]
    pub(crate) fn unlanded(&self, writer: &Writer, address: Address) -> Option<Unlanded> {
        self.with_unlanded(writer, address, |pages, header, part| {
            let (pages, header) = (pages.clone(), OwnedHeader::new(header));
            Some(Unlanded { pages, header, part: part()? })
        })
    }

    /// Returns what `read` makes of a record whose page has not landed: of the page, the header,
    /// and the function that returns the part of the value there.
    #[inline]
    pub(crate) fn with_unlanded<T>(
        &self,
        writer: &Writer,
        address: Address,
        read: impl FnOnce(&Arc<Pending>, &Header<'_>, &dyn Fn() -> Option<Buf>) -> Option<T>,
    ) -> Option<T> {
        let UnlandedPage { page, pending, .. } = writer.unlanded.get(address.page())?;
        let offset = self.layout.offset(address);
        if let Some(page) = page {
            let view = PageView::new(self.layout, page)?;
            let header = view.header(offset)?;
            return read(pending, &header, &|| view.part(&header, self.layout));
        }
        let filling = writer.frontiers.iter().find(|f| Arc::ptr_eq(&f.pending, pending));
        let builder = &filling?.builder;
        let header = builder.header(offset)?;
        read(pending, &header, &|| Some(builder.part(&header)))
    }

    /// Returns the part of a long value that begins page `number`, if that page has not landed yet.
    pub(crate) fn unlanded_continuation(&self, number: PageNumber) -> Option<(Arc<Pending>, Buf)> {
        let mut writing = self.writing_to(self.layout.page_id(number).extent);
        let writer = writing.writer();
        let UnlandedPage { page, pending, .. } = writer.unlanded.get(number)?;
        let part = match page {
            Some(page) => PageView::new(self.layout, page)?.continuation()?,
            None => {
                let mut frontiers = writer.frontiers.iter();
                let filling = frontiers.find(|f| Arc::ptr_eq(&f.pending, pending))?;
                filling.builder.continuation()?
            }
        };
        Some((pending.clone(), part))
    }
}
