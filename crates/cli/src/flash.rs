//! What the flash did for what hosts asked, and what it holds.

use crate::number::{counted, quotient, ratio};
use crate::table;
use base::human_bytes;
use node::{Device, Figures};
use serde::Serialize;

/// A device's figures before and after what was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Before.
    pub(crate) before: Figures,
    /// After.
    pub(crate) after: Figures,
}

/// The flash in a report.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Flash {
    /// Memory of the index for each pair that the device holds; nothing if it holds none.
    index_bytes_per_pair: Option<f64>,
    space: Space,
    gc: Gc,
}

/// What the device holds.
#[derive(Clone, Copy, Debug, Serialize)]
struct Space {
    /// What hosts see.
    capacity_bytes: u64,
    /// Of it, the footprints of the live pairs: their share of full pages and extents.
    used_bytes: u64,
    /// Keys and values.
    stored_bytes: u64,
    /// Pairs.
    pairs: u64,
}

/// Garbage collection while it was measured.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gc {
    /// Extents cleaned.
    victims: u64,
    records_moved: u64,
    page_reads: u64,
    block_erases: u64,
}

impl Window {
    /// Data bytes programmed for each byte of keys and values that hosts stored, if they stored
    /// any.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        let programmed = self.after.nand.bytes_programmed - self.before.nand.bytes_programmed;
        quotient(programmed, self.after.store.host_bytes - self.before.store.host_bytes)
    }

    /// Pages sensed for each of `retrieves`, if there were any.
    pub(crate) fn flash_reads_per_retrieve(&self, retrieves: u64) -> Option<f64> {
        let before = self.before.store.retrieve_page_reads;
        quotient(self.after.store.retrieve_page_reads - before, retrieves)
    }
}

impl Flash {
    /// That of `device` at the end of `window`, with `pairs` of `stored_bytes` on it.
    pub(crate) fn new(device: &Device, window: &Window, pairs: u64, stored_bytes: u64) -> Self {
        let usage = device.store().usage();
        let (before, after) = (&window.before, &window.after);
        Self {
            index_bytes_per_pair: quotient(usage.index_bytes, pairs),
            space: Space {
                capacity_bytes: device.store().capacity_bytes(),
                used_bytes: usage.values.bytes,
                stored_bytes,
                pairs,
            },
            gc: Gc {
                victims: after.store.victims - before.store.victims,
                records_moved: after.store.records_moved - before.store.records_moved,
                page_reads: after.store.gc_page_reads - before.store.gc_page_reads,
                block_erases: after.nand.erases - before.nand.erases,
            },
        }
    }

    /// As a section of a report.
    pub(crate) fn table(
        &self,
        write_amplification: Option<f64>,
        flash_reads_per_retrieve: Option<f64>,
    ) -> String {
        let Space { capacity_bytes, used_bytes, stored_bytes, pairs } = self.space;
        let space = format!("{} of {}", human_bytes(used_bytes), human_bytes(capacity_bytes));
        let amplification = format!(
            "{}, for {} of keys and values",
            ratio(quotient(used_bytes, stored_bytes)),
            human_bytes(stored_bytes),
        );
        let index = match self.index_bytes_per_pair {
            None => "no pairs".to_owned(),
            Some(bytes) => format!("{bytes:.1} bytes for each of {}", counted(pairs, "pair")),
        };
        let gc = format!(
            "{} cleaned, {} moved",
            counted(self.gc.victims, "extent"),
            counted(self.gc.records_moved, "record")
        );
        let facts = [
            ("write amplification", ratio(write_amplification)),
            ("reads per retrieve", ratio(flash_reads_per_retrieve)),
            ("space used", space),
            ("space amplification", amplification),
            ("index", index),
            ("garbage collection", gc),
        ];
        format!("flash\n{}", table::facts(&facts))
    }
}
