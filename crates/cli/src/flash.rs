//! Work of the flash for the requests of hosts, and its contents.

use crate::number::{counted, quotient, ratio};
use crate::table;
use base::human_bytes;
use node::{Device, Figures};
use serde::Serialize;

/// A device's counters before and after the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Before.
    pub(crate) before: Figures,
    /// After.
    pub(crate) after: Figures,
}

/// The flash in a report, by the kind of the measured namespace.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum LoadedFlash {
    Pairs(Flash),
    Blocks(BlockFlash),
}

/// The flash in a report on pairs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Flash {
    /// Memory of the index for each pair on the device; nothing if the device has no pair.
    index_bytes_per_pair: Option<f64>,
    space: Space,
    gc: Gc,
}

/// Contents of the device.
#[derive(Clone, Copy, Debug, Serialize)]
struct Space {
    /// Capacity that hosts see.
    capacity_bytes: u64,
    /// Part of it that live pairs use, as their share of full pages and extents.
    used_bytes: u64,
    /// Bytes of keys and values.
    stored_bytes: u64,
    /// Number of pairs.
    pairs: u64,
}

/// Garbage collection during the measurement.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gc {
    /// Extents cleaned.
    victims: u64,
    records_moved: u64,
    page_reads: u64,
    block_erases: u64,
}

/// The flash in a report on blocks.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct BlockFlash {
    gc: BlockGc,
}

/// Garbage collection below a namespace of blocks, during the measurement.
#[derive(Clone, Copy, Debug, Serialize)]
struct BlockGc {
    /// Flash blocks cleaned.
    victims: u64,
    /// Logical blocks moved out of them.
    blocks_moved: u64,
    /// Pages moved within their plane, without the channel.
    copybacks: u64,
    block_erases: u64,
    /// Flash blocks cleaned only for wear levelling.
    wear_moves: u64,
}

impl Window {
    /// Returns the data bytes programmed. Every program and every copy within a plane is one page.
    fn programmed(&self) -> u64 {
        let (before, after) = (&self.before.nand, &self.after.nand);
        let page_bytes = after.bytes_programmed.checked_div(after.programs).unwrap_or(0);
        let copied = (after.copybacks - before.copybacks) * page_bytes;
        after.bytes_programmed - before.bytes_programmed + copied
    }

    /// Returns the data bytes programmed for each of `host_bytes` that hosts wrote, if they wrote
    /// any.
    pub(crate) fn amplification_of(&self, host_bytes: u64) -> Option<f64> {
        quotient(self.programmed(), host_bytes)
    }

    /// Returns the data bytes programmed for each byte of keys and values that hosts stored, if
    /// they stored any.
    pub(crate) fn write_amplification(&self) -> Option<f64> {
        self.amplification_of(self.after.store.host_bytes - self.before.store.host_bytes)
    }

    /// Returns the pages sensed for each of `retrieves`, if there were any.
    pub(crate) fn flash_reads_per_retrieve(&self, retrieves: u64) -> Option<f64> {
        let before = self.before.store.retrieve_page_reads;
        quotient(self.after.store.retrieve_page_reads - before, retrieves)
    }
}

impl Flash {
    /// Returns the figures of `device` at the end of `window`, with `pairs` of `stored_bytes` on
    /// it.
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

    /// Returns the section of a report.
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

impl BlockFlash {
    /// Returns the figures at the end of `window`.
    pub(crate) fn new(window: &Window) -> Self {
        let (before, after) = (&window.before, &window.after);
        Self {
            gc: BlockGc {
                victims: after.blocks.victims - before.blocks.victims,
                blocks_moved: after.blocks.moved_blocks - before.blocks.moved_blocks,
                copybacks: after.nand.copybacks - before.nand.copybacks,
                block_erases: after.nand.erases - before.nand.erases,
                wear_moves: after.blocks.wear_moves - before.blocks.wear_moves,
            },
        }
    }

    /// Returns the section of a report.
    pub(crate) fn table(&self, write_amplification: Option<f64>) -> String {
        let BlockGc { victims, blocks_moved, copybacks, block_erases, wear_moves } = self.gc;
        let gc = format!(
            "{} cleaned, {} moved",
            counted(victims, "flash block"),
            counted(blocks_moved, "block"),
        );
        let wear =
            format!("{}, {}", counted(block_erases, "erase"), counted(wear_moves, "wear move"));
        let facts = [
            ("write amplification", ratio(write_amplification)),
            ("garbage collection", gc),
            ("copybacks", counted(copybacks, "page")),
            ("wear", wear),
        ];
        format!("flash\n{}", table::facts(&facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_was_written_over_and_over_fits_a_terminal() {
        let gc = BlockGc {
            victims: 1_234_567,
            blocks_moved: 987_654_321,
            copybacks: 987_654_321,
            block_erases: 12_345_678,
            wear_moves: 12_345_678,
        };
        let table = BlockFlash { gc }.table(Some(123.45));
        assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    }
}
