//! Opens zones from their flash.
//!
//! 1. The label of each extent names its zone and the zone's filling; of several fillings the
//!    newest holds. The last page of an extent that can be read tells how much of it there is.
//! 2. Pages that were saved when power was lost replace those that are missing, and the first
//!    that is missing altogether ends the zone.
//! 3. Extents that no zone needs are reset: older fillings, and unfinished copies of an earlier
//!    opening. Kept until the copies below are done, they could take up all spare extents.
//! 4. Where an extent can take no more pages as it is, what is left of its zone is copied to
//!    another one. Then the old extent is reset, so that the next copy can use its space.
//! 5. What was saved stays on the flash until the zones are in protected memory again.

use crate::zones::content::{Content, Unlanded};
use crate::zones::recovery::ZonesRecovery;
use crate::zones::save::NO_ZONE;
use crate::zones::spare::{Kind, Spare, verified};
use crate::zones::state::ZoneState;
use crate::zones::{Zones, ZonesConfig, label};
use base::limits::BLOCK_BYTES;
use clock::{Class, join_all};
use media::{Error, ExtentId, ExtentInfo, Media, Page, PageId, Segments, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The class of the work of a start: all hosts of the drive wait for it.
const CLASS: Class = Class::HostRead;

/// The content of the extents by their labels, and the saved pages.
#[derive(Default)]
struct Found {
    /// Saved pages that are damaged.
    lost_pages: u64,
    /// By zone and filling.
    fillings: BTreeMap<u32, BTreeMap<u64, Filling>>,
    /// Zones that were read only or offline.
    failed: BTreeMap<u32, ZoneState>,
    saved_to: Vec<ExtentId>,
    /// One more than the last filling.
    next_fill: u64,
    pages_read: u64,
}

/// The places of a filling's pages.
#[derive(Default)]
struct Filling {
    extent: Option<ExtentInfo>,
    saved: BTreeMap<u32, Page>,
}

/// The pages of a filling.
struct Pages {
    number: u64,
    filling: Filling,
    /// The spare bytes of the last readable page of the extent.
    top: Option<Spare>,
    /// Unreadable pages of the extent, as far as known.
    missing: BTreeSet<u32>,
    /// All pages below this number had landed.
    landed: u32,
    /// Pages read to choose the filling.
    reads: u64,
    /// Extents of the zone's other fillings.
    stale: Vec<ExtentId>,
}

/// The place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Flash,
    Saved,
    /// It had landed once, and can no longer be read.
    Lost,
}

/// A zone as it was found.
struct Zone {
    state: ZoneState,
    written: u64,
    content: Option<Arc<Content>>,
    /// Full pages that are not in the extent, and the open page.
    tail: Vec<(u32, Kind, Segments)>,
    /// Extents to reset.
    stale: Vec<ExtentId>,
    recovery: ZonesRecovery,
}

/// What becomes of a zone.
enum Settled {
    Found(Zone),
    /// Its extent takes no more pages.
    Moves(Box<Relocation>),
}

/// A zone to copy to another extent.
struct Relocation {
    zone: u32,
    pages: Pages,
    sources: Vec<Source>,
    found: Zone,
}

impl Zones {
    /// Opens the zones of a medium, with the number of zones that it was formatted with. Takes the
    /// time of the reads, copies and resets it needs.
    ///
    /// # Errors
    /// When the medium cannot reset an extent whose content must not reappear.
    pub async fn open(
        media: Arc<dyn Media>,
        config: ZonesConfig,
    ) -> Result<(Arc<Self>, ZonesRecovery), Error> {
        let zones = Arc::new(Self::on(media, config));
        let mut found = zones.look().await;
        zones.state().next_fill = found.next_fill;
        let chosen = std::mem::take(&mut found.fillings).into_iter().map(|(zone, fillings)| {
            let zones = zones.clone();
            async move { (zone, zones.choose(zone, fillings).await) }
        });
        let mut chosen = join_all(chosen.collect()).await;
        let stale = chosen.iter_mut().flat_map(|(_, pages)| std::mem::take(&mut pages.stale));
        zones.reset_all(stale.collect()).await?;
        let restored = zones.settle_all(chosen).await?;
        let mut recovery = ZonesRecovery {
            pages_read: found.pages_read,
            lost_pages: found.lost_pages,
            ..ZonesRecovery::default()
        };
        for (number, zone) in restored {
            recovery = recovery + zone.recovery;
            zones.take_up(number, zone);
        }
        for (zone, state) in found.failed {
            let written = zones.state().states.written(zone);
            zones.state().states.restore(zone, state, written);
        }
        zones.forget_saved(found.saved_to);
        Ok((zones, recovery))
    }

