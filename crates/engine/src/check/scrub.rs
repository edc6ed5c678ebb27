//! Reads all pages of the medium in the background, extent after extent, and reports damage before
//! a host reads it. Each reactor of the store's pool reads and checks an extent at a time.
//!
//! Extents that are still being filled are left for the next pass. Each read pins its extent like
//! any reader: a reset waits for that one read, and those at the same time. An extent that is reset
//! between two reads is skipped.

use crate::check::scrubber::{Progress, ScrubFinding, Scrubbed, ScrubbedPart};
use crate::clean::turn::Turn;
use crate::extent::Extent;
use crate::format::layout::PageKind;
use crate::format::page_view::PageView;
use crate::format::record::Kind;
use crate::log::Pin;
use crate::recover::listing::Record;
use crate::store::Store;
use base::Nanos;
use clock::{Class, Stage};
use media::{ExtentId, Label, Page, PageId, SweptPage};
use std::num::NonZero;
use std::sync::Arc;

/// The class of these reads: all other classes have priority.
const CLASS: Class = Class::Wear;

/// A pass begins at most this often: small drives are soon read.
const PASS: Nanos = Nanos::from_secs(60 * 60);

/// Damaged pages that are remembered, so that each is told of once.
const KNOWN_MAX: usize = 10_000;

/// Pages that are to be read in one go.
#[derive(Clone, Copy)]
struct Chunk {
    extent: ExtentId,
    label: Label,
    from: u32,
    end: u32,
}

