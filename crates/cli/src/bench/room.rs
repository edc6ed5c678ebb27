//! Whether pairs fit the device, and the machine's memory.

use crate::number::{counted, to_u64};
use crate::output::Failure;
use base::human_bytes;
use node::Profile;

/// What a load stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// Pairs on the device at the end.
    pub(super) pairs: u64,
    /// All that is stored, overwritten pairs included.
    pub(super) stores: u64,
    /// Bytes of a key, on average.
    pub(super) key_bytes: f64,
    /// Bytes of a value, on average.
    pub(super) value_bytes: f64,
    /// Whether values keep their bytes.
    pub(super) has_bytes: bool,
}

/// Memory of an emulated record beside its key and its value, measured: header, share of its page,
/// index entry.
const RECORD_MEMORY_BYTES: f64 = 200.0;

/// Memory for each byte of a key, measured: keys lie in pages and in summaries, and vectors have
/// room left.
const KEY_MEMORY_FACTOR: f64 = 3.0;

/// Refuses pairs that do not fit the device, or the machine's memory of `total` bytes.
pub(super) fn check(stored: &Stored, profile: &Profile, total: Option<u64>) -> Result<(), Failure> {
    let pair = stored.key_bytes + stored.value_bytes;
    let capacity = profile.namespace.size_bytes;
    if float(stored.pairs) * pair > float(capacity) {
        return Err(Failure::Refused(format!(
            "{} of {} do not fit {}, which has {}",
            counted(stored.pairs, "pair"),
            human_bytes(to_u64(pair)),
            profile.name,
            human_bytes(capacity),
        )));
    }
    let needed = memory_bytes(stored, profile);
    match total {
        Some(total) if needed > float(total) => Err(Failure::Refused(format!(
            "this would take about {} of memory, and there are {}: fewer keys or operations, or \
             payload=none, take less",
            human_bytes(to_u64(needed)),
            human_bytes(total),
        ))),
        _ => Ok(()),
    }
}

/// About how much memory the emulated flash and the index will take.
fn memory_bytes(stored: &Stored, profile: &Profile) -> f64 {
    let value = if stored.has_bytes { stored.value_bytes } else { 0.0 };
    let pair = (stored.key_bytes + stored.value_bytes).max(16.0);
    // What was overwritten stays until its block is erased, so there is at most a full flash.
    let records = float(stored.stores).min(float(profile.nand.raw_bytes()) / pair);
    records * (RECORD_MEMORY_BYTES + KEY_MEMORY_FACTOR * stored.key_bytes + value)
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
        pairs: 1_000,
        stores: 1_000,
        key_bytes: 16.0,
        value_bytes: 1_048_576.0,
        has_bytes: true,
    };

    fn has_room(stored: Stored, total: u64) -> bool {
        check(&stored, &Profile::load("moke").unwrap(), Some(total)).is_ok()
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

    #[test]
    fn pairs_that_the_device_cannot_hold_are_refused() {
        let pairs = 64_000_000_000 / (16 + (1 << 20));
        let stored = Stored { pairs, has_bytes: false, ..STORED };
        assert!(has_room(stored, GIB) && !has_room(Stored { pairs: pairs + 1, ..stored }, GIB));
    }
}
