//! Facts about a store's extents and pages, for tools that show where records lie.

use crate::error::Error;
use crate::extent::Live;
use crate::format::layout::PageKind;
use crate::format::page_view::PageView;
use crate::format::record::{Kind, Sequence};
use crate::hashed_key::HashedKey;
use crate::key_space::KeySpaceId;
use crate::recover::listing::Record;
use crate::store::Store;
use base::Key;
use clock::{Class, UnixMillis};
use media::{ExtentId, ExtentInfo, Label, Page, PageId, Stream, SweptPage};
use std::sync::Arc;

/// An extent in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentFacts {
    /// Which.
    pub id: ExtentId,
    /// The stream that filled it, and the sequence number at which it was opened.
    pub label: Label,
    /// One more than the number of its last page, or of that page's last unit.
    pub pages: u32,
    /// It is full, and ends with a summary.
    pub has_summary: bool,
    /// Live values.
    pub values: Live,
    /// Tombstones.
    pub tombstones: Live,
    /// False for pages of a table that belong to no checkpoint which is complete, and for an extent
    /// that is about to be erased.
    pub is_needed: bool,
}

/// A page and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    /// Its number in the extent.
    pub number: u32,
    /// Its content.
    pub content: PageContent,
}

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageContent {
    /// It cannot be read.
    Unreadable,
    /// A part of the extent's summary.
    Summary,
    /// Records.
    Records(Vec<RecordFacts>),
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFacts {
    /// Its kind.
    pub kind: RecordKind,
    /// The key space of its key; 0 is the store's own.
    pub space: KeySpaceId,
    /// Its key.
    pub key: Key,
    /// In which mount it was written, from 1.
    pub mount: u64,
    /// Its number in that mount.
    pub number: u64,
    /// Bytes of its value.
    pub value_len: u32,
    /// Bytes from the start of the page to the value, on a medium of frames.
    pub value_at: Option<u32>,
    /// When it expires.
    pub expires: Option<UnixMillis>,
    /// The index points to it.
    pub is_live: bool,
}

/// The state of its key that a record stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// It has this value.
    Value,
    /// It does not exist.
    Tombstone,
    /// It had a value that cleaning could not read.
    Lost,
    /// It is no key: a page of an index or of a checkpoint.
    Table,
}

impl Store {
    /// Returns all extents in use, by number.
    pub fn extent_facts(&self) -> Vec<ExtentFacts> {
        let mut infos = self.log.media.extents();
        infos.sort_unstable_by_key(|info| info.id);
        infos.iter().map(|info| self.facts_of(info)).collect()
    }

    fn facts_of(&self, info: &ExtentInfo) -> ExtentFacts {
        let state = self.log.whole();
        let known = state.extents.iter().find(|(id, _)| *id == info.id);
        let mut values = Live::default();
        for (_, live) in known.iter().flat_map(|(_, extent)| extent.values()) {
            values.add_all(*live);
        }
        let is_table = info.label.stream == Stream::Index;
        ExtentFacts {
            id: info.id,
            label: info.label,
            pages: info.pages,
            has_summary: info.summary.is_some(),
            values,
            tombstones: known.map(|(_, extent)| extent.tombstones()).unwrap_or_default(),
            is_needed: if is_table { self.tables.of_checkpoint(info.id) } else { known.is_some() },
        }
    }

    /// Returns the content of each page of an extent in use, in the order of writing.
    pub async fn extent_content(self: &Arc<Self>, id: ExtentId) -> Result<Vec<PageFacts>, Error> {
        let (mut content, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let swept = self.log.media.sweep(id, from, Class::HostRead).await?;
            next = swept.next;
            for SweptPage { number, page, .. } in swept.pages {
                let at = PageId { extent: id, page: number };
                let page_content = match page {
                    Some(page) => self.page_content(at, &page).await,
                    None => PageContent::Unreadable,
                };
                content.push(PageFacts { number, content: page_content });
            }
        }
        Ok(content)
    }

    async fn page_content(&self, at: PageId, page: &Page) -> PageContent {
        let kind = PageView::new(self.log.layout, page).map(|view| view.prologue.kind);
        if kind == Some(PageKind::Summary) {
            return PageContent::Summary;
        }
        let Some(found) = self.records_of_page(at, page) else { return PageContent::Unreadable };
        let frames = self.log.layout.frames;
        let spare_len = u32::try_from(page.spare().len()).expect("it fits the spare area");
        let head = frames.map(|frames| frames.head_units(spare_len) * frames.unit_bytes);
        let mut records = Vec::new();
        for record in found {
            records.push(self.record_facts(record, head).await);
        }
        PageContent::Records(records)
    }

    async fn record_facts(&self, record: Record, head: Option<u32>) -> RecordFacts {
        let header = &record.header;
        let key = HashedKey::new(&header.key);
        let found = self.lookup(header.table, key).await;
        let Sequence(count) = header.sequence;
        RecordFacts {
            kind: match header.kind {
                Kind::Value => RecordKind::Value,
                Kind::Tombstone => RecordKind::Tombstone,
                Kind::Lost => RecordKind::Lost,
                Kind::Table => RecordKind::Table,
            },
            space: header.table.space,
            key: header.key.clone(),
            mount: header.sequence.mount(),
            number: count & ((1 << Sequence::COUNT_BITS) - 1),
            value_len: header.value_len,
            value_at: head.map(|head| head + record.value_start),
            expires: header.expires,
            is_live: found.contains(&record.address),
        }
    }
}
