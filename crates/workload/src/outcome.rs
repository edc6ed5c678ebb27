use base::Nanos;
use base::checksum::Digest;
use clock::{Stage, Stages};
use controller::Completion;
use hdrhistogram::Histogram;
use spec::Status;
use std::collections::BTreeMap;

/// What kind of command an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Writes one pair.
    Store,
    /// Reads the value of one key.
    Retrieve,
    /// Removes one pair.
    Delete,
    /// Asks whether a key is there.
    Exist,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 4;

    /// All kinds, in the order of a report.
    pub const ALL: [Self; Self::COUNT] = [Self::Store, Self::Retrieve, Self::Delete, Self::Exist];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Retrieve => "retrieve",
            Self::Delete => "delete",
            Self::Exist => "exist",
        }
    }
}

/// How long the operations of one kind took that did what they were asked.
#[derive(Debug)]
pub struct Tally {
    latency: Histogram<u64>,
    sum: u128,
    max: Nanos,
    stages: Stages,
}

/// Quantiles count latencies above it as this much: a year, more than 2^32 operations, which no run
/// has, of several milliseconds each take one after the other.
const LATENCY_MAX: Nanos = Nanos::from_secs(365 * 24 * 3_600);

impl Tally {
    /// Of no operation yet.
    pub fn new() -> Self {
        let latency = Histogram::new_with_bounds(1, LATENCY_MAX.0, 3)
            .expect("1 ns to a year with 3 digits is a range that histograms have");
        Self { latency, sum: 0, max: Nanos::ZERO, stages: Stages::default() }
    }

    /// Adds an operation that took `latency`, spent in `stages`.
    #[inline]
    pub fn record(&mut self, latency: Nanos, stages: &Stages) {
        self.latency.saturating_record(latency.0);
        self.sum += u128::from(latency.0);
        self.max = self.max.max(latency);
        self.stages += stages;
    }

    /// How many operations there were.
    pub fn count(&self) -> u64 {
        self.latency.len()
    }

    /// Mean latency in nanoseconds, from the exact sum.
    pub fn mean_ns(&self) -> f64 {
        self.share(self.sum)
    }

    /// Mean time spent in `stage` in nanoseconds, from the exact sum.
    pub fn stage_mean_ns(&self, stage: Stage) -> f64 {
        self.share(self.stages[stage].0.into())
    }

    /// The latency that the share `quantile` of the operations did not exceed, to 3 digits.
    pub fn latency(&self, quantile: f64) -> Nanos {
        Nanos(self.latency.value_at_quantile(quantile)).min(self.max)
    }

    /// The longest latency.
    pub fn max(&self) -> Nanos {
        self.max
    }

    #[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
    fn share(&self, sum: u128) -> f64 {
        sum as f64 / self.count() as f64
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    started: Nanos,
    finished: Nanos,
    operations: u64,
    wrong_values: u64,
    /// By status code.
    failures: BTreeMap<u16, u64>,
    tallies: [Option<Box<Tally>>; Kind::COUNT],
    digest: Digest,
}

/// What there is to say about the value that a completed command is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The checksum of the value: the returned one for a retrieve, otherwise the one that was
    /// stored, removed or asked for, so that the digest tells which key that was.
    pub(crate) checksum: u64,
    pub(crate) is_right: bool,
}

impl Outcome {
    /// Nothing yet, of a run that starts now.
    pub(crate) fn new(started: Nanos) -> Self {
        Self {
            started,
            finished: started,
            operations: 0,
            wrong_values: 0,
            failures: BTreeMap::new(),
            tallies: [const { None }; Kind::COUNT],
            digest: Digest::default(),
        }
    }

    /// Adds an operation that was due at `due`. True when it did what it was asked.
    #[inline]
    pub(crate) fn record(
        &mut self,
        kind: Kind,
        due: Nanos,
        completion: &Completion,
        verdict: Verdict,
    ) -> bool {
        self.operations += 1;
        self.finished = self.finished.max(completion.completed);
        self.digest.add(&[
            completion.id,
            completion.opcode.0.into(),
            completion.status.0.into(),
            completion.completed.0,
            verdict.checksum,
        ]);
        if !completion.status.is_success() {
            *self.failures.entry(completion.status.0).or_default() += 1;
            return false;
        }
        if !verdict.is_right {
            self.wrong_values += 1;
            return false;
        }
        let mut stages = completion.stages;
        stages.add(Stage::Queue, completion.submitted - due);
        self.tallies[kind as usize]
            .get_or_insert_with(|| Box::new(Tally::new()))
            .record(completion.completed - due, &stages);
        true
    }

    /// Operations that completed, in whatever way.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Operations that did not do what they were asked: a failing status, a missing key, a wrong
    /// value.
    pub fn errors(&self) -> u64 {
        self.wrong_values + self.failures.values().sum::<u64>()
    }

    /// The same by the name of the status; those that succeeded with a wrong value as `Wrong
    /// Value`.
    pub fn errors_by_status(&self) -> BTreeMap<String, u64> {
        let named = self.failures.iter().map(|(&code, &count)| (Status(code).to_string(), count));
        let wrong = (self.wrong_values > 0).then(|| ("Wrong Value".to_owned(), self.wrong_values));
        named.chain(wrong).collect()
    }

    /// The failing status with the lowest code.
    pub(crate) fn failure(&self) -> Option<Status> {
        self.failures.keys().next().map(|&code| Status(code))
    }

    /// From the start of the run to its last completion, in the device's clock.
    pub fn elapsed(&self) -> Nanos {
        self.finished - self.started
    }

    /// Latency and stages of one kind, if any such operation did what it was asked.
    pub fn tally(&self, kind: Kind) -> Option<&Tally> {
        self.tallies[kind as usize].as_deref()
    }

