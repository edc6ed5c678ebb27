use crate::chooser::Chooser;
use crate::history::{Begun, History};
use crate::keys::Keys;
use crate::outcome::{Kind, Outcome, Verdict};
use crate::permutation::Permutation;
use crate::plan::{Operation, Plan};
use crate::value::{ValueGenerator, checksum_of};
use base::{Buf, Nanos, Rng, mix};
use controller::{Completion, Submission};
use spec::{Command, StoreOptions};
use std::collections::VecDeque;

/// A plan being carried out: makes the submissions, judges the completions.
#[derive(Debug)]
pub(crate) struct Session {
    plan: Plan,
    keys: Keys,
    values: ValueGenerator,
    order: Permutation,
    chooser: Chooser,
    /// Draws which operations of a mixture are retrieves.
    rng: Rng,
    /// Only if what is stored during the run is also retrieved.
    history: Option<History>,
    /// By command id, from that of the oldest operation that has not ended on.
    in_flight: VecDeque<InFlight>,
    first_id: u64,
    submitted: u64,
    outstanding: u64,
    /// How many operations are submitted in all; fewer once one failed that stops the run.
    limit: u64,
    stops_on_error: bool,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    due: Nanos,
    key: u32,
    /// What a store writes; the oldest that a retrieve may return; what the others find.
    version: u32,
    /// Names a store to the history.
    store: u32,
    kind: Kind,
    has_ended: bool,
}

/// What the seed is used for; each use has its own stream of random numbers.
#[derive(Clone, Copy)]
enum Stream {
    Fill = 1,
    Delete,
    Choose,
    Mix,
}

impl Session {
    /// A run of `plan` that starts at `now`, on a queue whose next command id is not known yet.
    pub(crate) fn new(plan: Plan, now: Nanos) -> Self {
        plan.validate().expect("plans are validated before they are run");
        let seed = |stream: Stream| mix(plan.seed ^ mix(stream as u64));
        let order = if plan.operation == Operation::Delete { Stream::Delete } else { Stream::Fill };
        Self {
            keys: Keys::new(plan.key_bytes, plan.keys).expect("part of a plan's validation"),
            values: ValueGenerator::new(plan.seed, plan.payload),
            order: Permutation::new(plan.keys, seed(order)),
            chooser: Chooser::new(plan.distribution, plan.keys, seed(Stream::Choose)),
            rng: Rng::new(seed(Stream::Mix)),
            history: matches!(plan.operation, Operation::Mixed { .. })
                .then(|| History::new(plan.keys)),
            in_flight: VecDeque::new(),
            first_id: 0,
            submitted: 0,
            outstanding: 0,
            limit: plan.operations,
            stops_on_error: false,
            outcome: Outcome::new(now),
            plan,
        }
    }

    /// As `new`, storing the keys of `plan`, up to the first error.
    pub(crate) fn filling(plan: &Plan, now: Nanos) -> Self {
        Self { stops_on_error: true, ..Self::new(plan.filling(), now) }
    }

    pub(crate) fn has_more(&self) -> bool {
        self.submitted < self.limit
    }

