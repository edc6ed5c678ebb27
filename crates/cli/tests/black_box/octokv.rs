//! The experiments of `OctoKV`, as they are shipped.

use crate::reproduce::{assert_holds_for_its_reason, figures, reproduced};
use serde_json::Value;

/// The report of an experiment that is known not to hold.
#[track_caller]
fn known_failure(id: &str) -> Value {
    let (ran, report) = reproduced("", id);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert!(report["known_failure"].is_string() && report["holds"] == false);
    report
}

fn ours(report: &Value, label: &str) -> f64 {
    figures(report, label).0
}

/// By the law of flows, cores with four connections get four commands where the others get three.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn two_cores_with_four_connections_are_busier_by_a_third() {
    let report = known_failure("OCT-util");
    let (ran, control) = reproduced("--control", "OCT-util");
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    for load in ["light put", "light get", "heavy put", "heavy get"] {
        let busy =
            |report: &Value, core: u32| ours(report, &format!("{load}, core {core}: utilisation"));
        for core in 3..=6 {
            let ratio = busy(&report, 1) / busy(&report, core);
            assert!((ratio - 4.0 / 3.0).abs() < 0.03, "{load}, core {core}: {ratio}");
            let even = busy(&control, 1) / busy(&control, core);
            assert!((even - 1.0).abs() < 0.03, "{load}, core {core}: {even}");
        }
        assert!(ours(&report, &format!("{load}: busier group slower")) > 10.0);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn depths_are_beside_those_of_the_slides_and_less_uneven() {
    let report = known_failure("OCT-qd");
    assert_eq!(figures(&report, "heavy get, core 2").1, Some(6.54));
    assert_eq!(figures(&report, "light put, core 6").1, Some(0.33));
    for (row, deviation) in [
        ("light put", 0.78 / 1.26),
        ("heavy put", 1.70 / 3.18),
        ("light get", 1.31 / 2.43),
        ("heavy get", 1.86 / 3.91),
    ] {
        let (ours, paper) = figures(&report, &format!("by processor, {row}: deviation/mean"));
        assert!((paper.unwrap() - deviation).abs() < 0.01 && ours < deviation, "{row}: {ours}");
    }
    // 12 threads with a connection each are two on each core.
    assert!(ours(&report, "by thread, heavy get: deviation/mean") < 0.01);
}

/// By Little's law, the threads are the rate times the response time.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn octokv_is_faster_than_a_store_on_the_client_by_time_and_by_rate() {
    let [times, rates] = ["OCT-rt", "OCT-tp"].map(known_failure);
    for operation in ["put", "get"] {
        for (load, threads) in [("light", 7.0), ("medium", 10.0), ("heavy", 12.0)] {
            let of = |report: &Value, system: &str| {
                ours(report, &format!("{operation} {load}: {system}"))
            };
            for system in ["store on the client", "OctoKV", "OctoKV, RR", "OctoKV, PS"] {
                let found = of(&rates, system) * of(&times, system) / 1e3;
                assert!((found / threads - 1.0).abs() < 0.01, "{system}, {load}: {found}");
            }
            assert!(of(&times, "OctoKV") < of(&times, "store on the client"));
            assert!(of(&times, "OctoKV, PS") < 1.01 * of(&times, "OctoKV"));
        }
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn balancing_makes_the_utilisation_even() {
    let (report, control) = assert_holds_for_its_reason("OCT-lb");
    for load in ["medium put", "medium get", "heavy put", "heavy get"] {
        for balancer in ["RR", "PS", "RR, each window anew", "PS, each window anew"] {
            let name = format!("{load}, {balancer}");
            assert!(ours(&report, &format!("{name}: fall of it")) > 1.6, "{name}");
            assert!(ours(&report, &format!("{name}: diverted")) > 1.0, "{name}");
            assert!(ours(&control, &format!("{name}: diverted")) == 0.0, "{name}");
        }
    }
}

/// The figures of a policy, of which `what` is one, at each load.
fn at_loads(report: &Value, what: &str, policy: &str) -> Vec<f64> {
    let rows = report["rows"].as_array().unwrap().iter();
    let end = format!(": {what}, {policy}");
    let is_it = |row: &&Value| row["label"].as_str().unwrap().ends_with(&end);
    rows.filter(is_it).map(|row| row["ours"].as_f64().unwrap()).collect()
}

/// What does not hold is the rate of a single queue, at one load.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn auto_is_no_worse_than_any_other_policy() {
    let report = known_failure("OCT-auto");
    let [rates, p99s] = ["rate", "99 %"].map(|what| {
        ["none", "rr", "ps", "auto", "single queue"].map(|policy| at_loads(&report, what, policy))
    });
    for load in 0..8 {
        let [others @ .., auto, _] = rates.each_ref().map(|rates| rates[load]);
        let best = others.into_iter().fold(0.0, f64::max);
        assert!(auto >= 0.97 * best, "load {load}: {auto} of {best}");
        let fast = (0..3).filter(|policy| others[*policy] >= 0.97 * best);
        let least = fast.map(|policy| p99s[policy][load]).fold(f64::INFINITY, f64::min);
        assert!(p99s[3][load] <= 1.05 * least, "load {load}: {} of {least}", p99s[3][load]);
    }
    let slow = (0..8).filter(|load| rates[3][*load] < 0.9 * rates[4][*load]).count();
    assert!(slow <= 2, "also the one where no core receives as much");
    let diverted = at_loads(&report, "diverted", "auto");
    assert!(diverted.iter().filter(|share| **share > 1.0).count() >= 3);
    assert!(*diverted.last().unwrap() <= 0.1, "the last load is balanced");
}
