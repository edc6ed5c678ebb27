use crate::kind::Kind;
use crate::mismatch::Mismatch;
use crate::tally::Tally;
use crate::timeline::Timeline;
use base::Nanos;
use base::checksum::Digest;
use clock::Stages;
use controller::Completion;
use serde::{Deserialize, Serialize};
use spec::{Opcode, Status};
use std::collections::BTreeMap;

/// The result of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    started: Nanos,
    finished: Nanos,
    operations: u64,
    retrieve_commands: u64,
    wrong_values: u64,
    /// `None` if every key that the run asks for exists.
    misses: Option<u64>,
    /// By status code.
    failures: BTreeMap<u16, u64>,
    tallies: [Option<Box<Tally>>; Kind::COUNT],
    timeline: Timeline,
    /// A pause begins another: see [`Self::pause_digest`].
    #[serde(skip)]
    digest: Digest,
    #[serde(skip)]
    early_end: Option<EarlyEnd>,
    /// That before a pause is not kept.
    #[serde(skip)]
    mismatch: Option<Mismatch>,
}

/// Why a run ended before its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyEnd {
    /// No key was left to delete, or to store as a new one.
    NoKeyLeft,
    /// The run was for a time, but no time passes on the device.
    NoTimePassed,
}

impl EarlyEnd {
    /// Returns a short text for reports.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoKeyLeft => "no key is left",
            Self::NoTimePassed => "no time passes",
        }
    }
}

/// The judgement of a completed command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// The checksum of the value. For a retrieve or a list: of the returned one; otherwise of the
    /// stored, deleted or requested one, so that the digest shows the key.
    pub(crate) checksum: u64,
    pub(crate) finding: Finding,
}

/// The result of a command, or of an operation of several commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Right,
    /// The key is missing, and may be.
    Miss,
    /// It succeeded with a wrong value.
    Wrong,
    Failed(Status),
}

impl Finding {
    /// True when the command did its work.
    #[inline]
    pub(crate) fn is_fine(self) -> bool {
        matches!(self, Self::Right | Self::Miss)
    }
}

/// An operation that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) kind: Kind,
    pub(crate) due: Nanos,
    /// When the host saw its last completion.
    pub(crate) seen: Nanos,
    /// The stages of its latency.
    pub(crate) stages: &'a Stages,
    pub(crate) finding: Finding,
}

impl Outcome {
    /// Returns an empty outcome of a run that starts now.
    pub(crate) fn new(started: Nanos) -> Self {
        Self {
            started,
            finished: started,
            operations: 0,
            retrieve_commands: 0,
            wrong_values: 0,
            misses: None,
            failures: BTreeMap::new(),
            tallies: [const { None }; Kind::COUNT],
            timeline: Timeline::new(),
            digest: Digest::default(),
            early_end: None,
            mismatch: None,
        }
    }

    /// Counts misses, for a run in which keys may be missing.
    pub(crate) fn with_misses(self) -> Self {
        Self { misses: Some(0), ..self }
    }

    /// Sets why the run ended before its plan.
    pub(crate) fn with_early_end(self, early_end: Option<EarlyEnd>) -> Self {
        Self { early_end, ..self }
    }

    /// Adds a completed command to the digest.
    #[inline]
    pub(crate) fn add_command(&mut self, completion: &Completion, checksum: u64) {
        self.retrieve_commands += u64::from(completion.opcode == Opcode::RETRIEVE);
        self.digest.add(&[
            completion.id,
            completion.opcode.0.into(),
            completion.status.0.into(),
            completion.completed.0,
            checksum,
        ]);
    }

    /// Ends the digest and returns it. The completions after the pause go to [another
    /// digest](Self::resume_digest), which begins with it.
    pub(crate) fn pause_digest(&mut self) -> u64 {
        std::mem::take(&mut self.digest).value()
    }

    /// Begins the digest after a pause with the word that [`Self::pause_digest`] returned.
    pub(crate) fn resume_digest(&mut self, before: u64) {
        self.digest = Digest::default();
        self.digest.add(&[before]);
    }

    /// Adds an operation.
    #[inline]
    pub(crate) fn add_operation(&mut self, ended: &Ended<'_>) {
        self.operations += 1;
        self.finished = self.finished.max(ended.seen);
        match ended.finding {
            Finding::Right => (),
            Finding::Miss => *self.misses.get_or_insert(0) += 1,
            Finding::Wrong => {
                self.wrong_values += 1;
                return;
            }
            Finding::Failed(status) => {
                *self.failures.entry(status.0).or_default() += 1;
                return;
            }
        }
        let latency = ended.seen - ended.due;
        assert_eq!(ended.stages.total(), latency, "stages add up to the latency");
        self.timeline.add(ended.seen - self.started);
        self.tallies[ended.kind as usize]
            .get_or_insert_with(|| Box::new(Tally::new()))
            .record(latency, ended.stages);
    }

    /// Keeps what `mismatch` returns, if it is the first.
    pub(crate) fn add_mismatch(&mut self, mismatch: impl FnOnce() -> Mismatch) {
        self.mismatch.get_or_insert_with(mismatch);
    }

    /// The first operation that found other data than the run stored, if one did.
    pub fn mismatch(&self) -> Option<&Mismatch> {
        self.mismatch.as_ref()
    }

    /// Retrieve commands that completed, in whatever way, those of scans and read-modify-writes
    /// too.
    pub fn retrieve_commands(&self) -> u64 {
        self.retrieve_commands
    }

    /// Returns why the run ended before its plan, if it did.
    pub fn early_end(&self) -> Option<EarlyEnd> {
        self.early_end
    }

