use crate::zoning::Zoning;
use serde::{Deserialize, Serialize};

/// Writes blocks in the order of their numbers and around again, as a host has to do it in a zoned
/// namespace: what was written before is reset first, zone by zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ZoneWriter {
    /// Blocks that a zone holds.
    per_zone: u64,
    /// Blocks that are written in turn.
    count: u64,
    next: u64,
    zones: Vec<Zone>,
    /// A zone is being reset.
    is_resetting: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Zone {
    /// Something was written since it was reset.
    is_written: bool,
    /// Writes that have not ended.
    outstanding: u32,
}

/// The next block that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneWrite {
    pub(crate) number: u64,
    /// Its zone is to be reset before.
    pub(crate) is_reset_first: bool,
}

impl ZoneWriter {
    /// Of the first `count` blocks of `blocks` logical blocks each, which were written before if
    /// `is_written`.
    pub(crate) fn new(zoning: Zoning, blocks: u32, count: u64, is_written: bool) -> Self {
        let per_zone = zoning.per_zone(blocks);
        let zones =
            usize::try_from(count.div_ceil(per_zone)).expect("zones are counted in 32 bits");
        let zone = Zone { is_written, outstanding: 0 };
        Self { per_zone, count, next: 0, zones: vec![zone; zones], is_resetting: false }
    }

    /// True when the next write has to wait for one that is outstanding, or for a reset: a write
    /// that meets a reset of its zone is lost.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.is_resetting
            || self.is_reset_next() && self.zones[self.zone(self.next)].outstanding > 0
    }

    /// The next write, which is not held.
    #[inline]
    pub(crate) fn next(&mut self) -> ZoneWrite {
        let (number, is_reset_first) = (self.next, self.is_reset_next());
        let zone = self.zone(number);
        self.zones[zone].is_written = true;
        self.is_resetting = is_reset_first;
        self.next = if number + 1 < self.count { number + 1 } else { 0 };
        ZoneWrite { number, is_reset_first }
    }

    /// The reset has ended that the last write wanted.
    pub(crate) fn end_reset(&mut self) {
        self.is_resetting = false;
    }

    /// The write of block `number` is submitted.
    #[inline]
    pub(crate) fn begin(&mut self, number: u64) {
        let zone = self.zone(number);
        self.zones[zone].outstanding += 1;
    }

    /// The write of block `number` has ended.
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
