//! The two places in which the ledger lies on the blocks.

use crate::drive::{Drive, State};
use crate::extents::Extent;
use crate::layout::{NOTE_BYTES, NOTE_ENTRIES};
use crate::ledger::{Damaged, ENTRY_BYTES, Entry, Fill, Ledger};
use crate::origin::Opening;
use crate::walk::CLASS;
use crate::workers::each;
use base::Buf;
use clock::{Class, Rank, Stage};
use media::{Error, ExtentId, Segments};
use std::sync::Arc;

/// The entries of a note as one copy has them, `None` where that cannot be read.
type Copied = Option<Vec<Result<Option<Entry>, Damaged>>>;

impl Drive {
    /// The ledger, of each entry the later one of the two copies.
    pub(crate) async fn read_ledger(self: &Arc<Self>) -> Ledger {
        let drive = self.clone();
        let read = move |note: ExtentId| {
            let drive = drive.clone();
            async move { [drive.copied(0, note.0).await, drive.copied(1, note.0).await] }
        };
        let notes = each(self.layout.ledger_notes(), read).await;
        let mut ledger = Ledger::default();
        for (first, copies) in (0..).step_by(NOTE_ENTRIES as usize).zip(notes) {
            for entries in copies.into_iter().flatten().flatten() {
                let whole = (first..)
                    .zip(entries)
                    .filter_map(|(extent, entry)| Some((ExtentId(extent), entry.ok().flatten()?)));
                for (extent, entry) in whole {
                    ledger.found(extent, entry);
                }
            }
        }
        ledger
    }

    /// A note of a copy, as far as there are extents; `None` where it cannot be read.
    pub(crate) async fn copied(&self, copy: u64, note: u32) -> Result<Copied, Error> {
        let start = self.layout.ledger_note(copy, note);
        let found = match self.read_bytes(start, NOTE_BYTES, CLASS).await {
            Ok(found) => Buf::join(&found),
            Err(Error::UnrecoveredBlock(_)) => None,
            Err(error) => return Err(error),
        };
        let Some(bytes) = found.as_ref().and_then(Buf::bytes) else { return Ok(None) };
        let extents = note * NOTE_ENTRIES..self.layout.extents;
        let entries = extents.zip(bytes.chunks(ENTRY_BYTES as usize));
        let entries = entries
            .map(|(extent, bytes)| Entry::decode(self.secret, ExtentId(extent), bytes))
            .collect();
        Ok(Some(entries))
    }

    /// Enters that so many units of an extent in use have landed, for good; all of them once
    /// nothing is appended to it any more.
    pub(crate) fn enter_landed(
        self: &Arc<Self>,
        id: ExtentId,
        extent: &Extent,
        opening: Opening,
        units: u32,
    ) {
        let used = extent.used.as_ref().expect("an extent in use");
        if extent.opening == opening {
            let is_over = used.tail.is_none();
            let fill = Fill::Used { label: used.label, units, is_over };
            self.enter(&mut self.state(), id, Entry { opening, fill });
        }
    }

    /// Enters what is on the blocks of an extent, for good.
    pub(crate) fn enter(self: &Arc<Self>, state: &mut State, extent: ExtentId, entry: Entry) {
        if state.ledger.enter(extent, entry) {
            let drive = self.clone();
            clock::spawn(async move { drive.write_ledger().await });
        }
    }

    /// Writes what was entered, both copies of each note.
    async fn write_ledger(self: Arc<Self>) {
        clock::name_task("ledger");
        loop {
            let Some((first, entries)) = self.state().ledger.take(NOTE_ENTRIES) else { return };
            let mut bytes = Vec::with_capacity(NOTE_BYTES as usize);
            for (extent, entry) in (first..).zip(entries) {
                let blank = [0; ENTRY_BYTES as usize];
                let entry = entry.map(|entry| entry.encode(self.secret, ExtentId(extent)));
                bytes.extend(entry.unwrap_or(blank));
            }
            let note = Segments::from_iter([Buf::copy_from(&bytes)]);
            for copy in 0..2 {
                let start = self.layout.ledger_note(copy, first / NOTE_ENTRIES);
                // What is there is true as well, and tells less.
                let _ = self.write_bytes(start, note.clone(), Class::HostWrite).await;
            }
        }
    }

    /// Waits until all that was entered is written.
    pub(crate) async fn ledger_written(&self) {
        while !self.state().ledger.is_idle() {
            clock::park(Rank::Array, Stage::Array).await;
        }
    }
}
