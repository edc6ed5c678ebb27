use base::human_bytes;
use std::fmt;
use std::ops::AddAssign;

/// What a run went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations whose answers were checked.
    pub operations: u64,
    /// Extents that were cleaned.
    pub victims: u64,
    /// Times that the device was opened again from what was left of it.
    pub reopenings: u64,
    /// Bytes of keys and values that were stored.
    pub stored_bytes: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.victims += other.victims;
        self.reopenings += other.reopenings;
        self.stored_bytes += other.stored_bytes;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, victims, reopenings, stored_bytes } = *self;
        let stored = human_bytes(stored_bytes);
        write!(f, "{operations} operations, {stored} stored, ")?;
        write!(f, "{victims} extents cleaned, {reopenings} reopenings")
    }
}

/// Seeds after which a long sweep says how far it is.
const PROGRESS_SEEDS: u64 = 1_000;

/// Runs `run` on each seed from `KVASIR_SEED` (0) on, `KVASIR_SEEDS` (`count`) in all, and returns
/// what they went through together.
///
/// A seed that panics is followed by the command that runs it again: the one of the integration
/// test called `test`.
pub fn sweep(test: &str, count: u64, mut run: impl FnMut(u64) -> Tally) -> Tally {
    let first = from_environment("KVASIR_SEED", 0);
    let count = from_environment("KVASIR_SEEDS", count);
    let mut sum = Tally::default();
    for done in 0..count {
        let seed = first.wrapping_add(done);
        let rerun = Rerun { test, seed };
        sum += run(seed);
        drop(rerun);
        if (done + 1).is_multiple_of(PROGRESS_SEEDS) && done + 1 < count {
            println!("{test}: {} of {count} seeds, {sum}", done + 1);
        }
    }
    println!("{test}: {count} seeds from {first} on, {sum}");
    sum
}

fn from_environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a whole number below 2^64, not {text:?}")),
        Err(_) => default,
    }
}

/// Tells how to run a seed again if it panics while this lives.
struct Rerun<'a> {
    test: &'a str,
    seed: u64,
}

impl Drop for Rerun<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { test, seed } = self;
            // The test harness gives the thread of a test the test's name.
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            eprintln!(
                "KVASIR_SEED={seed} KVASIR_SEEDS=1 cargo test -p kvasir-sim --test {test} {name} \
                 -- --nocapture"
            );
        }
    }
}
