//! All pages of one extent, as they lie on the medium.

use super::known::Known;
use super::{Found, Wrong};
use crate::format::address::Address;
use crate::format::layout::PageKind;
use crate::format::page_view::PageView;
use crate::format::record::{Kind, Sequence};
use crate::recover::listing::Record;
use crate::store::Store;
use base::Buf;
use media::{ExtentInfo, Page, PageId, Stream, Swept, SweptPage};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// An extent whose pages are verified in the order of their numbers.
pub(super) struct Pages {
    store: Arc<Store>,
    known: Rc<Known>,
    found: Rc<RefCell<Found>>,
    info: ExtentInfo,
    /// The records on its pages; `summary` has the bytes of its summary.
    records: Vec<(Address, Sequence)>,
    summary: Vec<u8>,
    summary_starts: Option<u32>,
    unreadable: BTreeSet<u32>,
    gaps: Vec<Gap>,
    long: Option<Long>,
}

/// A value that continues on the next page.
struct Long {
    record: Record,
    parts: Vec<Buf>,
    missing: u32,
    next: u32,
}

/// A range in which no page can be read, nor its beginning be found.
struct Gap {
    pages: Range<u32>,
    /// The number at which a page is likely to begin.
    likely: u32,
}

impl Pages {
    pub(super) const fn new(
        store: Arc<Store>,
        known: Rc<Known>,
        found: Rc<RefCell<Found>>,
        info: ExtentInfo,
    ) -> Self {
        Self {
            store,
            known,
            found,
            info,
            records: Vec::new(),
            summary: Vec::new(),
            summary_starts: None,
            unreadable: BTreeSet::new(),
            gaps: Vec::new(),
            long: None,
        }
    }

    pub(super) async fn take(&mut self, swept: Swept) {
        let end = swept.next.unwrap_or(self.info.pages);
        let mut pages = swept.pages.into_iter().peekable();
        while let Some(SweptPage { number, from, page, is_whole, is_mended }) = pages.next() {
            self.found.borrow_mut().verified.pages += 1;
            match page {
                Some(page) => self.page(number, &page, is_whole).await,
                None if is_mended => self.note_flipped(number),
                None => {
                    let end = pages.peek().map_or(end, |next| next.from);
                    self.gaps.push(Gap { pages: from..end, likely: number });
                }
            }
        }
    }

    async fn page(&mut self, number: u32, page: &Page, is_whole: bool) {
        // A check does not trust the medium to vouch for its bytes.
        let layout = self.store.log.layout.vouched(false);
        let at = PageId { extent: self.info.id, page: number };
        let view = PageView::new(layout, page).filter(|view| view.has_all_headers(layout));
        let Some(view) = view else { return self.note_unreadable(number, Wrong::Headers) };
        if view.prologue.kind == PageKind::Summary {
            self.summary_starts.get_or_insert(number);
            if view.read_summary(&mut self.summary).is_none() {
                self.unreadable.insert(number);
            }
            return;
        }
        let before = self.found.borrow().damaged();
        self.go_on(number, &view);
        let records = self.store.records_of_page(at, page).unwrap_or_default();
        for record in records {
            self.records.push((record.address, record.header.sequence));
            self.found.borrow_mut().note_record(&record);
            if let Some(wrong) = self.known.weigh(&self.store, &record).await {
                self.note(number, Some(&record), wrong);
            }
            let len = record.part_len(layout.page_bytes);
            let part = page.data_at(record.value_start, len);
            let missing = record.header.value_len - len;
            match part {
                Some(part) if missing > 0 => {
                    let parts = vec![part];
                    self.long = Some(Long { record, parts, missing, next: number + 1 });
                }
                part => self.value(number, &record, part),
            }
        }
        let is_explained = self.found.borrow().damaged() > before;
        if !is_whole && !is_explained {
            self.note(number, None, Wrong::Filling);
        }
    }

    /// Takes the part on this page of a value that began before.
    fn go_on(&mut self, number: u32, view: &PageView<'_>) {
        let Some(mut long) = self.long.take() else { return };
        let part = view.continuation().filter(|part| long.next == number && part.len() > 0);
        let Some(part) = part.filter(|part| part.len() <= long.missing) else {
            return self.value(number, &long.record, None);
        };
        long.missing -= part.len();
        long.next += 1;
        long.parts.push(part);
        if long.missing == 0 {
            let value = Buf::join(&long.parts);
            self.value(number, &long.record, value);
        } else {
            self.long = Some(long);
        }
    }

    /// Checks a value; `None` where some of it cannot be read.
    fn value(&self, number: u32, record: &Record, value: Option<Buf>) {
        let header = &record.header;
        let is_live = self.known.is_live(record);
        let is_whole = match header.kind {
            Kind::Lost if is_live => return self.note(number, Some(record), Wrong::Lost),
            Kind::Lost | Kind::Tombstone => true,
            Kind::Table => value.is_some_and(|value| value.crc32c() == header.value_crc),
            Kind::Value => value.is_some_and(|value| {
                value.len() == header.value_len
                    && self.store.log.value_crc(&value) == header.value_crc
            }),
        };
        if !is_whole {
            let wrong = match header.kind {
                Kind::Table => self.table(),
                _ if is_live => Wrong::Value,
                _ => Wrong::DeadValue,
            };
            self.note(number, Some(record), wrong);
        }
    }

