use super::covered::Covered;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// The share of its seeds that a sweep runs whatever time they take, as one of so many.
const LEAST_SHARE: u64 = 5;

/// Runs `run` on `KVASIR_SEEDS` (`count`) seeds from `KVASIR_SEED` (0) on, and prints what they
/// covered together. A sweep ends early after `KVASIR_SWEEP_SECONDS` divided by two, because two
/// sweeps share the bound. A failing seed prints the command that runs it again.
pub(crate) fn sweep(name: &str, count: u64, mut run: impl FnMut(u64) -> Covered) -> Covered {
    let (first, count) = (variable("KVASIR_SEED", 0), variable("KVASIR_SEEDS", count));
    let bound = Duration::from_secs(variable("KVASIR_SWEEP_SECONDS", u64::MAX)) / 2;
    let (start, mut ran, mut covered) = (Instant::now(), 0, Covered::default());
    while ran < count && (ran < count.div_ceil(LEAST_SHARE) || start.elapsed() < bound) {
        let seed = first.wrapping_add(ran);
        covered += catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|panic| {
            eprintln!("{}", rerun(seed));
            resume_unwind(panic)
        });
        ran += 1;
    }
    let took = start.elapsed().as_secs_f64();
    println!("{name}: {ran} of {count} seeds from {first} on, {took:.1} s: {covered}");
    covered
}

/// Returns the command that runs a seed again. The test harness names the thread after the test.
fn rerun(seed: u64) -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    format!(
        "KVASIR_SEED={seed} KVASIR_SEEDS=1 cargo test -p kvasir-node --test integration {test} -- \
         --nocapture"
    )
}

fn variable(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}"))
    })
}
