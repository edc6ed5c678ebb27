//! Seeded schedules of the hand-off between reactors: the real links, bridges and routers, between
//! reactors in virtual time whose cores stall and whose messages arrive late. Hosts store, retrieve
//! and delete, abort commands, close their connections with commands in flight, and the policy of
//! the balancer changes. Queues move to other reactors between commands. Each command must be
//! executed once and answered once.

mod host;
mod ledger;
mod plan;
mod world;

use plan::Plan;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};
use world::Outcome;

/// The share of its seeds that a sweep runs whatever time they take, as one of so many.
const LEAST_SHARE: u64 = 5;

fn variable(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}"))
    })
}

/// Runs `KVASIR_SEEDS` (`count`) seeds from `KVASIR_SEED` (0) on, and returns what they did
/// together. A sweep ends early after `KVASIR_SWEEP_SECONDS`. A failing seed prints the command
/// that runs it again.
fn sweep(count: u64) -> (u64, Outcome) {
    let (first, count) = (variable("KVASIR_SEED", 0), variable("KVASIR_SEEDS", count));
    let bound = Duration::from_secs(variable("KVASIR_SWEEP_SECONDS", u64::MAX));
    let (start, mut ran, mut sum) = (Instant::now(), 0, Outcome::default());
    while ran < count && (ran < count.div_ceil(LEAST_SHARE) || start.elapsed() < bound) {
        let seed = first.wrapping_add(ran);
        let run = || world::run(Plan::draw(seed));
        sum += catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            eprintln!(
                "KVASIR_SEED={seed} KVASIR_SEEDS=1 cargo test --release -p kvasir-node --lib \
                 hand_off -- --nocapture"
            );
            resume_unwind(panic)
        });
        ran += 1;
    }
    let took = start.elapsed().as_secs_f64();
    println!("hand-off: {ran} of {count} seeds from {first} on, {took:.1} s: {sum:?}");
    (ran, sum)
}

#[test]
fn each_command_is_executed_once_and_answered_once() {
    let (ran, sum) = sweep(2_000);
    if ran >= 100 {
        let Outcome { commands, diverted, aborted, unanswered, far, moved, .. } = sum;
        assert!(commands > 50 * ran && far > ran, "{sum:?}");
        assert!(diverted > commands / 50, "{sum:?}");
        assert!(aborted > ran / 10 && unanswered > ran && moved > ran / 2, "{sum:?}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let digests = || (0..20).map(|seed| world::run(Plan::draw(seed)).digest).collect::<Vec<_>>();
    let first = digests();
    assert_eq!(digests(), first);
    assert!(first.iter().any(|digest| *digest != first[0]), "seeds make a difference");
}