    /// Reads the saved pages and sorts the extents by zone.
    async fn look(self: &Arc<Self>) -> Found {
        let mut found = Found { next_fill: 1, ..Found::default() };
        let mut reads = Vec::new();
        for extent in self.media.extents() {
            let (number, zone) = (extent.label.epoch >> 32, extent.label.epoch & 0xFFFF_FFFF);
            let zone = u32::try_from(zone).expect("32 bits of it");
            found.next_fill = found.next_fill.max(number + 1);
            if zone == NO_ZONE {
                found.saved_to.push(extent.id);
                let pages = (0..extent.pages).filter(|page| !extent.holes.contains(page));
                reads.extend(pages.map(|page| PageId { extent: extent.id, page }));
            } else if zone < self.shape.zones {
                let fillings = found.fillings.entry(zone).or_default();
                fillings.entry(number).or_default().extent = Some(extent);
            }
        }
        found.pages_read = reads.len() as u64;
        let reads = reads.into_iter().map(|at| {
            let zones = self.clone();
            async move { zones.media.read(Span::of(at), &Page::data_bytes, CLASS).await.ok() }
        });
        for page in join_all(reads.collect()).await {
            let is_whole = page.is_some_and(|page| self.sort_saved(&mut found, page));
            found.lost_pages += u64::from(!is_whole);
        }
        found
    }

    /// Sorts a saved page to its zone. Returns false if it is damaged.
    fn sort_saved(&self, found: &mut Found, page: Page) -> bool {
        let Some(spare) = Spare::of(&page).filter(|spare| spare.zone < self.shape.zones) else {
            return false;
        };
        match spare.kind {
            Kind::ReadOnly => drop(found.failed.insert(spare.zone, ZoneState::ReadOnly)),
            Kind::Offline => drop(found.failed.insert(spare.zone, ZoneState::Offline)),
            Kind::Data | Kind::Finished | Kind::Lost | Kind::Saved => {
                if verified(&page, 0, spare.blocks * BLOCK_BYTES).is_none() {
                    return false;
                }
                found.next_fill = found.next_fill.max(spare.fill + 1);
                let fillings = found.fillings.entry(spare.zone).or_default();
                let saved = &mut fillings.entry(spare.fill).or_default().saved;
                // A page may have been saved more than once, each time with more data.
                let rank = |page: &Page| {
                    let is_open = Spare::of(page).is_some_and(|spare| spare.kind == Kind::Saved);
                    (page.data_bytes(), !is_open)
                };
                if saved.get(&spare.page).is_none_or(|before| rank(before) <= rank(&page)) {
                    saved.insert(spare.page, page);
                }
            }
        }
        true
    }

    /// Chooses the filling of `zone` that holds.
    async fn choose(self: &Arc<Self>, zone: u32, fillings: BTreeMap<u64, Filling>) -> Pages {
        let mut stale = Vec::new();
        let mut reads = 0;
        let mut chosen: Option<Pages> = None;
        for (number, filling) in fillings.into_iter().rev() {
            let extent = filling.extent.as_ref().map(|extent| extent.id);
            if chosen.as_ref().is_some_and(|chosen| !chosen.is_cut_off_copy()) {
                stale.extend(extent);
                continue;
            }
            let pages = self.pages(zone, number, filling).await;
            reads += pages.reads;
            if let Some(copy) = chosen.replace(pages) {
                stale.extend(copy.filling.extent.map(|extent| extent.id));
            }
        }
        let chosen = chosen.expect("a zone that was found has a filling");
        Pages { reads, stale, ..chosen }
    }

    async fn reset_all(self: &Arc<Self>, extents: Vec<ExtentId>) -> Result<(), Error> {
        let resets = extents.into_iter().map(|extent| {
            let zones = self.clone();
            async move { zones.media.reset(extent, CLASS).await }
        });
        join_all(resets.collect()).await.into_iter().collect()
    }

