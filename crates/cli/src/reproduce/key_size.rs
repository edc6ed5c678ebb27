//! MoKE-1a: keys that do not fit a command need a transfer of their own.

use super::criteria;
use super::finding::{Finding, Row};
use super::moke::{self, OPERATIONS, PAIRS};
use super::run::Run;
use crate::number::{grouped, quotient};
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use crate::rig::Measured;
use base::Nanos;
use node::Profile;
use serde::Deserialize;
use workload::{Operation, Plan, Until};

/// Around the 16 bytes that fit a command, up to the longest key.
const KEY_BYTES: [u8; 6] = [16, 17, 32, 64, 128, 255];

/// MoKE, section III: 64 for measurements of throughput.
const QUEUE_DEPTH: u32 = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    drop_min: f64,
    spread_max: f64,
}

/// Operations per second with keys of one size.
#[derive(Clone, Copy, Debug)]
struct Rates {
    key_bytes: u8,
    retrieves: f64,
    stores: f64,
}

pub(super) fn run(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("MoKE-1a");
    let mut profile = moke::profile()?;
    if run.is_control {
        profile.link.transfer = Nanos::ZERO;
    }
    let rates = KEY_BYTES.map(|key_bytes| measure(&profile, key_bytes, run));
    let rates: Vec<Rates> = rates.into_iter().collect::<Result<_, _>>()?;
    let retrieves: Vec<f64> = rates.iter().map(|rates| rates.retrieves).collect();
    Ok(Finding {
        setup: setup(&profile, run.is_control),
        assumptions: moke::assumptions(&profile, &ASSUMED, &OWN_ASSUMPTIONS),
        rows: rows(&rates, &retrieves, spread_by_the_byte(&profile)),
        holds: bounds.holds(&retrieves),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&rates)],
    })
}

fn measure(profile: &Profile, key_bytes: u8, run: Run) -> Result<Rates, Failure> {
    let mut rig = moke::rig(profile, run)?;
    let key_bytes_of = |plan| Plan { key_bytes: key_bytes.into(), ..plan };
    let stores = key_bytes_of(moke::plan(Operation::Store, QUEUE_DEPTH));
    // Each pair once, so that retrieves find all keys.
    let stores = Plan { until: Until::Operations(PAIRS), ..stores };
    let stores = moke::measure(&mut rig, &stores)?;
    let retrieves = key_bytes_of(moke::plan(Operation::Retrieve, QUEUE_DEPTH));
    let retrieves = moke::measure(&mut rig, &retrieves)?;
    Ok(Rates { key_bytes, retrieves: per_second(&retrieves), stores: per_second(&stores) })
}

fn per_second(measured: &Measured) -> f64 {
    let outcome = &measured.outcome;
    quotient(outcome.operations(), outcome.elapsed().0).expect("operations take time") * 1e9
}

impl Bounds {
    /// Returns the rates with keys of 16 bytes, and then with longer ones.
    fn holds(&self, rates: &[f64]) -> bool {
        drop_of(rates) >= self.drop_min && spread(&rates[1..]) <= self.spread_max
    }
}

/// Returns the relative drop from the first of `rates` to the second.
fn drop_of(rates: &[f64]) -> f64 {
    1.0 - rates[1] / rates[0]
}

/// Returns the relative difference of the highest and the lowest of `rates`.
fn spread(rates: &[f64]) -> f64 {
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    rates.iter().copied().fold(0.0, f64::max) / lowest - 1.0
}

/// Returns the relative gain of a handler, for which retrieves wait here, from the longest to the
/// shortest of the long keys, if the link charged the bytes of keys.
fn spread_by_the_byte(profile: &Profile) -> f64 {
    let busy = |key_bytes: u8| {
        let bytes = Nanos::for_bytes(key_bytes.into(), profile.link.bytes_per_second);
        moke::nanos(profile.firmware.t_read + profile.link.transfer + bytes)
    };
    busy(KEY_BYTES[KEY_BYTES.len() - 1]) / busy(KEY_BYTES[1]) - 1.0
}

const ASSUMED: [&str; 3] = ["link.mb_per_s", "link.transfer_us", "firmware.handlers"];

