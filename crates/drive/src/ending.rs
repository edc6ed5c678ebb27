//! How an extent ends: sealed, and reset.

use crate::drive::Drive;
use crate::durability::Durability;
use crate::extents::Extent;
use crate::ledger::{Entry, Fill};
use crate::note::{Footer, Mark};
use crate::origin::Opening;
use clock::Class;
use media::{Error, ExtentId, Segments};
use std::sync::Arc;

/// The class of a footer: nobody waits for it.
const CLASS: Class = Class::HostWrite;

impl Drive {
    /// Notes where an extent ends; see [`media::OnDisk::seal`].
    pub(crate) async fn end(
        self: &Arc<Self>,
        id: ExtentId,
        summary: Option<u32>,
    ) -> Result<(), Error> {
        let end = self.extent(id).used().end;
        self.expect_nothing(id);
        self.landed(id, end).await?;
        let flushed = {
            self.writable()?;
            let mut extent = self.extent(id);
            let used = extent.used();
            used.tail.as_ref().expect("an extent ends once").flushed()
        };
        if flushed < end {
            self.flushed().await?;
        }
        self.write_footer(id, end, summary).await?;
        let mut extent = self.extent(id);
        let used = extent.used();
        assert!(used.end == end, "nothing is appended to extent {} after its end", id.0);
        (used.tail, used.pages, used.summary) = (None, None, summary);
        self.ended(id, &extent, end);
        Ok(())
    }

    /// Has the ledger say that an extent has ended, once its footer outlives a loss of power: so
    /// one that is missing then is damaged.
    fn ended(self: &Arc<Self>, id: ExtentId, extent: &Extent, end: u32) {
        if self.durability == Durability::Capacitor {
            return self.enter_landed(id, extent, extent.opening, end);
        }
        self.flush_next(|flushes| flushes.note_ended(id, extent.opening, end));
    }

    /// Says on the blocks where an extent ends, all of which outlives a loss of power.
    pub(crate) async fn write_footer(
        &self,
        id: ExtentId,
        pages: u32,
        summary: Option<u32>,
    ) -> Result<(), Error> {
        let (opening, label) = {
            let mut extent = self.extent(id);
            (extent.opening, extent.used().label)
        };
        let footer = Footer { origin: self.origin(id, opening), label, pages, summary };
        let note = Segments::from_iter([footer.encode()]);
        self.write_bytes(self.layout.footer(id), note, CLASS).await
    }

    /// See [`media::Media::reset`].
    pub(crate) async fn reset(self: &Arc<Self>, id: ExtentId, class: Class) -> Result<(), Error> {
        let (count, is_untouched) = {
            self.writable()?;
            let mut extent = self.extent(id);
            let used = extent.used();
            let is_idle = used.tail.as_ref().is_none_or(|tail| tail.is_idle());
            assert!(is_idle, "nothing is appended to extent {} while it is reset", id.0);
            let is_untouched = used.end == 0;
            (extent.opening.count, is_untouched)
        };
        if !is_untouched {
            // What was copied elsewhere lasts longer than what it was copied from.
            self.flush().await?;
            let opening = Opening { mount: self.mount, count };
            self.write_marks(id, opening, class).await?;
            self.flushed().await?;
        }
        let mut extent = self.extent(id);
        assert!(extent.used.take().is_some(), "only an extent in use is reset");
        let mut state = self.state();
        state.flushes.forget(id);
        state.free.add(count, id);
        if !is_untouched {
            let opening = Opening { mount: self.mount, count };
            self.enter(&mut state, id, Entry { opening, fill: Fill::Reset });
        }
        Ok(())
    }

    /// Says in both places that an extent is free.
    pub(crate) async fn write_marks(
        &self,
        extent: ExtentId,
        opening: Opening,
        class: Class,
    ) -> Result<(), Error> {
        let note = Segments::from_iter([Mark(self.origin(extent, opening)).encode()]);
        self.write_bytes(self.layout.extent_start(extent), note.clone(), class).await?;
        self.write_bytes(self.layout.second_mark(extent), note, class).await
    }
}