    /// Looks for the last readable page of a filling.
    async fn pages(self: &Arc<Self>, zone: u32, number: u64, filling: Filling) -> Pages {
        let extent = filling.extent.as_ref();
        let mut missing: BTreeSet<u32> =
            extent.iter().flat_map(|extent| extent.holes.iter().copied()).collect();
        let (mut top, mut reads) = (None, 0);
        if let Some(extent) = extent {
            for page in (0..extent.pages).rev() {
                if missing.contains(&page) {
                    continue;
                }
                let at = PageId { extent: extent.id, page };
                reads += 1;
                let read = self.media.read(Span::of(at), &|_| 0, CLASS).await.ok();
                let spare = read.as_ref().and_then(Spare::of);
                top = spare
                    .filter(|spare| (spare.zone, spare.fill, spare.page) == (zone, number, page));
                if top.is_some() {
                    break;
                }
                missing.insert(page);
            }
        }
        let spares = filling.saved.values().filter_map(Spare::of);
        let landed = spares.chain(top.clone()).map(|spare| spare.landed).max();
        // Without an extent the filling was reset after the save.
        let landed = landed.filter(|_| extent.is_some()).unwrap_or(0);
        Pages { number, filling, top, missing, landed, reads, stale: Vec::new() }
    }

    /// Determines the content of the zones, and copies those whose extent takes no more pages.
    async fn settle_all(
        self: &Arc<Self>,
        chosen: Vec<(u32, Pages)>,
    ) -> Result<Vec<(u32, Zone)>, Error> {
        let mut settled = Vec::new();
        let mut copies = VecDeque::new();
        for (zone, pages) in chosen {
            match self.settle(zone, pages) {
                Settled::Found(found) => settled.push((zone, found)),
                Settled::Moves(copy) => copies.push_back(*copy),
            }
        }
        let stale = settled.iter_mut().flat_map(|(_, zone)| std::mem::take(&mut zone.stale));
        self.reset_all(stale.collect()).await?;
        while !copies.is_empty() {
            let mut copied = self.copy_some(&mut copies).await;
            if copied.is_empty() {
                let left = copies.drain(..);
                settled.extend(left.map(|copy| (copy.zone, read_only(copy))));
            }
            let stale = copied.iter_mut().flat_map(|(_, zone)| std::mem::take(&mut zone.stale));
            self.reset_all(stale.collect()).await?;
            settled.append(&mut copied);
        }
        Ok(settled)
    }