    /// Returns the finding for a damaged table page.
    fn table(&self) -> Wrong {
        if self.store.tables.is_needless(self.info.id) { Wrong::DeadTable } else { Wrong::Table }
    }

    fn note_flipped(&mut self, number: u32) {
        let at = PageId { extent: self.info.id, page: number };
        let live = self.known.live_on(&self.store, at);
        self.note_unreadable(number, Wrong::Flipped { live });
    }

    /// Notes a fault of a page whose place is known.
    fn note_unreadable(&mut self, number: u32, wrong: Wrong) {
        self.unreadable.insert(number);
        self.leave_out(number);
        if self.is_told(number) {
            return;
        }
        let is_table = self.info.label.stream == Stream::Index;
        self.note(number, None, if is_table { self.table() } else { wrong });
    }

    /// Reports index entries that lead to this page as part of its own finding.
    fn leave_out(&self, number: u32) {
        let at = PageId { extent: self.info.id, page: number };
        self.found.borrow_mut().unreadable.insert(at);
    }

    /// Returns whether a fault of this page is reported later: with the extent, if that is an old
    /// copy, or with the summary.
    fn is_told(&self, number: u32) -> bool {
        self.known.outdated.contains(&self.info.id)
            || self.info.label.stream != Stream::Index
                && self.info.summary.is_some_and(|first| number >= first)
    }

    /// Notes the pages that cannot be read between two that can. Where they begin, and how many
    /// they are, only the index and the summary know, which has their keys too.
    fn note_gap(&self, gap: &Gap, listed: &[Record]) {
        let listed = self.of_pages(listed, &gap.pages);
        let mut pages = self.known.pages_within(&self.store, self.info.id, &gap.pages);
        pages.extend(listed.iter().map(|record| self.page_of(record)));
        for page in &pages {
            self.leave_out(*page);
        }
        if self.is_told(gap.likely) {
            return;
        }
        if self.info.label.stream == Stream::Index {
            return self.note(gap.likely, None, self.table());
        }
        if pages.is_empty() {
            self.note_lost(gap.likely, &[]);
        }
        for page in pages {
            self.note_lost(page, self.of_pages(listed, &(page..page + 1)));
        }
    }

    /// Returns the records that begin on `pages`; `records` are in the order of their pages.
    fn of_pages<'a>(&self, records: &'a [Record], pages: &Range<u32>) -> &'a [Record] {
        let [start, end] = [pages.start, pages.end]
            .map(|first| records.partition_point(|record| self.page_of(record) < first));
        &records[start..end]
    }

    /// Notes a page that cannot be read, for each live record that was on it if they are known.
    fn note_lost(&self, page: u32, listed: &[Record]) {
        let at = PageId { extent: self.info.id, page };
        let live = self.known.live_on(&self.store, at);
        let is_listed = self.known.listed.contains(&self.info.id);
        if live == 0 && is_listed {
            return self.note(page, None, Wrong::DeadPage);
        }
        let lost: Vec<_> = listed.iter().filter(|record| self.known.is_live(record)).collect();
        if lost.is_empty() {
            self.note(page, None, Wrong::Page { live });
        }
        for record in lost {
            self.note(page, Some(record), Wrong::Page { live });
        }
    }

    fn page_of(&self, record: &Record) -> u32 {
        self.store.log.page_id(record.address).page
    }

    fn note(&self, page: u32, record: Option<&Record>, wrong: Wrong) {
        let is_table = self.info.label.stream == Stream::Index;
        let key = record.filter(|_| !is_table).map(|record| record.header.key.clone());
        self.found.borrow_mut().note(Some(self.info.id), Some(page), key, wrong);
    }

    /// All pages have been looked at.
    pub(super) fn end(mut self) {
        if let Some(long) = self.long.take() {
            self.value(long.next, &long.record, None);
        }
        let listed = self.listed();
        for gap in &self.gaps {
            self.note_gap(gap, listed.as_deref().unwrap_or_default());
        }
        if let Some(listed) = listed {
            self.compare(&listed);
        }
    }

    /// Returns the records that the summary lists, if the extent has one.
    fn listed(&self) -> Option<Vec<Record>> {
        let first = self.info.summary.or(self.summary_starts)?;
        let listed = self.store.log.listed(self.info.id, &self.summary);
        let listed = listed.filter(|_| self.summary_starts == Some(first));
        let is_table = self.info.label.stream == Stream::Index;
        // A summary that the medium does not know of may have been cut off: that is no fault.
        if listed.is_none() && self.info.summary.is_some() && !is_table {
            self.note(first, None, Wrong::Summary);
        }
        listed
    }

    /// Compares the records of the summary with those on readable pages.
    fn compare(&self, listed: &[Record]) {
        let is_in_gap = |page: u32| {
            let gap = self.gaps.partition_point(|gap| gap.pages.end <= page);
            self.gaps.get(gap).is_some_and(|gap| gap.pages.contains(&page))
        };
        let is_readable = |page: u32| !self.unreadable.contains(&page) && !is_in_gap(page);
        let listed = listed.iter().filter(|record| is_readable(self.page_of(record)));
        let listed = listed.map(|record| (record.address, record.header.sequence));
        if !listed.eq(self.records.iter().copied())
            && let Some(first) = self.summary_starts
        {
            self.note(first, None, Wrong::SummaryDiffers);
        }
    }
}
