//! A test that runs on many seeds. Tests of `node` include this file.

use std::fmt::Display;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Seeds after which a long sweep says how far it is.
const PROGRESS_SEEDS: u64 = 1_000;

/// The share of its seeds, as one of so many, that a sweep runs whatever time they take.
const LEAST_SHARE: u64 = 5;

/// See the module's documentation.
pub(crate) struct Sweep<'a> {
    pub(crate) name: &'a str,
    /// The arguments by which cargo finds the program of the test.
    pub(crate) program: &'a str,
    /// The number of seeds, if `KVASIR_SEEDS` names none.
    pub(crate) count: u64,
    /// How many sweeps share the time that a sweep may take.
    pub(crate) sharing: u32,
}

impl Sweep<'_> {
    /// Runs `run` on each seed from `KVASIR_SEED` (0) on. Returns how many it ran, and what they
    /// went through together. After the seconds of `KVASIR_SWEEP_SECONDS`, or its share of them, it
    /// ends before its last seed, and prints how many it ran.
    ///
    /// A seed that panics is followed by the command that runs it again.
    pub(crate) fn run<T>(&self, mut run: impl FnMut(u64) -> T) -> (u64, T)
    where
        T: Default + AddAssign + Display,
    {
        let Self { name, program, sharing, .. } = *self;
        let first = from_environment("KVASIR_SEED", 0);
        let count = from_environment("KVASIR_SEEDS", self.count);
        let seconds = from_environment("KVASIR_SWEEP_SECONDS", u64::MAX);
        let budget = Duration::from_secs(seconds) / sharing;
        let (start, mut ran, mut sum) = (Instant::now(), 0, T::default());
        while ran < count && (ran < count.div_ceil(LEAST_SHARE) || start.elapsed() < budget) {
            let seed = first.wrapping_add(ran);
            sum += catch_unwind(AssertUnwindSafe(|| run(seed))).unwrap_or_else(|panic| {
                eprintln!("{}", rerun(program, seed));
                resume_unwind(panic)
            });
            ran += 1;
            if ran.is_multiple_of(PROGRESS_SEEDS) && ran < count {
                println!("{name}: {ran} of {count} seeds, {sum}");
            }
        }
        let took = start.elapsed().as_secs_f64();
        println!("{name}: {ran} of {count} seeds from {first} on, {took:.1} s, {sum}");
        (ran, sum)
    }
}

/// Returns the command that runs a seed of the current test again.
pub(crate) fn rerun(program: &str, seed: u64) -> String {
    // The test harness gives the thread of a test the test's name.
    let thread = std::thread::current();
    let test = thread.name().unwrap_or_default();
    format!("KVASIR_SEED={seed} KVASIR_SEEDS=1 cargo test {program} {test} -- --nocapture")
}

/// Returns the number that an environment variable has, or `default`.
///
/// # Panics
/// If it has something else.
pub(crate) fn from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a whole number below 2^64, not {text:?}")),
        Err(_) => default,
    }
}