    /// Returns the number of completed operations, failed ones included.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Returns the number of failed operations: a failing status, a missing key that existed, a
    /// wrong value.
    pub fn errors(&self) -> u64 {
        self.wrong_values + self.failures.values().sum::<u64>()
    }

    /// Returns the failed operations by the name of the status. Successful ones with a wrong value
    /// count as `Wrong Value`.
    pub fn errors_by_status(&self) -> BTreeMap<String, u64> {
        let named = self.failures.iter().map(|(&code, &count)| (Status(code).to_string(), count));
        let wrong = (self.wrong_values > 0).then(|| ("Wrong Value".to_owned(), self.wrong_values));
        named.chain(wrong).collect()
    }

    /// Returns the number of operations whose key was rightly missing; `None` if every key that the
    /// run asks for exists.
    pub fn misses(&self) -> Option<u64> {
        self.misses
    }

    /// Returns the failing status with the lowest code.
    pub(crate) fn failure(&self) -> Option<Status> {
        self.failures.keys().next().map(|&code| Status(code))
    }

    /// Returns the time from the start of the run to its last completion, as the host saw it.
    pub fn elapsed(&self) -> Nanos {
        self.finished - self.started
    }

    /// Returns latency and stages of one kind, if any such operation succeeded.
    pub fn tally(&self, kind: Kind) -> Option<&Tally> {
        self.tallies[kind as usize].as_deref()
    }

    /// Returns when the successful operations completed.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns the XXH3 of (id, opcode, status, virtual time, checksum of the value) of each
    /// completed command in order, then of the device's counters. The commands before a pause count
    /// as one word: their own digest.
    pub fn digest(&self, counters: &[u64]) -> u64 {
        let mut digest = self.digest.clone();
        digest.add(counters);
        digest.value()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::Buf;
    use clock::Stage;
    use spec::Opcode;

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

    /// Adds an operation of one command that ended as `finding`, due and seen as the device has it.
    pub(crate) fn add(outcome: &mut Outcome, kind: Kind, of: &Completion, finding: Finding) {
        outcome.add_command(of, 7);
        let (due, seen, stages) = (of.submitted, of.completed, &of.stages);
        outcome.add_operation(&Ended { kind, due, seen, stages, finding });
    }

    #[test]
    fn a_failure_is_counted_by_its_cause_and_has_no_latency() {
        let mut outcome = Outcome::new(Nanos(0));
        let full = Finding::Failed(Status::CAPACITY_EXCEEDED);
        let missing = Finding::Failed(Status::KEY_DOES_NOT_EXIST);
        for (kind, finding) in [
            (Kind::Store, full),
            (Kind::Retrieve, missing),
            (Kind::Retrieve, missing),
            (Kind::Retrieve, Finding::Wrong),
        ] {
            add(&mut outcome, kind, &completion(0, 0, 9), finding);
        }
        assert_eq!((outcome.operations(), outcome.errors()), (4, 4));
        let by_status: Vec<(String, u64)> = outcome.errors_by_status().into_iter().collect();
        let expected = [("Capacity Exceeded", 1), ("KV Key Does Not Exist", 2), ("Wrong Value", 1)];
        assert_eq!(by_status, expected.map(|(name, count)| (name.to_owned(), count)));
        assert!(outcome.tally(Kind::Retrieve).is_none());
        assert_eq!(outcome.timeline().counts(), [0]);
        assert_eq!(outcome.elapsed(), Nanos(9));
    }

    #[test]
    fn a_miss_is_counted_and_is_no_error() {
        let mut outcome = Outcome::new(Nanos(0)).with_misses();
        assert_eq!(outcome.misses(), Some(0));
        for finding in [Finding::Right, Finding::Miss, Finding::Miss] {
            add(&mut outcome, Kind::Retrieve, &completion(0, 0, 9), finding);
        }
        assert_eq!((outcome.operations(), outcome.errors(), outcome.misses()), (3, 0, Some(2)));
        assert_eq!(outcome.tally(Kind::Retrieve).map(Tally::count), Some(3));
        assert_eq!(Outcome::new(Nanos(0)).misses(), None);
    }

    #[test]
    fn the_timeline_starts_with_the_run() {
        let mut outcome = Outcome::new(Nanos(5_000));
        for (id, latency) in [(0, 100), (1, 999), (2, 1_000), (3, 3_500)] {
            add(&mut outcome, Kind::Retrieve, &completion(id, 5_000, latency), Finding::Right);
        }
        assert_eq!(outcome.timeline().width(), Nanos(1_000));
        assert_eq!(outcome.timeline().counts(), [2, 1, 0, 1]);
    }

    #[test]
    #[should_panic(expected = "stages add up to the latency")]
    fn stages_that_do_not_add_up_to_the_latency_panic() {
        let mut outcome = Outcome::new(Nanos(0));
        let completion = Completion { submitted: Nanos(8), ..completion(0, 9, 50) };
        add(&mut outcome, Kind::Retrieve, &completion, Finding::Right);
    }

    #[test]
    fn the_digest_is_xxh3_of_the_words_in_order() {
        let mut outcome = Outcome::new(Nanos(0));
        outcome.add_command(&completion(3, 5, 20), 7);
        let missing = Completion { status: Status::KEY_DOES_NOT_EXIST, ..completion(2, 6, 30) };
        outcome.add_command(&missing, 8);
        let words: [u64; 12] = [3, 0x02, 0, 25, 7, 2, 0x02, 0x87, 36, 8, 100, 200];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(outcome.digest(&[100, 200]), base::checksum::hash64(&bytes));
    }
}
