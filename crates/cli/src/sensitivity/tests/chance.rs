//! Checks the report for knobs without an effect on write amplification, and for one with an
//! effect.

use super::bases::BLOCK;
use crate::progress::{Progress, Unit};
use crate::sensitivity::{Given, measure};
use node::profile::Draft;
use serde_json::Value;
use std::num::NonZeroUsize;

/// Write amplification of a steady device does not depend on these keys: they are times.
const TIMES: [&str; 5] =
    ["nand.read_us", "nand.program_us", "nand.erase_us", "link.mb_per_s", "firmware.t_write_us"];

/// It depends on the spare part of the flash: (1 + OP) / OP is its bound.
const SPARE: &str = "namespace.1.over_provisioning";

fn report(threads: usize) -> Value {
    let mut draft = Draft::new("small", BLOCK).unwrap();
    for (key, value) in [
        ("nand.channels", "2"),
        ("nand.channel_mb_per_s", "800"),
        ("link.mb_per_s", "3200"),
        ("firmware.t_write_us", "4"),
        ("namespace.1.over_provisioning", "0.25"),
    ] {
        draft = draft.set(key, value);
    }
    let given = Given { name: "small", whole: &draft, draft: &draft, cut: None };
    let mut knobs = draft.knobs();
    knobs.retain(|knob| TIMES.contains(&&knob.key[..]) || knob.key == SPARE);
    assert_eq!(knobs.len(), TIMES.len() + 1);
    let mut bar = Progress::new(true).bar("changing knobs", Unit::Count);
    let threads = NonZeroUsize::new(threads).unwrap();
    serde_json::to_value(measure(&given, &knobs, threads, &mut bar).unwrap()).unwrap()
}

/// Returns for each load with a write amplification the ratio after `change`, and whether the ratio
/// is within the spread.
fn amplifications(report: &Value, change: &Value) -> Vec<(f64, bool)> {
    let number = |value: &Value| value.as_f64();
    let spread = |load: &Value, end: &str| {
        let spreads = report["spread"].as_array().unwrap();
        let is_of = |one: &&Value| one["load"] == *load && one["measure"] == "WA";
        number(&spreads.iter().find(is_of).unwrap()[end]).unwrap()
    };
    let figures = change["figures"].as_array().unwrap();
    let ratios = report["base"].as_array().unwrap().iter().zip(figures).filter_map(|(was, is)| {
        assert_eq!(was["load"], is["load"]);
        let amplification = |of: &Value| number(&of["figures"]["write_amplification"]);
        let ratio = amplification(is)? / amplification(was)?;
        let load = &was["load"];
        Some((ratio, (spread(load, "low")..=spread(load, "high")).contains(&ratio)))
    });
    ratios.collect()
}

#[test]
fn chance_is_told_from_effect_on_any_number_of_threads() {
    let report = report(3);
    assert_eq!(report, self::report(1), "threads change nothing");
    for knob in report["knobs"].as_array().unwrap() {
        let key = knob["key"].as_str().unwrap();
        assert_eq!(knob["changes"].as_array().unwrap().len(), 2, "{key}");
        for change in knob["changes"].as_array().unwrap() {
            let found = amplifications(&report, change);
            println!("{key} {}: {found:?}", change["change"]);
            assert!(!found.is_empty(), "a load overwrites all once: {change}");
            if key == SPARE {
                assert!(found.iter().any(|(_, is_chance)| !is_chance), "{}", report["spread"]);
                assert!(change["moved"].is_object(), "{change}");
            } else {
                assert!(found.iter().all(|(_, is_chance)| *is_chance), "{}", report["spread"]);
                assert_ne!(change["moved"]["measure"], "WA", "{change}");
            }
        }
    }
}
