use super::Rig;
use crate::flash::Window;
use crate::number::to_u64;
use crate::output::Failure;
use crate::progress::Unit;
use base::Nanos;
use base::limits::BLOCK_BYTES;
use node::profile::Namespace;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Instant;
use workload::{FillError, Plan, Space};

/// Fill level of a device before the measurement, as a share of its capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FillLevel(f64);

/// State of a device before the measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Precondition {
    /// Keys, or blocks, that it holds.
    pub(crate) keys: u64,
    /// Their share of the capacity: footprints of pairs, or blocks.
    pub(crate) fill: f64,
    /// Bytes overwritten, in capacities; 0 if nothing can be overwritten.
    pub(crate) capacities_overwritten: u32,
    /// Write amplification of the last capacity.
    pub(crate) write_amplification: Option<f64>,
    /// Relative difference from that of the capacity before.
    pub(crate) change: Option<f64>,
    /// Whether that difference is small enough.
    pub(crate) is_steady: bool,
    /// Duration on the target's clock.
    pub(crate) elapsed: Nanos,
    /// Wall time.
    pub(crate) wall_seconds: f64,
}

/// Most capacities to overwrite. A device with the smallest over-provisioning that a profile may
/// have is steady after a few; one with the largest takes 11 to be written once.
pub(crate) const CAPACITIES_MAX: u32 = 16;

/// A device is steady when the write amplification of one capacity and of the next differ by less
/// than this share.
const STEADY: f64 = 0.01;

impl FromStr for FillLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || "a fill is a share as 90% or 0.9, above 0 and up to 100%".to_owned();
        let (number, whole) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(refused());
        }
        let share = number.parse::<f64>().map_err(|_| refused())? / whole;
        if share > 0.0 && share <= 1.0 { Ok(Self(share)) } else { Err(refused()) }
    }
}

impl FillLevel {
    /// Returns this share of `whole`.
    pub(crate) fn of(self, whole: u64) -> u64 {
        to_u64((self.0 * float(whole)).floor())
    }
}

