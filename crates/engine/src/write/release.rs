//! Releases dead values where they lie in host memory, before their extents are reset. The next
//! values reuse that memory while it is in the processor's cache.

use crate::format::page_view::PageView;
use crate::log::{Log, Part};
use crate::read::look_up::Found;

/// Shorter values are not worth reading their pages.
const VALUE_BYTES_MIN: u32 = 1 << 10;

impl Log {
    /// Releases the value of a record that was replaced for good. A value stays until its extent is
    /// reset if a reader may still need it, its page is being programmed, or it lies on several
    /// pages.
    pub(crate) fn release(&self, part: &mut Part<'_, '_>, found: &Found) {
        let value_len = found.header.value_len;
        let is_worth = value_len >= VALUE_BYTES_MIN
            && self.media.as_memory().is_some()
            && self.layout.fits_page(found.header.len, value_len);
        if !is_worth || self.pins.has(found.extent) {
            return;
        }
        let at = self.page_id(found.address);
        if part.shared.get().extents.get(at.extent).is_victim() {
            return;
        }
        let offset = self.layout.offset(found.address);
        if self.has_landed(found.address) {
            self.release_landed(found, offset);
            return;
        }
        let mut open = part.writer.frontiers.iter_mut();
        if let Some(open) = open.find(|open| (open.extent, open.page()) == (at.extent, at.page)) {
            open.builder.release(offset);
        }
    }

    fn release_landed(&self, found: &Found, offset: usize) -> Option<()> {
        let (memory, at) = (self.media.as_memory()?, self.page_id(found.address));
        let start = memory.with_page(at, |page| {
            let view = PageView::new(self.layout, page)?;
            Some(view.value_start(&view.header(offset)?))
        })?;
        memory.release(at, start, found.header.value_len);
        Some(())
    }
}
