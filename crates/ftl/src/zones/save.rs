//! Protected memory, when power is lost.

use crate::saved::Saved;
use crate::zones::spare::{Kind, Spare};
use crate::zones::{State, ZoneState, Zones, label};
use clock::{Class, Rank, Stage, join_all};
use media::{Page, PageId, Segments};
use std::sync::Arc;

/// The zone number in labels of extents with saved pages.
pub(crate) const NO_ZONE: u32 = u32::MAX;

impl Zones {
    /// Writes what is in protected memory to the flash: called when power is lost, with the array
    /// on its capacitors, or before the device is switched off. Nothing may be written to the zones
    /// afterwards. Returns when all is written, or power is used up.
    pub async fn save_open_pages(self: &Arc<Self>) -> Saved {
        while self.state().appends > 0 {
            self.state().savers.push(clock::current());
            clock::park(Rank::Free, Stage::Batch).await;
        }
        let (pages, states, fill) = {
            let mut state = self.state();
            let fill = state.number_fill();
            (Self::unlanded(&state), Self::failures(&state), fill)
        };
        let count = pages.len() as u64;
        let mut all: Vec<Page> = pages;
        all.extend(states);
        let mut saved = 0;
        for chunk in all.chunks(self.media.shape().pages_per_extent as usize) {
            saved += self.save_pages(chunk, fill).await;
        }
        let saved_pages = saved.min(count);
        Saved { saved_pages, lost_pages: count - saved_pages }
    }

    /// Returns all pages that have not landed, zone by zone in their order.
    fn unlanded(state: &State) -> Vec<Page> {
        let mut all = Vec::new();
        // Content that an unfinished reset is dropping is still present.
        for content in state.contents.iter().flatten().chain(&state.leaving) {
            let pages = content.pages();
            all.extend(pages.unlanded.values().map(|unlanded| unlanded.page.clone()));
            if let Some((number, data)) = pages.open() {
                let landed = pages.unlanded.keys().next().copied().unwrap_or(number);
                let (zone, page, fill) = (content.zone, number, content.fill);
                let kind = Kind::Saved;
                all.push(Spare { kind, zone, page, fill, landed, copied: 0, blocks: 0 }.page(data));
            }
        }
        all
    }

    /// Returns a page for each zone that has failed.
    fn failures(state: &State) -> Vec<Page> {
        let mut all = Vec::new();
        for (of, kind) in
            [(ZoneState::ReadOnly, Kind::ReadOnly), (ZoneState::Offline, Kind::Offline)]
        {
            for zone in state.states.which(|state| state == of) {
                let spare = Spare { kind, zone, page: 0, fill: 0, landed: 0, copied: 0, blocks: 0 };
                all.push(spare.page(Segments::new()));
            }
        }
        all
    }

    /// Writes `pages` to an extent of their own. Returns how many of them, from the first, landed.
    async fn save_pages(self: &Arc<Self>, pages: &[Page], fill: u64) -> u64 {
        let Ok(extent) = self.media.open(label(NO_ZONE, fill)) else { return 0 };
        let appends = (0..).zip(pages.iter().cloned()).map(|(number, page)| {
            let zones = self.clone();
            let at = PageId { extent, page: number };
            async move { zones.media.append(at, page, Class::HostWrite).await.is_ok() }
        });
        let landed = join_all(appends.collect()).await;
        landed.into_iter().filter(|landed| *landed).count() as u64
    }

    /// Waits until a later start can no longer find the pages that [`Self::open`] restored.
    pub(crate) async fn saved_is_gone(&self) {
        while self.state().has_saved {
            self.state().leavers.push(clock::current());
            clock::park(Rank::Free, Stage::Gc).await;
        }
    }

    pub(crate) fn note_saved_is_gone(&self) {
        let mut state = self.state();
        state.has_saved = false;
        state.leavers.drain(..).for_each(clock::wake);
    }
}
