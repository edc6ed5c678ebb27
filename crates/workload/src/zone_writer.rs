use crate::zoning::Zoning;
use serde::{Deserialize, Serialize};

/// Writes blocks in the order of their numbers, cyclically, in a zoned namespace: resets each zone
/// that was written before it writes there again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ZoneWriter {
    /// Blocks of a zone.
    per_zone: u64,
    /// Blocks to write.
    count: u64,
    next: u64,
    zones: Vec<Zone>,
    /// True while a zone is being reset.
    is_resetting: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Zone {
    /// True when it was written since its last reset.
    is_written: bool,
    /// Outstanding writes.
    outstanding: u32,
}

/// The next block to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneWrite {
    pub(crate) number: u64,
    /// True when its zone must be reset first.
    pub(crate) is_reset_first: bool,
}

impl ZoneWriter {
    /// Returns a writer of the first `count` blocks of `blocks` logical blocks each, which were
    /// written before if `is_written`.
    pub(crate) fn new(zoning: Zoning, blocks: u32, count: u64, is_written: bool) -> Self {
        let per_zone = zoning.per_zone(blocks);
        let zones =
            usize::try_from(count.div_ceil(per_zone)).expect("zones are counted in 32 bits");
        let zone = Zone { is_written, outstanding: 0 };
        Self { per_zone, count, next: 0, zones: vec![zone; zones], is_resetting: false }
    }

    /// True when the next write must wait for an outstanding write or a reset: a write that meets a
    /// reset of its zone is lost.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.is_resetting
            || self.is_reset_next() && self.zones[self.zone(self.next)].outstanding > 0
    }

    /// Returns the next write, which must not be held.
    #[inline]
    pub(crate) fn next(&mut self) -> ZoneWrite {
        let (number, is_reset_first) = (self.next, self.is_reset_next());
        let zone = self.zone(number);
        self.zones[zone].is_written = true;
        self.is_resetting = is_reset_first;
        self.next = if number + 1 < self.count { number + 1 } else { 0 };
        ZoneWrite { number, is_reset_first }
    }

    /// Ends the reset that the last write required.
    pub(crate) fn end_reset(&mut self) {
        self.is_resetting = false;
    }

    /// Begins the write of block `number`.
    #[inline]
    pub(crate) fn begin(&mut self, number: u64) {
        let zone = self.zone(number);
        self.zones[zone].outstanding += 1;
    }

    /// Ends the write of block `number`.
    #[inline]
    pub(crate) fn end(&mut self, number: u64) {
        let zone = self.zone(number);
        self.zones[zone].outstanding -= 1;
    }

    fn is_reset_next(&self) -> bool {
        self.next.is_multiple_of(self.per_zone) && self.zones[self.zone(self.next)].is_written
    }

    fn zone(&self, number: u64) -> usize {
        usize::try_from(number / self.per_zone).expect("zones are counted in 32 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONING: Zoning = Zoning { zone_blocks: 8, capacity_blocks: 6 };

    /// Seven blocks of two logical blocks: three zones, of which the last holds one.
    fn writer(is_written: bool) -> ZoneWriter {
        ZoneWriter::new(ZONING, 2, 7, is_written)
    }

    #[test]
    fn zones_are_reset_before_they_are_written_again() {
        for (is_written, first_round) in [(false, [].as_slice()), (true, &[0, 3, 6])] {
            let mut writer = writer(is_written);
            for round in 0..3 {
                for number in 0..7 {
                    assert!(!writer.is_held());
                    let resets = if round == 0 { first_round } else { &[0, 3, 6] };
                    let is_reset_first = resets.contains(&number);
                    assert_eq!(writer.next(), ZoneWrite { number, is_reset_first });
                    assert_eq!(writer.is_held(), is_reset_first);
                    writer.end_reset();
                }
            }
        }
    }

    #[test]
    fn a_zone_is_not_reset_while_a_write_to_it_is_outstanding() {
        let mut writer = writer(false);
        for number in 0..7 {
            assert!(!writer.is_held());
            assert_eq!(writer.next().number, number);
            writer.begin(number);
        }
        for number in [5, 0, 2] {
            writer.end(number);
            assert!(writer.is_held(), "block 1 is outstanding");
        }
        writer.end(1);
        assert!(!writer.is_held());
        assert_eq!(writer.next(), ZoneWrite { number: 0, is_reset_first: true });
    }
}