    /// Determines where a zone ends, and whether its extent takes more pages.
    fn settle(&self, zone: u32, pages: Pages) -> Settled {
        let sources = pages.sources();
        let blocks_of_page = u64::from(self.page_bytes / BLOCK_BYTES);
        let last = sources.len().checked_sub(1).and_then(|last| pages.spare(&sources, last));
        let is_finished = last.as_ref().is_some_and(|spare| spare.kind == Kind::Finished);
        let written = match &last {
            Some(spare) => (sources.len() as u64 - 1) * blocks_of_page + u64::from(spare.blocks),
            None => sources.len() as u64 * blocks_of_page,
        };
        let state = match written {
            _ if is_finished || written == self.shape.zone_capacity => ZoneState::Full,
            0 => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
        let on_flash = pages.filling.extent.as_ref().map_or(0, |extent| extent.pages);
        let recovery = ZonesRecovery {
            zones: u32::from(!sources.is_empty()),
            pages_read: pages.reads,
            restored_pages: count(&sources, Source::Saved),
            lost_pages: u64::from(on_flash.saturating_sub(small(sources.len()))),
            ..ZonesRecovery::default()
        };
        let found =
            Zone { state, written, content: None, tail: Vec::new(), stale: Vec::new(), recovery };
        if sources.is_empty() {
            let stale = pages.filling.extent.iter().map(|extent| extent.id).collect();
            return Settled::Found(Zone { stale, ..found });
        }
        let has_gaps = pages.missing.iter().any(|page| *page < on_flash);
        let is_as_found = !has_gaps && on_flash as usize <= sources.len();
        let needs_none = state == ZoneState::Full && !sources.contains(&Source::Saved);
        if is_as_found || needs_none {
            Settled::Found(in_place(zone, pages, &sources, found))
        } else {
            Settled::Moves(Box::new(Relocation { zone, pages, sources, found }))
        }
    }

    /// Copies as many of the zones as there are free extents.
    async fn copy_some(self: &Arc<Self>, copies: &mut VecDeque<Relocation>) -> Vec<(u32, Zone)> {
        let mut begun = Vec::new();
        while let Some(copy) = copies.pop_front() {
            let (zones, zone, number) = (self.clone(), copy.zone, self.state().number_fill());
            let Ok(to) = self.media.open(label(zone, number)) else {
                copies.push_front(copy);
                break;
            };
            begun.push(async move { (zone, zones.copy_zone(copy, number, to).await) });
        }
        join_all(begun).await
    }

    /// Copies a zone to the extent `to`. If that fails, the zone becomes read only.
    async fn copy_zone(self: &Arc<Self>, mut moved: Relocation, number: u64, to: ExtentId) -> Zone {
        let Relocation { zone, pages, sources, .. } = &moved;
        let zone = *zone;
        let whole = pages.whole(sources);
        let from = pages.filling.extent.as_ref().map(|extent| extent.id);
        let mut lost = BTreeSet::new();
        for (page, source) in (0..whole).zip(sources) {
            let copy = self.source(from, &pages.filling.saved, page, *source).await;
            let (kind, data) = copy.unwrap_or((Kind::Lost, Segments::new()));
            if kind == Kind::Lost {
                lost.insert(page);
            }
            let spare =
                Spare { kind, zone, page, fill: number, landed: page, copied: whole, blocks: 0 };
            let at = PageId { extent: to, page };
            if self.media.append(at, spare.page(data), CLASS).await.is_err() {
                moved.found.stale.push(to);
                return read_only(moved);
            }
        }
        let Relocation { pages, sources, mut found, .. } = moved;
        found.recovery.copied_pages = whole.into();
        found.stale.extend(from);
        found.content = Some(Arc::new(Content::found(zone, number, Some(to), lost, whole)));
        found.tail = tail(pages.filling.saved, whole, small(sources.len()));
        found
    }

    /// Returns the kind and data of a page; `None` when it is lost.
    async fn source(
        &self,
        extent: Option<ExtentId>,
        saved: &BTreeMap<u32, Page>,
        page: u32,
        source: Source,
    ) -> Option<(Kind, Segments)> {
        let found = match source {
            Source::Lost => return None,
            Source::Saved => saved.get(&page)?.clone(),
            Source::Flash => {
                let at = PageId { extent: extent?, page };
                self.media.read(Span::of(at), &Page::data_bytes, CLASS).await.ok()?
            }
        };
        let spare = Spare::of(&found)?;
        let data = verified(&found, 0, spare.blocks * BLOCK_BYTES)?;
        Some((spare.kind, data))
    }

    /// Restores `zone` as it was found.
    fn take_up(self: &Arc<Self>, zone: u32, found: Zone) {
        let mut state = self.state();
        state.states.restore(zone, found.state, found.written);
        let Some(content) = found.content else { return };
        state.contents[zone as usize] = Some(content.clone());
        for (number, kind, data) in found.tail {
            let bytes: u32 = data.iter().map(base::Buf::len).sum();
            state.buffer.add(bytes.into());
            let mut closed = content.pages().join(data, self.page_bytes);
            if kind == Kind::Saved {
                assert!(closed.is_empty(), "an open page is not full");
                continue;
            }
            let (at, data) = closed.pop().unwrap_or_else(|| content.pages().close());
            assert_eq!(at, number, "pages go on where they were");
            self.send(&mut state, &content, (number, kind, data), Class::HostWrite);
        }
    }

    /// Starts the reset of the extents of saved pages, which are in memory again.
    fn forget_saved(self: &Arc<Self>, extents: Vec<ExtentId>) {
        if extents.is_empty() {
            return;
        }
        self.state().has_saved = true;
        let zones = self.clone();
        clock::spawn(async move {
            for extent in extents {
                // The next start finds an extent whose reset failed, and nothing in it is newer.
                zones.media.reset(extent, Class::Gc).await.unwrap_or_default();
            }
            zones.note_saved_is_gone();
        });
    }
}

impl Pages {
    /// True for an unfinished copy of another extent.
    fn is_cut_off_copy(&self) -> bool {
        let Some(top) = &self.top else { return self.filling.saved.is_empty() };
        top.page + 1 < top.copied
    }

    /// Returns where each page is, up to the first that is missing altogether.
    fn sources(&self) -> Vec<Source> {
        let top = self.top.as_ref().map_or(0, |top| top.page + 1);
        let mut sources = Vec::new();
        for page in 0.. {
            sources.push(if page < top && !self.missing.contains(&page) {
                Source::Flash
            } else if self.filling.saved.contains_key(&page) && !self.has_gone_on(page) {
                Source::Saved
            } else if page < self.landed {
                Source::Lost
            } else {
                break;
            });
            if sources[page as usize] == Source::Saved && self.is_open(page) {
                break;
            }
        }
        sources
    }