    /// XXH3 of (id, opcode, status, virtual time, checksum of the value) of each completion in
    /// order, then of the device's counters.
    pub fn digest(&self, counters: &[u64]) -> u64 {
        let mut digest = self.digest.clone();
        digest.add(counters);
        digest.value()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::{Buf, Rng};
    use spec::Opcode;

    const RIGHT: Verdict = Verdict { checksum: 7, is_right: true };

    /// A retrieve that spends all its time in one stage.
    pub(crate) fn completion(id: u64, submitted: u64, latency: u64) -> Completion {
        let mut stages = Stages::default();
        stages.add(Stage::Array, Nanos(latency));
        Completion {
            id,
            opcode: Opcode::RETRIEVE,
            status: Status::SUCCESS,
            result: 0,
            data: Buf::phantom(0, 0),
            submitted: Nanos(submitted),
            completed: Nanos(submitted + latency),
            stages,
        }
    }

    #[test]
    fn means_are_exact_and_quantiles_right_to_three_digits() {
        let mut rng = Rng::new(3);
        let mut outcome = Outcome::new(Nanos(1_000));
        let mut latency = || rng.next_u64() >> (24 + rng.below(40));
        let mut latencies: Vec<u64> = (0..10_000).map(|_| latency()).collect();
        for (id, &latency) in latencies.iter().enumerate() {
            let completion = completion(id as u64, 1_000, latency);
            assert!(outcome.record(Kind::Retrieve, Nanos(1_000), &completion, RIGHT));
        }
        latencies.sort_unstable();
        let tally = outcome.tally(Kind::Retrieve).unwrap();
        let sum: u64 = latencies.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "sums here are below 2^53")]
        let mean = sum as f64 / 10_000.0;
        assert!((tally.mean_ns() - mean).abs() < mean * 1e-12);
        assert!((tally.stage_mean_ns(Stage::Array) - mean).abs() < mean * 1e-12);
        assert_eq!(tally.max().0, latencies[9_999]);
        assert_eq!(outcome.elapsed().0, latencies[9_999]);
        for (quantile, rank) in [(0.5, 5_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)] {
            let (exact, found) = (latencies[rank - 1], tally.latency(quantile).0);
            assert!(found.abs_diff(exact) <= exact / 1_000, "{quantile}: {found} for {exact}");
        }
        assert!(outcome.tally(Kind::Store).is_none());
    }

    #[test]
    fn a_latency_of_20_hours_is_right_to_three_digits() {
        let twenty_hours = 20 * 3_600 * 1_000_000_000;
        let mut outcome = Outcome::new(Nanos(0));
        for (id, latency) in [twenty_hours, twenty_hours, 2 * twenty_hours].iter().enumerate() {
            outcome.record(Kind::Retrieve, Nanos(0), &completion(id as u64, 0, *latency), RIGHT);
        }
        let found = outcome.tally(Kind::Retrieve).unwrap().latency(0.5).0;
        assert!(found.abs_diff(twenty_hours) <= twenty_hours / 1_000, "{found}");
    }

    #[test]
    fn latency_counts_from_when_the_operation_was_due() {
        let mut outcome = Outcome::new(Nanos(0));
        outcome.record(Kind::Retrieve, Nanos(300), &completion(0, 1_000, 50), RIGHT);
        let tally = outcome.tally(Kind::Retrieve).unwrap();
        assert_eq!(tally.max(), Nanos(750));
        let stages: Vec<f64> = Stage::ALL.map(|stage| tally.stage_mean_ns(stage)).to_vec();
        assert!((stages.iter().sum::<f64>() - 750.0).abs() < 1e-9, "the stages add up to it");
        assert!((tally.stage_mean_ns(Stage::Queue) - 700.0).abs() < 1e-9);
    }

    #[test]
    fn what_failed_is_counted_by_its_cause_and_has_no_latency() {
        let mut outcome = Outcome::new(Nanos(0));
        let failed = |status| Completion { status, ..completion(0, 0, 9) };
        let wrong = Verdict { is_right: false, ..RIGHT };
        assert!(!outcome.record(Kind::Store, Nanos(0), &failed(Status::CAPACITY_EXCEEDED), RIGHT));
        for _ in 0..2 {
            let missing = failed(Status::KEY_DOES_NOT_EXIST);
            assert!(!outcome.record(Kind::Retrieve, Nanos(0), &missing, wrong));
        }
        assert!(!outcome.record(Kind::Retrieve, Nanos(0), &completion(0, 0, 9), wrong));
        assert_eq!((outcome.operations(), outcome.errors()), (4, 4));
        let by_status: Vec<(String, u64)> = outcome.errors_by_status().into_iter().collect();
        let expected = [("Capacity Exceeded", 1), ("KV Key Does Not Exist", 2), ("Wrong Value", 1)];
        assert_eq!(by_status, expected.map(|(name, count)| (name.to_owned(), count)));
        assert!(outcome.tally(Kind::Retrieve).is_none());
    }

    #[test]
    fn the_digest_is_xxh3_of_the_words_in_order() {
        let mut outcome = Outcome::new(Nanos(0));
        outcome.record(Kind::Retrieve, Nanos(5), &completion(3, 5, 20), RIGHT);
        let missing = Completion { status: Status::KEY_DOES_NOT_EXIST, ..completion(2, 6, 30) };
        outcome.record(Kind::Retrieve, Nanos(6), &missing, Verdict { checksum: 8, ..RIGHT });
        let words: [u64; 12] = [3, 0x02, 0, 25, 7, 2, 0x02, 0x87, 36, 8, 100, 200];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(outcome.digest(&[100, 200]), base::checksum::hash64(&bytes));
    }
}