const OWN_ASSUMPTIONS: [&str; 4] = [
    "a handler fetches a long key before it works on the index, and is busy during the transfer; \
     MoKE adds no delay for that, since it runs on the wall clock, where the transfer itself takes \
     time",
    "a long key costs a transfer over the link and its bytes cost nothing, as those of commands; \
     with its bytes charged the criterion would not be met: see the row of it \
     (docs/decisions/0016-a-key-costs-a-transfer.md)",
    "the criterion is on retrieves: the paper does not say which operations figure 1a is of, and \
     stores wait for programs, beside which a key's transfer is short",
    "each key size has a fresh device; the paper gives no numbers for this figure, only its trend",
];

fn setup(profile: &Profile, is_control: bool) -> String {
    let load = format!(
        "{} pairs stored, then {} random retrieves, {QUEUE_DEPTH} outstanding",
        grouped(PAIRS),
        grouped(OPERATIONS)
    );
    let setup = moke::setup(profile, &load);
    if is_control {
        setup + "; control: transfers over the link take the time of their bytes only"
    } else {
        setup
    }
}

fn rows(rates: &[Rates], retrieves: &[f64], by_the_byte: f64) -> Vec<Row> {
    let row = |label, ours, unit| Row { label, paper: None, ours, unit };
    let rate = |name: &str, rates: &Rates, ours| {
        row(format!("{name}, key of {} B", rates.key_bytes), ours, "op/s")
    };
    let of_retrieves = rates.iter().map(|rates| rate("retrieve", rates, rates.retrieves));
    let of_stores = rates.iter().map(|rates| rate("store", rates, rates.stores));
    let share = |label: &str, share: f64| row(label.to_owned(), share * 100.0, "%");
    let shares = [
        share("retrieve: 17 B below 16 B", drop_of(retrieves)),
        share("retrieve: highest above lowest, 17 to 255 B", spread(&retrieves[1..])),
        share("the same, computed, if keys were charged by the byte", by_the_byte),
    ];
    of_retrieves.chain(shares).chain(of_stores).collect()
}

fn panel(rates: &[Rates]) -> Panel {
    let series = |name: &str, rate: fn(&Rates) -> f64| Series {
        name: name.to_owned(),
        mark: Mark::Line,
        points: rates.iter().map(|rates| (rates.key_bytes.into(), rate(rates))).collect(),
    };
    Panel {
        title: String::new(),
        x: Axis { label: "key size".to_owned(), scale: Scale::Log2, unit: Unit::Bytes },
        y: Axis {
            label: "operations a second".to_owned(),
            scale: Scale::Linear,
            unit: Unit::Count,
        },
        series: vec![
            series("retrieve", |rates| rates.retrieves),
            series("store", |rates| rates.stores),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds with exact quotients.
    const BOUNDS: Bounds = Bounds { criterion: String::new(), drop_min: 0.25, spread_max: 0.125 };

    #[test]
    fn a_drop_of_the_bound_is_enough_and_a_smaller_one_is_not() {
        for (long, holds) in [(75.0, true), (74.9, true), (75.1, false), (100.0, false)] {
            assert_eq!(BOUNDS.holds(&[100.0, long, long, long]), holds, "{long}");
        }
    }

    #[test]
    fn long_keys_are_equal_up_to_the_bound_in_either_direction() {
        for (other, holds) in [(72.0, true), (72.1, false), (64.0, true), (56.8, false)] {
            assert_eq!(BOUNDS.holds(&[100.0, 64.0, other, 64.0]), holds, "{other}");
        }
        assert!(BOUNDS.holds(&[100.0, 64.0, 64.0, 72.0]));
        assert!(!BOUNDS.holds(&[100.0, 64.0, 64.0, 72.1]), "the last counts too");
        assert!(BOUNDS.holds(&[1_000.0, 64.0, 72.0]), "the first is not one of them");
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        let holds =
            |from, to, rates: &[f64]| criteria::changed::<Bounds>("MoKE-1a", from, to).holds(rates);
        let rates = [100.0, 96.0, 95.5];
        assert!(criteria::bounds::<Bounds>("MoKE-1a").holds(&rates));
        assert!(!holds("drop_min = 0.03", "drop_min = 0.05", &rates));
        assert!(!holds("spread_max = 0.01", "spread_max = 0.001", &rates));
    }
}