    /// True when `page` was saved before it was full.
    fn is_open(&self, page: u32) -> bool {
        let saved = self.filling.saved.get(&page).and_then(Spare::of);
        saved.is_some_and(|spare| spare.kind == Kind::Saved)
    }

    /// Counts the pages, from the first, that are full or end their zone: all but a page that was
    /// saved earlier and has not landed since.
    fn whole(&self, sources: &[Source]) -> u32 {
        let count = small(sources.len());
        let ends_open = sources.last() == Some(&Source::Saved) && self.is_open(count - 1);
        count - u32::from(ends_open)
    }

    /// True when `page` was saved before it was full, and then filled and landed.
    fn has_gone_on(&self, page: u32) -> bool {
        page < self.landed && self.is_open(page)
    }

    /// Returns the spare bytes of page `number`, if it is the last readable one or was saved.
    fn spare(&self, sources: &[Source], number: usize) -> Option<Spare> {
        match sources[number] {
            Source::Flash => self.top.clone().filter(|top| top.page as usize == number),
            Source::Saved => Spare::of(self.filling.saved.get(&small(number))?),
            Source::Lost => None,
        }
    }
}

/// Continues the zone in its extent.
fn in_place(zone: u32, pages: Pages, sources: &[Source], mut found: Zone) -> Zone {
    let extent = pages.filling.extent.map(|extent| extent.id);
    let in_extent = small(sources.iter().take_while(|of| **of != Source::Saved).count());
    let lost = lost_of(sources);
    found.content = Some(Arc::new(Content::found(zone, pages.number, extent, lost, in_extent)));
    found.tail = tail(pages.filling.saved, in_extent, small(sources.len()));
    found
}

/// Makes the zone read only, with its saved pages in memory.
fn read_only(Relocation { zone, pages, sources, found }: Relocation) -> Zone {
    let extent = pages.filling.extent.map(|extent| extent.id);
    let end = small(sources.len());
    let content = Content::found(zone, pages.number, extent, lost_of(&sources), end);
    for (number, page) in pages.filling.saved {
        if number < end && sources[number as usize] == Source::Saved {
            let unlanded = Unlanded { page, ticket: None, class: CLASS };
            content.pages().unlanded.insert(number, unlanded);
        }
    }
    Zone { state: ZoneState::ReadOnly, content: Some(Arc::new(content)), ..found }
}

fn lost_of(sources: &[Source]) -> BTreeSet<u32> {
    let pages = (0..).zip(sources);
    pages.filter(|(_, source)| **source == Source::Lost).map(|(page, _)| page).collect()
}

/// Returns the saved pages from `first` up to `end`.
fn tail(saved: BTreeMap<u32, Page>, first: u32, end: u32) -> Vec<(u32, Kind, Segments)> {
    let pages = saved.into_iter().filter(|(number, _)| (first..end).contains(number));
    let parts =
        pages.filter_map(|(number, page)| Some((number, Spare::of(&page)?.kind, page.segments())));
    parts.collect()
}

fn count(sources: &[Source], of: Source) -> u64 {
    sources.iter().filter(|source| **source == of).count() as u64
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("pages of an extent are counted in 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Buf;

    fn spare(kind: Kind, page: u32) -> Spare {
        Spare { kind, zone: 0, page, fill: 1, landed: page, copied: 0, blocks: 4 }
    }

    /// Returns a filling whose second page was saved before it was full, with `landed` pages landed
    /// since.
    fn saved_in_the_second(landed: u32) -> Pages {
        let page = spare(Kind::Saved, 1).page(Segments::from_iter([Buf::phantom(BLOCK_BYTES, 1)]));
        let filling = Filling { extent: None, saved: BTreeMap::from([(1, page)]) };
        Pages {
            number: 1,
            filling,
            top: Some(spare(Kind::Data, landed - 1)),
            missing: BTreeSet::new(),
            landed: 1,
            reads: 0,
            stale: Vec::new(),
        }
    }

    #[test]
    fn a_landed_page_replaces_its_earlier_saved_part() {
        let before = saved_in_the_second(1);
        assert_eq!(before.sources(), [Source::Flash, Source::Saved]);
        assert_eq!(before.whole(&before.sources()), 1);
        let since = saved_in_the_second(2);
        assert_eq!(since.sources(), [Source::Flash, Source::Flash]);
        assert_eq!(since.whole(&since.sources()), 2);
    }
}