impl Rig<'_> {
    /// Fills the device to `level` with the keys, or blocks, of `plan`, whose own number of keys is
    /// ignored. Then overwrites them at random until the device is steady, in virtual time.
    ///
    /// All data has version 0, so that the plan can run as if the device had just been filled.
    pub(crate) fn precondition(
        &mut self,
        plan: &Plan,
        level: FillLevel,
    ) -> Result<Precondition, Failure> {
        let (started, start) = (Instant::now(), self.now());
        let (keys, fill) = match plan.space {
            Space::Pairs => self.fill_pairs(plan, level)?,
            Space::Blocks | Space::Zones(_) => self.fill_blocks(plan, level)?,
        };
        let plan = Plan { keys, ..*plan };
        let steadying = match plan.space {
            Space::Zones(_) => Steadying::default(),
            Space::Pairs | Space::Blocks => self.overwrite(&plan, fill)?,
        };
        self.flush()?;
        Ok(Precondition {
            keys,
            fill,
            capacities_overwritten: steadying.capacities,
            write_amplification: steadying.last,
            change: steadying.change(),
            is_steady: matches!(plan.space, Space::Zones(_)) || steadying.is_steady(),
            elapsed: self.now() - start,
            wall_seconds: started.elapsed().as_secs_f64(),
        })
    }

    fn fill_blocks(&mut self, plan: &Plan, level: FillLevel) -> Result<(u64, f64), Failure> {
        let capacity = self.blocks_of(plan);
        let keys = level.of(capacity);
        if keys == 0 {
            return Err(Failure::refused("not one block fits this --precondition"));
        }
        let plan = &Plan { keys, ..*plan };
        let mut bar = self.setup.progress.bar("filling", Unit::Count);
        self.store(plan, 0, |done| bar.set(done, keys))?;
        Ok((keys, float(keys) / float(capacity)))
    }

    /// The size of a pair on flash is known only after some stores.
    fn fill_pairs(&mut self, plan: &Plan, level: FillLevel) -> Result<(u64, f64), Failure> {
        let capacity = self.namespace(plan.nsid).size_bytes;
        let wanted = level.of(capacity);
        let used = |rig: &Self| rig.device.store().usage().values.bytes;
        let pair_bytes = float(plan.key_bytes as u64) + plan.values.mean();
        let about = float(wanted) / pair_bytes;
        let mut bar = self.setup.progress.bar("filling", Unit::Count);
        let mut show = |done| bar.set(done, to_u64(about).max(1));
        let mut keys = to_u64(about / SAMPLES).max(1);
        self.store(&Plan { keys, ..*plan }, 0, &mut show)?;
        loop {
            let footprint = float(used(self)) / float(keys);
            let missing = to_u64((float(wanted.saturating_sub(used(self))) / footprint).floor());
            if missing == 0 {
                return Ok((keys, float(used(self)) / float(capacity)));
            }
            // Sizes may be random, so the last pairs are counted again.
            let more = (missing - missing / FEW).max(missing.min(FEW));
            self.store(&Plan { keys: keys + more, ..*plan }, keys, &mut show)?;
            keys += more;
        }
    }

    /// Stores the keys of `plan` from number `first`, and calls `show` with the number stored.
    fn store(&mut self, plan: &Plan, first: u64, mut show: impl FnMut(u64)) -> Result<(), Failure> {
        if plan.keys > plan.keys_max() {
            let keys = plan.keys_max();
            return Err(Failure::Refused(format!(
                "at most {keys} keys are different, and this --precondition needs more"
            )));
        }
        let queue = self.device.controller().queue_pair();
        let progress = |done, _| show(first + done);
        let stored = self.reactor.run(workload::fill_from(&queue, plan, first, progress));
        stored.map(drop).map_err(|FillError { status, stored, .. }| {
            let stored = first + stored;
            Failure::Refused(format!(
                "a smaller --precondition is needed: after {stored} pairs or blocks a store \
                 failed: {status}"
            ))
        })
    }

    /// Overwrites one capacity after the other.
    fn overwrite(&mut self, plan: &Plan, fill: f64) -> Result<Steadying, Failure> {
        let mut steadying = Steadying::default();
        let operations = to_u64(float(plan.keys) / fill).max(1);
        let queue = self.device.controller().queue_pair();
        while !steadying.is_over() {
            let before = self.device.figures();
            let mut bar = self.setup.progress.bar("overwriting", Unit::Count);
            let progress = |done, _| bar.set(done, operations);
            let round = steadying.capacities;
            let overwriting = workload::overwrite(&queue, plan, round, operations, progress);
            self.reactor.run(overwriting).map_err(|FillError { status, .. }| {
                Failure::Refused(format!(
                    "a smaller --precondition is needed: filled like this the device cannot be \
                     overwritten: {status}"
                ))
            })?;
            let window = Window { before, after: self.device.figures() };
            let amplification = match plan.space {
                Space::Pairs => window.write_amplification(),
                _ => window.amplification_of(operations * u64::from(plan.values.max())),
            };
            let written = fill + f64::from(steadying.capacities);
            steadying.add(amplification, written >= self.flash_of(plan));
        }
        Ok(steadying)
    }

    /// Returns the number of blocks of `plan` for which its namespace has room.
    pub(crate) fn blocks_of(&self, plan: &Plan) -> u64 {
        let blocks = plan.values.max() / BLOCK_BYTES;
        match (plan.space, self.device.zones(plan.nsid)) {
            (Space::Zones(zoning), Some(zones)) => {
                u64::from(zones.shape().zones) * zoning.per_zone(blocks)
            }
            _ => self.namespace(plan.nsid).size_bytes / u64::from(plan.values.max()),
        }
    }

    /// Returns the flash of the namespace of `plan`, in its capacities. All namespaces of pairs
    /// share their flash.
    fn flash_of(&self, plan: &Plan) -> f64 {
        let own = self.namespace(plan.nsid);
        let flash = |namespace: &Namespace| {
            float(namespace.size_bytes) * (1.0 + namespace.over_provisioning)
        };
        let all = &self.setup.profile.namespaces;
        let bytes: f64 = match plan.space {
            Space::Pairs => all.iter().filter(|it| it.kind.is_kv()).map(flash).sum(),
            Space::Blocks | Space::Zones(_) => flash(own),
        };
        bytes / float(own.size_bytes)
    }
}

