use crate::numbering::CommandNumber;
use base::Nanos;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Times that are told apart: each is up to twice as long as the one before. The last one has no
/// end, but it is called by the one that it would have, of a second.
const BUCKETS: usize = 21;

/// The end of the first one in nanoseconds. Redis's histograms have these ends: 8 more than 2^10,
/// for they count in units of 8 there.
const FIRST_NS: u64 = 1_032;

/// What was done of one command.
#[derive(Debug, Default)]
struct Tally {
    /// By how long they took.
    calls: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
}

/// The same, as it was at an instant.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) calls: u64,
    pub(crate) micros: u64,
    /// Done, but with an error.
    pub(crate) failed: u64,
    /// Not done: wrong arguments, or the user has no right.
    pub(crate) rejected: u64,
    /// How many took so many microseconds or less, for each bucket that has some.
    pub(crate) within: Vec<(u64, u64)>,
}

/// What was done of each command.
#[derive(Debug)]
pub(crate) struct Tallies(Box<[Tally]>);

/// Nanoseconds of the longest time in a bucket.
const fn end_ns(bucket: usize) -> u64 {
    (FIRST_NS << bucket) - 1
}

impl Tallies {
    pub(crate) fn new() -> Self {
        Self((0..CommandNumber::count()).map(|_| Tally::default()).collect())
    }

    /// Counts one that was done.
    #[inline]
    pub(crate) fn count(&self, number: CommandNumber, took: Nanos, is_failed: bool) {
        self.count_all(number, took, 1);
        if is_failed {
            self.count_failed(number, 1);
        }
    }

    /// Counts several that were done and took `took` each.
    pub(crate) fn count_all(&self, number: CommandNumber, took: Nanos, times: u64) {
        if times > 0 {
            let tally = &self.0[number.place()];
            let doublings = (took.0 / FIRST_NS).checked_ilog2().map_or(0, |log| log as usize + 1);
            tally.calls[doublings.min(BUCKETS - 1)].fetch_add(times, Relaxed);
            tally.nanos.fetch_add(took.0 * times, Relaxed);
        }
    }

    /// Counts those that were done with an error.
    pub(crate) fn count_failed(&self, number: CommandNumber, times: usize) {
        if times > 0 {
            self.0[number.place()].failed.fetch_add(times as u64, Relaxed);
        }
    }

    /// One was not done.
    pub(crate) fn count_rejected(&self, number: CommandNumber) {
        self.0[number.place()].rejected.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self, number: CommandNumber) -> Told {
        let tally = &self.0[number.place()];
        let (mut calls, mut within) = (0, Vec::new());
        for (at, count) in tally.calls.iter().enumerate() {
            let count = count.load(Relaxed);
            calls += count;
            if count > 0 {
                within.push((end_ns(at) / 1_000, calls));
            }
        }
        Told {
            calls,
            micros: tally.nanos.load(Relaxed) / 1_000,
            failed: tally.failed.load(Relaxed),
            rejected: tally.rejected.load(Relaxed),
            within,
        }
    }

    /// Counts anew.
    pub(crate) fn reset(&self) {
        for tally in &self.0 {
            let counters = [&tally.nanos, &tally.failed, &tally.rejected];
            for counter in tally.calls.iter().chain(counters) {
                counter.store(0, Relaxed);
            }
        }
    }
}

impl Told {
    /// Microseconds within which so many of a thousand calls were done: no more than that.
    pub(crate) fn within(&self, per_mille: u64) -> u64 {
        let rank = (self.calls * per_mille).div_ceil(1_000).max(1);
        let found = self.within.iter().find(|(_, calls)| *calls >= rank);
        found.map_or(0, |(micros, _)| *micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What redis-server 7.0 calls its buckets.
    const ENDS: [u64; 21] = [
        1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1_056, 2_113, 4_227, 8_454, 16_908, 33_816, 67_633,
        135_266, 270_532, 541_065, 1_082_130,
    ];

    #[test]
    fn buckets_are_those_of_redis() {
        let get = CommandNumber::named("get");
        for (at, end) in ENDS.into_iter().enumerate() {
            let tallies = Tallies::new();
            let longest = Nanos(end_ns(at));
            tallies.count(get, longest, false);
            assert_eq!(tallies.get(get).within, [(end, 1)]);
            tallies.count(get, Nanos(longest.0 + 1), false);
            let next = ENDS.get(at + 1);
            let both = next.map_or(vec![(end, 2)], |next| vec![(end, 1), (*next, 2)]);
            assert_eq!(tallies.get(get).within, both);
        }
    }

    #[test]
    fn so_many_of_a_thousand_are_within_the_end_of_their_bucket() {
        let (tallies, get) = (Tallies::new(), CommandNumber::named("get"));
        for took in [1_000, 1_000, 1_000, 3_000_000] {
            tallies.count(get, Nanos(took), took > 1_000);
        }
        let told = tallies.get(get);
        assert_eq!((told.calls, told.micros, told.failed), (4, 3_003, 1));
        assert_eq!([500, 750, 751, 999].map(|rank| told.within(rank)), [1, 1, 4_227, 4_227]);
        tallies.reset();
        assert_eq!(tallies.get(get).calls, 0);
    }
}
