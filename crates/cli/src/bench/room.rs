//! Tells whether pairs or blocks fit the device and the machine's memory.

use crate::number::{counted, grouped, to_u64};
use crate::output::Failure;
use base::human_bytes;
use base::limits::BLOCK_BYTES;
use node::Profile;
use workload::{Operation, Plan, Space, Until};

/// What a load stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// True for pairs, false for blocks.
    pub(super) is_pairs: bool,
    /// Pairs or blocks on the device at the end.
    pub(super) items: u64,
    /// All stores, including overwrites.
    pub(super) stores: u64,
    /// Bytes of a key, on average.
    pub(super) key_bytes: f64,
    /// Bytes of a value, on average.
    pub(super) value_bytes: f64,
    /// Whether the emulated flash keeps the bytes of values.
    pub(super) has_bytes: bool,
}

/// Memory of an emulated record beside its key and its value, measured: header, share of its page,
/// index entry.
const RECORD_MEMORY_BYTES: f64 = 200.0;

/// Memory for each byte of a key, measured: pages and summaries contain keys, and vectors have
/// spare capacity.
const KEY_MEMORY_FACTOR: f64 = 3.0;

/// Memory of a logical block on the emulated flash without its bytes, including its map entry,
/// measured: 86 where eight share a page, 145 where two do.
const BLOCK_MEMORY_BYTES: f64 = 150.0;

/// Memory of an aligned buffer beside its bytes, measured.
const BUFFER_MEMORY_BYTES: f64 = 4_096.0;

impl Stored {
    /// Bytes of one item.
    fn item_bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes
    }

    /// Returns how many items fit in `bytes`.
    pub(super) fn items_in(&self, bytes: u64) -> u64 {
        to_u64((float(bytes) / self.item_bytes().max(1.0)).floor())
    }
}

/// Refuses a load that does not fit namespace `nsid` of the device, or the machine's memory of
/// `total` bytes.
pub(super) fn check(
    stored: &Stored,
    profile: &Profile,
    nsid: u32,
    total: Option<u64>,
) -> Result<(), Failure> {
    let capacity = profile.namespaces[nsid as usize - 1].size_bytes;
    let item = if stored.is_pairs { "pair" } else { "block" };
    if float(stored.items) * stored.item_bytes() > float(capacity) {
        return Err(Failure::Refused(format!(
            "{} of {} do not fit {}, which has {}",
            counted(stored.items, item),
            human_bytes(to_u64(stored.item_bytes())),
            profile.name,
            human_bytes(capacity),
        )));
    }
    let needed = memory_bytes(stored, profile);
    match total {
        Some(total) if needed > float(total) => Err(Failure::Refused(format!(
            "this would take about {} of memory, and there are {}: fewer keys, blocks or \
             operations, or payload=none, take less",
            human_bytes(to_u64(needed)),
            human_bytes(total),
        ))),
        _ => Ok(()),
    }
}

/// Refuses more keys than the index has room for.
pub(super) fn check_index(plan: &Plan, profile: &Profile) -> Result<(), Failure> {
    let index = profile.index.filter(|index| plan.space == Space::Pairs && index.has_budget());
    let Some(index) = index else { return Ok(()) };
    let keys = match (plan.operation, plan.until) {
        (Operation::Store, Until::Operations(operations)) => operations.min(plan.keys),
        _ => plan.keys,
    };
    let most = index.config(profile.kv_bytes()).keys_max;
    if keys <= most {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "the index is for {}, and this load has {}: more are the target's option keys={keys}",
        counted(most, "key"),
        grouped(keys)
    )))
}

/// Estimates the memory of the emulated flash and of the index or the map.
fn memory_bytes(stored: &Stored, profile: &Profile) -> f64 {
    let buffer = if stored.has_bytes { stored.value_bytes + BUFFER_MEMORY_BYTES } else { 0.0 };
    // Overwritten data stays until its block is erased, so this is at most a full flash.
    let flash = float(profile.nand.raw_bytes()) / stored.item_bytes().max(16.0);
    let beside = if stored.is_pairs {
        RECORD_MEMORY_BYTES + KEY_MEMORY_FACTOR * stored.key_bytes
    } else {
        stored.value_bytes / f64::from(BLOCK_BYTES) * BLOCK_MEMORY_BYTES
    };
    float(stored.stores).min(flash) * (beside + buffer)
}

#[expect(clippy::cast_precision_loss, reason = "for an estimate, where 53 bits are plenty")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{GIB, MIB};

    const STORED: Stored = Stored {
        is_pairs: true,
        items: 1_000,
        stores: 1_000,
        key_bytes: 16.0,
        value_bytes: 1_048_576.0,
        has_bytes: true,
    };

    fn has_room(stored: Stored, total: u64) -> bool {
        check(&stored, &Profile::load("moke").unwrap(), 1, Some(total)).is_ok()
    }

    #[test]
    fn values_that_memory_cannot_hold_are_refused() {
        assert!(has_room(STORED, GIB) && !has_room(STORED, 999 * MIB));
        assert!(has_room(Stored { has_bytes: false, ..STORED }, MIB));
        let overwriting = Stored { stores: 2_000, ..STORED };
        assert!(!has_room(overwriting, GIB) && has_room(overwriting, 2 * GIB));
    }

    #[test]
    fn overwriting_takes_no_more_memory_than_the_whole_flash() {
        let overwriting = Stored { stores: 4_000_000_000, ..STORED };
        assert!(has_room(overwriting, 65 * GIB) && !has_room(overwriting, 64 * GIB));
    }

    /// Bytes of small buffers take twice their size, and each block 150 more.
    #[test]
    fn blocks_that_memory_cannot_hold_are_refused() {
        let blocks = Stored {
            is_pairs: false,
            items: 1 << 20,
            stores: 1 << 20,
            key_bytes: 0.0,
            value_bytes: 4_096.0,
            has_bytes: true,
        };
        assert!(has_room(blocks, 9 * GIB) && !has_room(blocks, 8 * GIB));
        let without = Stored { has_bytes: false, ..blocks };
        assert!(has_room(without, 151 * MIB) && !has_room(without, 149 * MIB));
        assert_eq!(without.items_in(40_960), 10);
    }

    #[test]
    fn pairs_that_the_device_cannot_hold_are_refused() {
        let pairs = 64_000_000_000 / (16 + (1 << 20));
        let stored = Stored { items: pairs, has_bytes: false, ..STORED };
        assert!(has_room(stored, GIB) && !has_room(Stored { items: pairs + 1, ..stored }, GIB));
    }
}
