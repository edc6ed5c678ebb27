//! Reads all pages of the medium in the background, extent after extent, and reports damage before
//! a host reads it.
//!
//! Extents that are still being filled are left for the next pass. Each read pins its extent like
//! any reader: a reset waits for that one read. An extent that is reset between two reads is
//! skipped.

use crate::check::scrubber::{Progress, ScrubFinding, Scrubbed, ScrubbedPart};
use crate::extent::Extent;
use crate::format::layout::PageKind;
use crate::format::page_view::PageView;
use crate::format::record::Kind;
use crate::log::Pin;
use crate::recover::listing::Record;
use crate::store::Store;
use base::Nanos;
use clock::{Class, Stage};
use media::{ExtentId, Label, PageId, SweptPage};
use std::num::NonZero;
use std::sync::Arc;

/// The class of these reads: all other classes have priority.
const CLASS: Class = Class::Wear;

/// A pass begins at most this often: small drives are soon read.
const PASS: Nanos = Nanos::from_secs(60 * 60);

/// Damaged pages that are remembered, so that each is told of once.
const KNOWN_MAX: usize = 10_000;

/// Pages that are to be read in one go.
struct Chunk<'a> {
    extent: ExtentId,
    label: Label,
    from: u32,
    end: u32,
    _pin: Pin<'a>,
}

impl Store {
    /// Returns the progress of scrubbing.
    pub fn scrubbed(&self) -> Scrubbed {
        self.scrubber.progress().scrubbed
    }

    /// Reads all pages in repeated passes until [`Self::end_scrubbing`], at most `rate` bytes per
    /// second. Begins at the place that the newest checkpoint has. Calls `tell` once for each
    /// damaged page.
    pub async fn scrub(self: Arc<Self>, rate: NonZero<u64>, tell: impl Fn(ScrubFinding) + 'static) {
        clock::name_task("scrub");
        let mut began = clock::now();
        while !self.scrubber.progress().is_ending {
            let start = clock::now();
            let until = match self.next_chunk() {
                Some(chunk) => start + time_of(self.scrub_chunk(chunk, &tell).await, rate),
                None => {
                    began = start.max(began + PASS);
                    began
                }
            };
            clock::sleep(Nanos(until.0.saturating_sub(clock::now().0)), Stage::Gc).await;
        }
    }

    /// Ends scrubbing before its next read.
    pub fn end_scrubbing(&self) {
        self.scrubber.progress().is_ending = true;
    }

    /// Returns the pages to read next; `None` at the end of a pass.
    fn next_chunk(&self) -> Option<Chunk<'_>> {
        let mut state = self.log.whole();
        let mut progress = self.scrubber.progress();
        let Progress { scrubbed, within, .. } = &mut *progress;
        let is_whole = |(id, extent): &(ExtentId, &Extent)| {
            id.0 >= scrubbed.extent
                && extent.is_sealed()
                && extent.has_landed()
                && extent.pages() > 0
        };
        let next = state.extents.iter().find(is_whole);
        let Some((extent, label, end)) = next.map(|(id, it)| (id, it.label, it.pages())) else {
            (scrubbed.extent, *within) = (0, None);
            scrubbed.passes += 1;
            return None;
        };
        let is_same = extent.0 == scrubbed.extent;
        let from = within.filter(|(then, _)| is_same && *then == label).map_or(0, |(_, from)| from);
        scrubbed.extent = extent.0;
        let pin = self.log.pin(&mut state, extent);
        Some(Chunk { extent, label, from, end, _pin: pin })
    }

    /// Reads some pages, and returns how many bytes that were.
    async fn scrub_chunk(&self, chunk: Chunk<'_>, tell: &impl Fn(ScrubFinding)) -> u64 {
        let Chunk { extent, label, from, end, .. } = chunk;
        let media = &self.log.media;
        // The medium may have reset the extent. Then no page has to be rewritten either.
        let Ok(swept) = media.sweep(extent, from, CLASS).await else {
            self.go_behind(extent, label, None);
            return 0;
        };
        for page in &swept.pages {
            let at = PageId { extent, page: page.number };
            if self.damaged_part(at, page).is_none() {
                continue;
            }
            // A disk that returned wrong bytes once may return the right ones in a second read.
            let again = media.sweep(extent, page.number, CLASS).await;
            let again = again.ok().and_then(|swept| swept.pages.into_iter().next());
            let part = again.and_then(|page| self.damaged_part(at, &page));
            if let Some(part) = part
                && self.is_new(at, label)
            {
                tell(ScrubFinding { at, part });
            }
        }
        self.go_behind(extent, label, swept.next);
        let read = u64::from(swept.next.unwrap_or(end).saturating_sub(from));
        let bytes = read * u64::from(self.log.shape.number_bytes());
        self.scrubber.progress().scrubbed.bytes += bytes;
        bytes
    }

    fn go_behind(&self, extent: ExtentId, label: Label, next: Option<u32>) {
        let progress = &mut *self.scrubber.progress();
        progress.within = next.map(|next| (label, next));
        progress.scrubbed.extent = extent.0 + u32::from(next.is_none());
    }

    fn is_new(&self, at: PageId, label: Label) -> bool {
        let Progress { scrubbed, known, .. } = &mut *self.scrubber.progress();
        let is_new = known.len() < KNOWN_MAX && known.insert((at.extent, label.epoch, at.page));
        scrubbed.damaged += u64::from(is_new);
        is_new
    }

    /// Returns the damaged part of a page. Of a value on several pages only the medium's checksums
    /// are checked.
    fn damaged_part(&self, at: PageId, swept: &SweptPage) -> Option<ScrubbedPart> {
        // A check does not trust the medium to vouch for its bytes.
        let layout = self.log.layout.vouched(false);
        let unread = if swept.is_mended { ScrubbedPart::Headers } else { ScrubbedPart::Page };
        let Some(page) = &swept.page else { return Some(unread) };
        let view = PageView::new(layout, page).filter(|view| view.has_all_headers(layout));
        let Some(view) = view else { return Some(ScrubbedPart::Headers) };
        let is_whole = |record: &Record| {
            let header = &record.header;
            if record.part_len(layout.page_bytes) < header.value_len {
                return true;
            }
            let value = page.data_at(record.value_start, header.value_len);
            match header.kind {
                Kind::Lost | Kind::Tombstone => true,
                Kind::Table => value.is_some_and(|value| value.crc32c() == header.value_crc),
                Kind::Value => {
                    value.is_some_and(|value| self.log.value_crc(&value) == header.value_crc)
                }
            }
        };
        let has_records = view.prologue.kind == PageKind::Records;
        let records = if has_records { self.records_of_page(at, page) } else { None };
        let are_whole = records.unwrap_or_default().iter().all(is_whole);
        (!swept.is_whole || !are_whole).then_some(ScrubbedPart::Data)
    }
}

/// Returns how long `bytes` take at `rate` bytes per second.
fn time_of(bytes: u64, rate: NonZero<u64>) -> Nanos {
    let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.get());
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