    /// How many operations are submitted in all.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn completed(&self) -> u64 {
        self.submitted - self.outstanding
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        assert!(!self.has_more() && self.outstanding == 0, "the run is over");
        self.outcome
    }

    /// Hands the next operation, due at `due`, to `submit`, which returns its command id.
    #[inline]
    pub(crate) fn submit(&mut self, due: Nanos, submit: impl FnOnce(Submission) -> u64) {
        assert!(self.has_more(), "a run submits as many operations as it has");
        let (kind, key) = self.choose();
        let mut operation = InFlight { due, key, version: 0, store: 0, kind, has_ended: false };
        if let Some(history) = &mut self.history {
            if kind == Kind::Store {
                let Begun { store, version } = history.begin(key);
                (operation.store, operation.version) = (store, version);
            } else {
                operation.version = history.oldest(key);
            }
        } else if kind == Kind::Store && self.submitted >= self.plan.keys {
            // Nobody retrieves them, so versions need only differ. Counting them for each key would
            // cost a cache miss.
            operation.version = u32::try_from(self.submitted).expect("below 2^32 in a run");
        }
        let id = submit(self.submission(&operation));
        if self.submitted == 0 {
            self.first_id = id;
        }
        let expected = self.first_id + self.in_flight.len() as u64;
        assert_eq!(id, expected, "nobody else submits to the queue of a run");
        self.in_flight.push_back(operation);
        self.submitted += 1;
        self.outstanding += 1;
    }

    #[inline]
    fn choose(&mut self) -> (Kind, u32) {
        let (kind, key) = match self.plan.operation {
            Operation::Store if self.submitted < self.plan.keys => {
                (Kind::Store, self.order.at(self.submitted))
            }
            Operation::Store => (Kind::Store, self.chooser.draw()),
            Operation::Retrieve => (Kind::Retrieve, self.chooser.draw()),
            Operation::Mixed { read_percent } => {
                let is_read = self.rng.below(100) < u64::from(read_percent);
                (if is_read { Kind::Retrieve } else { Kind::Store }, self.chooser.draw())
            }
            Operation::Delete => (Kind::Delete, self.order.at(self.submitted)),
            Operation::Exist => (Kind::Exist, self.chooser.draw()),
        };
        (kind, u32::try_from(key).expect("a plan has fewer than 2^32 keys"))
    }

    #[inline]
    fn submission(&self, operation: &InFlight) -> Submission {
        let key = self.keys.key(operation.key.into());
        let (nsid, len) = (self.plan.nsid, self.plan.value_bytes);
        let mut data = Buf::phantom(0, 0);
        let command = match operation.kind {
            Kind::Store => {
                data = self.values.value(operation.key.into(), operation.version, len);
                Command::store(nsid, key.as_bytes(), len, StoreOptions::NONE)
            }
            Kind::Retrieve => Command::retrieve(nsid, key.as_bytes(), len),
            Kind::Delete => Command::delete(nsid, key.as_bytes()),
            Kind::Exist => Command::exist(nsid, key.as_bytes()),
        };
        Submission::with_data(command, &key, data)
    }

    /// Takes a completion into account.
    #[inline]
    pub(crate) fn complete(&mut self, completion: &Completion) {
        let operation = self.end(completion.id);
        let verdict = self.judge(&operation, completion);
        if let Some(history) = &mut self.history
            && operation.kind == Kind::Store
        {
            history.end(operation.store, completion.status.is_success());
        }
        let is_fine = self.outcome.record(operation.kind, operation.due, completion, verdict);
        if self.stops_on_error && !is_fine {
            self.limit = self.submitted;
        }
    }

    #[inline]
    fn end(&mut self, id: u64) -> InFlight {
        let place = id.checked_sub(self.first_id).and_then(|place| usize::try_from(place).ok());
        let operation = place
            .and_then(|place| self.in_flight.get_mut(place))
            .filter(|operation| !operation.has_ended)
            .expect("a completion is of an operation that is outstanding");
        operation.has_ended = true;
        let operation = *operation;
        self.outstanding -= 1;
        while self.in_flight.front().is_some_and(|front| front.has_ended) {
            self.in_flight.pop_front();
            self.first_id += 1;
        }
        operation
    }

    #[inline]
    fn judge(&self, operation: &InFlight, completion: &Completion) -> Verdict {
        let len = self.plan.value_bytes;
        if operation.kind != Kind::Retrieve {
            let checksum = self.values.tag(operation.key.into(), operation.version, len);
            return Verdict { checksum, is_right: true };
        }
        match checksum_of(&completion.data) {
            Ok(checksum) => Verdict {
                checksum,
                is_right: completion.data.len() == len
                    && completion.result == len
                    && self.may_be(operation, checksum),
            },
            Err(_) => Verdict { checksum: completion.data.checksum(), is_right: false },
        }
    }

    /// True when `tag` is that of a version that the retrieve may return.
    #[inline]
    fn may_be(&self, retrieve: &InFlight, tag: u64) -> bool {
        let len = self.plan.value_bytes;
        let versions = match &self.history {
            Some(history) => history.versions(retrieve.key, retrieve.version),
            None => 0..=0,
        };
        versions.rev().any(|version| self.values.tag(retrieve.key.into(), version, len) == tag)
    }
}

#[cfg(test)]
mod tests;