/// One in this many pairs is stored first, to learn the size of the others.
const SAMPLES: f64 = 100.0;

/// All but one in this many of the missing pairs are stored before they are counted again.
const FEW: u64 = 50;

/// Progress of a device towards being steady.
#[derive(Clone, Copy, Debug, Default)]
struct Steadying {
    /// Capacities overwritten so far.
    capacities: u32,
    /// Write amplification of the last capacity.
    last: Option<f64>,
    /// Write amplification of the one before.
    before: Option<f64>,
    /// Whether the whole flash had been written before the last capacity. Until then no cleaning
    /// runs, and any device looks steady.
    is_broken_in: bool,
}

impl Steadying {
    /// Records the amplification of an overwritten capacity.
    fn add(&mut self, amplification: Option<f64>, is_broken_in: bool) {
        self.before = self.last;
        self.last = amplification;
        self.capacities += 1;
        self.is_broken_in = is_broken_in;
    }

    fn change(&self) -> Option<f64> {
        let (before, last) = (self.before?, self.last?);
        Some((last - before).abs() / before)
    }

    fn is_steady(&self) -> bool {
        self.is_broken_in && self.change().is_some_and(|change| change < STEADY)
    }

    fn is_over(&self) -> bool {
        self.is_steady() || self.capacities == CAPACITIES_MAX
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares, of which 53 bits are plenty")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fill_level_is_a_share_or_a_percentage() {
        for (text, share) in
            [("90%", 0.9), ("0.9", 0.9), ("100%", 1.0), ("1", 1.0), ("0.5%", 0.005), (".5", 0.5)]
        {
            assert_eq!(text.parse(), Ok(FillLevel(share)), "{text}");
        }
        for text in
            ["", "%", "0", "0%", "1.1", "90", "101%", "-1", "1e-1", "nan", "inf", "90 %", "1.2.3"]
        {
            assert!(text.parse::<FillLevel>().is_err(), "{text}");
        }
        assert_eq!(FillLevel(0.9).of(101), 90);
    }

    /// Returns the capacity after which a device with these write amplifications counts as steady.
    fn over_after(amplifications: &[f64], broken_in_after: u32) -> (u32, bool) {
        let mut steadying = Steadying::default();
        let mut amplifications = amplifications.iter().cycle();
        while !steadying.is_over() {
            let is_broken_in = steadying.capacities >= broken_in_after;
            steadying.add(amplifications.next().copied(), is_broken_in);
        }
        (steadying.capacities, steadying.is_steady())
    }

    #[test]
    fn two_capacities_alike_are_steady_once_the_flash_is_written() {
        assert_eq!(over_after(&[1.0], 0), (2, true));
        assert_eq!(over_after(&[1.0], 5), (6, true));
        assert_eq!(over_after(&[1.0, 2.0, 2.03, 2.05, 2.1], 0), (4, true));
        assert_eq!(over_after(&[2.0, 2.02, 2.0], 0), (3, true), "2.0 and 2.02 are 1 % apart");
    }

    #[test]
    fn an_unsteady_device_ends_at_the_limit() {
        assert_eq!(over_after(&[1.0, 2.0], 0), (CAPACITIES_MAX, false));
        assert_eq!(over_after(&[1.0], 99), (CAPACITIES_MAX, false));
    }
}
