//! How an extent ends: sealed, and reset.

use crate::drive::{Drive, State};
use crate::durability::Durability;
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
        extent: ExtentId,
        summary: Option<u32>,
    ) -> Result<(), Error> {
        let end = self.state().extents.used(extent).1.end;
        self.expect_nothing(extent);
        self.landed(extent, end).await?;
        let flushed = {
            self.writable()?;
            let mut state = self.state();
            let (_, used) = state.extents.used(extent);
            used.tail.as_ref().expect("an extent ends once").flushed()
        };
        if flushed < end {
            self.flushed().await?;
        }
        self.write_footer(extent, end, summary).await?;
        let mut state = self.state();
        let (opening, used) = state.extents.used(extent);
        assert!(used.end == end, "nothing is appended to extent {} any more", extent.0);
        (used.tail, used.pages, used.summary) = (None, None, summary);
        self.ended(&mut state, extent, opening, end);
        Ok(())
    }

    /// Has the ledger say that an extent has ended, once its footer outlives a loss of power: so
    /// one that is missing then is damaged.
    fn ended(self: &Arc<Self>, state: &mut State, extent: ExtentId, opening: Opening, end: u32) {
        if self.durability == Durability::Capacitor {
            return self.enter_landed(state, extent, opening, end);
        }
        state.flushes.note_ended(extent, opening, end);
        if self.durability == Durability::Group {
            self.want_flush(&mut state.flushes);
        }
    }

    /// Says on the blocks where an extent ends, all of which outlives a loss of power.
    pub(crate) async fn write_footer(
        &self,
        extent: ExtentId,
        pages: u32,
        summary: Option<u32>,
    ) -> Result<(), Error> {
        let (opening, label) = {
            let mut state = self.state();
            let (opening, used) = state.extents.used(extent);
            (opening, used.label)
        };
        let footer = Footer { origin: self.origin(extent, opening), label, pages, summary };
        let note = Segments::from_iter([footer.encode()]);
        self.write_bytes(self.layout.footer(extent), note, CLASS).await
    }

    /// See [`media::Media::reset`].
    pub(crate) async fn reset(
        self: &Arc<Self>,
        extent: ExtentId,
        class: Class,
    ) -> Result<(), Error> {
        let (count, is_untouched) = {
            self.writable()?;
            let mut state = self.state();
            let (opening, used) = state.extents.used(extent);
            let is_idle = used.tail.as_ref().is_none_or(|tail| tail.is_idle());
            assert!(is_idle, "nothing is appended to extent {} while it is reset", extent.0);
            (opening.count, used.end == 0)
        };
        if !is_untouched {
            // What was copied elsewhere lasts longer than what it was copied from.
            self.flush().await?;
            let opening = Opening { mount: self.mount, count };
            self.write_marks(extent, opening, class).await?;
            self.flushed().await?;
        }
        let mut state = self.state();
        state.flushes.forget(extent);
        state.extents.release(extent);
        if !is_untouched {
            let opening = Opening { mount: self.mount, count };
            self.enter(&mut state, extent, Entry { opening, fill: Fill::Reset });
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
