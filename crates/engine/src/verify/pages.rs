//! All pages of one extent, as they lie on the medium.

use super::known::Known;
use super::{Found, Wrong};
use crate::address::Address;
use crate::clean::Record;
use crate::layout::PageKind;
use crate::page_view::PageView;
use crate::record::{Kind, Sequence};
use crate::store::Store;
use base::Buf;
use media::{ExtentInfo, Page, PageId, Stream, Swept, SweptPage};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// An extent of which pages are looked at in the order of their numbers.
pub(super) struct Pages {
    store: Arc<Store>,
    known: Rc<Known>,
    found: Rc<RefCell<Found>>,
    info: ExtentInfo,
    /// What lies on its pages, and on its summary.
    records: Vec<(Address, Sequence)>,
    summary: Vec<u8>,
    summary_starts: Option<u32>,
    unreadable: BTreeSet<u32>,
    long: Option<Long>,
}

/// A value that goes on on the next page.
struct Long {
    record: Record,
    parts: Vec<Buf>,
    missing: u32,
    next: u32,
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
            long: None,
        }
    }

    pub(super) async fn take(&mut self, swept: Swept) {
        for SweptPage { number, page, is_whole, is_mended } in swept.pages {
            self.found.borrow_mut().verified.pages += 1;
            match page {
                Some(page) => self.page(number, &page, is_whole).await,
                None if is_mended => {
                    self.note_unreadable(number, Some(Wrong::Flipped { live: 0 }));
                }
                None => self.note_unreadable(number, None),
            }
        }
    }

    async fn page(&mut self, number: u32, page: &Page, is_whole: bool) {
        let layout = self.store.log.layout;
        let at = PageId { extent: self.info.id, page: number };
        let view = PageView::new(layout, page).filter(|view| view.has_all_headers(layout));
        let Some(view) = view else { return self.note_unreadable(number, Some(Wrong::Headers)) };
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

    /// What damage to a table page is.
    fn table(&self) -> Wrong {
        if self.store.tables.is_needless(self.info.id) { Wrong::DeadTable } else { Wrong::Table }
    }

    fn note_unreadable(&mut self, number: u32, wrong: Option<Wrong>) {
        self.unreadable.insert(number);
        let at = PageId { extent: self.info.id, page: number };
        self.found.borrow_mut().unreadable.insert(at);
        if self.known.outdated.contains(&self.info.id) {
            return;
        }
        let live = self.known.live_on(&self.store, at);
        let is_listed = self.known.listed.contains(&self.info.id);
        let wrong = match wrong {
            _ if self.info.label.stream == Stream::Index => self.table(),
            // It is told of at the end.
            _ if self.info.summary.is_some_and(|first| number >= first) => return,
            Some(Wrong::Flipped { .. }) => Wrong::Flipped { live },
            Some(wrong) => wrong,
            None if live == 0 && is_listed => Wrong::DeadPage,
            None => Wrong::Page { live },
        };
        self.note(number, None, wrong);
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
        let Some(first) = self.info.summary.or(self.summary_starts) else { return };
        let is_table = self.info.label.stream == Stream::Index;
        let listed = self.store.log.listed(self.info.id, &self.summary);
        let listed = listed.filter(|_| self.summary_starts == Some(first));
        let Some(listed) = listed else {
            // Of one that was cut off nobody has said that it is there.
            if self.info.summary.is_some() && !is_table {
                self.note(first, None, Wrong::Summary);
            }
            return;
        };
        let page = |address: Address| self.store.log.page_id(address).page;
        let listed = listed.into_iter().map(|record| (record.address, record.header.sequence));
        let listed: Vec<_> =
            listed.filter(|(address, _)| !self.unreadable.contains(&page(*address))).collect();
        if listed != self.records {
            self.note(first, None, Wrong::SummaryDiffers);
        }
    }
}