/// What was found in a chunk.
struct Checked {
    /// The next page of the extent to read; `None` at its end.
    next: Option<u32>,
    bytes: u64,
    damaged: Vec<ScrubFinding>,
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
            let (chunks, pins) = self.next_chunks(self.pool.tasks());
            let until = if chunks.is_empty() {
                began = start.max(began + PASS);
                began
            } else {
                start + time_of(self.scrub_chunks(chunks, &tell).await, rate)
            };
            drop(pins);
            clock::sleep(Nanos(until.0.saturating_sub(clock::now().0)), Stage::Gc).await;
        }
    }

    /// Ends scrubbing before its next reads.
    pub fn end_scrubbing(&self) {
        self.scrubber.progress().is_ending = true;
    }

    /// Returns the pages to read next, of at most `count` extents, with pins of these; none at the
    /// end of a pass.
    fn next_chunks(&self, count: usize) -> (Vec<Chunk>, Vec<Pin<'_>>) {
        let mut state = self.log.whole();
        let mut progress = self.scrubber.progress();
        let Progress { begun, next, .. } = &mut *progress;
        let is_whole =
            |extent: &Extent| extent.is_sealed() && extent.has_landed() && extent.pages() > 0;
        let whole = state.extents.iter().filter(|(_, extent)| is_whole(extent));
        let whole: Vec<_> = whole.map(|(id, it)| (id, it.label, it.pages())).collect();
        begun.retain(|id, _| whole.iter().any(|(whole, ..)| whole == id));
        let wanted = whole.iter().filter(|(id, ..)| begun.contains_key(id) || id.0 >= *next);
        let from = |id, label| begun.get(&id).filter(|(then, _)| *then == label);
        let chunks = wanted.take(count).map(|&(extent, label, end)| {
            let from = from(extent, label).map_or(0, |(_, from)| *from);
            Chunk { extent, label, from, end }
        });
        let chunks: Vec<_> = chunks.collect();
        for Chunk { extent, label, from, .. } in &chunks {
            begun.insert(*extent, (*label, *from));
            *next = (*next).max(extent.0 + 1);
        }
        if chunks.is_empty() {
            *next = 0;
            progress.scrubbed.passes += 1;
        }
        progress.note_place();
        let pins = chunks.iter().map(|chunk| self.log.pin(&mut state, chunk.extent)).collect();
        (chunks, pins)
    }

    /// Reads some pages of each extent, and returns how many bytes that were. The caller has pinned
    /// the extents.
    async fn scrub_chunks(
        self: &Arc<Self>,
        chunks: Vec<Chunk>,
        tell: &impl Fn(ScrubFinding),
    ) -> u64 {
        let pieces = chunks.iter().map(|&chunk| {
            let store = self.clone();
            move || async move { store.check_chunk(chunk).await }
        });
        let checked = self.pool.run_each(Stage::Gc, pieces.collect()).await;
        let mut bytes = 0;
        for (Chunk { extent, label, .. }, checked) in chunks.iter().zip(checked) {
            // If a reactor has ended, its pages are read again.
            let Some(checked) = checked.flatten() else { continue };
            for finding in checked.damaged {
                if self.is_new(finding.at, *label) {
                    tell(finding);
                }
            }
            bytes += checked.bytes;
            let progress = &mut *self.scrubber.progress();
            progress.go_behind(*extent, *label, checked.next);
            progress.scrubbed.bytes += checked.bytes;
        }
        bytes
    }

    /// Reads some pages, and checks them. `None`, and reads nothing, after the end of scrubbing.
    async fn check_chunk(&self, chunk: Chunk) -> Option<Checked> {
        let Chunk { extent, from, end, .. } = chunk;
        if self.scrubber.progress().is_ending {
            return None;
        }
        let media = &self.log.media;
        let mut damaged = Vec::new();
        // The medium may have reset the extent. Then no page has to be rewritten either.
        let Ok(swept) = media.sweep(extent, from, CLASS).await else {
            return Some(Checked { next: None, bytes: 0, damaged });
        };
        let mut turn = Turn::default();
        for page in &swept.pages {
            turn.took_bytes(1, page.page.as_ref().map_or(0, Page::data_bytes)).await;
            let at = PageId { extent, page: page.number };
            if self.damaged_part(at, page).is_none() {
                continue;
            }
            // A disk that returned wrong bytes once may return the right ones in a second read.
            let again = media.sweep(extent, page.number, CLASS).await;
            let again = again.ok().and_then(|swept| swept.pages.into_iter().next());
            let part = again.and_then(|page| self.damaged_part(at, &page));
            damaged.extend(part.map(|part| ScrubFinding { at, part }));
        }
        let read = u64::from(swept.next.unwrap_or(end).saturating_sub(from));
        let bytes = read * u64::from(self.log.shape.number_bytes());
        self.counters.count_scrubbed(bytes);
        Some(Checked { next: swept.next, bytes, damaged })
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

#[cfg(test)]
mod tests {
    use crate::store::Store;
    use crate::test_store::{SPACE, config, key, shape, value};
    use crate::work_pool::WorkPool;
    use crate::{Config, Write};
    use base::{Nanos, Rng};
    use clock::Stage;
    use media::{Memory, Shape};
    use reactor::{PeerGroup, Places};
    use std::num::NonZero;
    use std::sync::Arc;

    /// Reads all of a store by four reactors, of which up to so many end within a piece. Returns
    /// how many have, the bytes read, as the scrub counts them and as the reactors do, and the
    /// number of damaged pages: in memory these are all, since pages have no checksums there.
    async fn read_all(places: Places, enders: usize, seed: u64) -> (usize, [u64; 3]) {
        let (pool, mut rng) = (Arc::new(WorkPool::default()), Rng::new(seed));
        let shape = Shape { extents: 40, ..shape() };
        let medium = Arc::new(Memory::new(shape));
        let capacity_bytes = 30 * shape.extent_bytes();
        let config = Config { capacity_bytes, reactors: 4, ..config() };
        let store = Store::format_among(pool.clone(), medium, config);
        store.create_key_space(SPACE).await.expect("there is room");
        for number in 0..500 {
            let (key, value, announced) = (key(number), value(500, number), store.announce());
            let put = store.put(SPACE, &key, &value, Write::default(), announced);
            put.await.expect("there is room");
        }
        for place in 1..4 {
            let (pool, after) = (pool.clone(), rng.below(2));
            places.spawn(place, async move {
                if place <= enders {
                    pool.join_and_end(usize::try_from(after).expect("it is small"));
                } else {
                    drop(pool.join());
                }
            });
        }
        clock::sleep(Nanos(1), Stage::Queue).await;
        let rate = NonZero::new(1 << 20).expect("it is some");
        clock::spawn(store.clone().scrub(rate, |_| ()));
        while store.scrubbed().passes == 0 {
            clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        }
        let by_reactor = store.work_by_reactor().into_iter();
        let by_all = by_reactor.map(|work| work.scrubbed_bytes).sum();
        (4 - pool.tasks(), [store.scrubbed().bytes, by_all, store.scrubbed().damaged])
    }

    #[test]
    fn scrub_counts_what_others_read_when_a_reactor_ends_and_reads_its_pages_again() {
        let mut all_ended = 0;
        for seed in 0..20 {
            let [(_, expected), (ended, read)] = [0, 2].map(|enders| {
                let mut group = PeerGroup::new(4, seed, Some(seed));
                let places = group.places();
                group.run(read_all(places, enders, seed))
            });
            assert_eq!(read, expected, "seed {seed}");
            assert_eq!(read[0], read[1], "seed {seed}");
            all_ended += ended;
        }
        assert!(all_ended > 10, "{all_ended} have ended");
    }
}
