//! Letting go of values that are dead, where their memory serves others before their extents are
//! reset: what is stored next is in memory that the processor has at hand.

use crate::format::page_view::PageView;
use crate::log::{Log, State};
use crate::read::look_up::Found;

/// Shorter ones are not worth the look at their pages.
const VALUE_BYTES_MIN: u32 = 1 << 10;

impl Log {
    /// Lets go of the value of a record that its key does not have any more and will not get back.
    /// It stays until its extent is reset where somebody may still read it, is on its way, or lies
    /// on several pages.
    pub(crate) fn release(&self, state: &mut State, found: &Found) {
        let (at, value_len) = (self.page_id(found.address), found.header.value_len);
        let is_whole = self.layout.fits_page(found.header.len(), value_len);
        let is_worth = self.media.shares_space() && value_len >= VALUE_BYTES_MIN && is_whole;
        let extent = state.extents.get(at.extent);
        if !is_worth || extent.pins > 0 || extent.victim {
            return;
        }
        let offset = self.layout.offset(found.address);
        let mut open = state.frontiers.iter_mut().flatten();
        if let Some(open) = open.find(|open| (open.extent, open.page) == (at.extent, at.page)) {
            open.builder.release(offset);
        } else if !state.pending.contains_key(&found.address.page()) {
            self.release_landed(found, offset);
        }
    }

    fn release_landed(&self, found: &Found, offset: usize) -> Option<()> {
        let page = self.media.at_hand(self.layout.span(found.address))?;
        let view = PageView::new(self.layout, &page)?;
        let start = view.value_start(&view.header(offset)?);
        drop(page);
        self.media.release(self.page_id(found.address), start, found.header.value_len);
        Some(())
    }
}
