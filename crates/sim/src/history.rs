use base::Nanos;
use std::collections::HashSet;
use std::fmt;

/// A value by its number: equal for equal content. The owner of the history assigns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// The version of a value that the flash has lost.
    pub const LOST: Self = Self(u32::MAX);
}

/// An instant as a client sees it. The order tells apart what happens at one instant of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// The instant of the clock.
    pub at: Nanos,
    /// The place among the moments of a history, from its first.
    pub order: u64,
}

impl Moment {
    /// After every other moment.
    pub const NEVER: Self = Self { at: Nanos(u64::MAX), order: u64::MAX };

    /// No other moment is before it.
    pub const FIRST: Self = Self { at: Nanos::ZERO, order: 0 };
}

/// What a store asks of the key before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Nothing.
    None,
    /// That it is there.
    MustExist,
    /// That it is not there.
    MustNotExist,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Store this version.
    Store(Version, Condition),
    /// Return the value.
    Retrieve,
    /// Say whether there is a value.
    Exist,
    /// Remove the value.
    Delete,
    /// Remove the value, if there is one.
    Clear,
    /// Not by a client: a fault of the flash takes what is known of the key, which may be that it
    /// was deleted.
    Lose,
    /// Not by a client: what was this, or absent, is so again. Of those that begin at one moment
    /// at most one happens.
    Revert(Option<Version>),
}

impl Call {
    /// What the key is after it, if it changes it.
    const fn leaves(self) -> Option<Version> {
        match self {
            Self::Store(version, _) => Some(version),
            Self::Lose => Some(Version::LOST),
            Self::Revert(state) => state,
            Self::Retrieve | Self::Exist | Self::Delete | Self::Clear => None,
        }
    }
}

/// What the device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Stored, deleted, or there.
    Done,
    /// This value.
    Value(Version),
    /// The key is not there, and nothing was changed.
    NotFound,
    /// The key is there, and nothing was changed.
    Exists,
    /// There is no space, and nothing was changed.
    Full,
    /// The flash has lost the value, and nothing was changed.
    Lost,
    /// It could not be written, and nothing was changed; but the next start may find it.
    Unwritten,
}

/// A call with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What was asked.
    pub call: Call,
    /// When it was asked.
    pub invoked: Moment,
    /// When it was answered, or cut off; [`Moment::NEVER`] while it is open.
    pub returned: Moment,
    /// The answer. `None` for an operation without one: it took effect before `returned`, or never.
    pub outcome: Option<Outcome>,
}

/// All operations on one key, in the order in which they were invoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    operations: Vec<Operation>,
    moments: u64,
}

/// An operation of a history that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open(usize);

impl History {
    /// Notes that `call` is made now, at `at`.
    pub fn invoke(&mut self, call: Call, at: Nanos) -> Open {
        let invoked = self.moment(at);
        self.operations.push(Operation { call, invoked, returned: Moment::NEVER, outcome: None });
        Open(self.operations.len() - 1)
    }

    /// Notes that an operation is answered now, at `at`.
    pub fn respond(&mut self, operation: Open, outcome: Outcome, at: Nanos) {
        let moment = self.moment(at);
        let operation = &mut self.operations[operation.0];
        assert!(operation.returned == Moment::NEVER, "an operation is answered once");
        operation.returned = moment;
        operation.outcome = Some(outcome);
    }

    /// Notes that a delete is answered now, at `at`, by someone who does not say whether there was
    /// anything.
    pub fn respond_either(&mut self, operation: Open, at: Nanos) {
        assert_eq!(self.operations[operation.0].call, Call::Delete, "only deletes end so");
        self.operations[operation.0].call = Call::Clear;
        self.respond(operation, Outcome::Done, at);
    }

    /// Notes that all open operations will never be answered: what they did they did before `at`.
    pub fn cut_off(&mut self, at: Nanos) {
        let moment = self.moment(at);
        let open = self.operations.iter_mut().filter(|op| op.returned == Moment::NEVER);
        open.for_each(|operation| operation.returned = moment);
    }

    /// Notes that memory which was not saved lost its power at `at`, after [`Self::cut_off`]: what
    /// was stored or deleted since `since`, answered or not, may have happened or not.
    ///
    /// What it may have undone brings back something from before, of which only the last is known
    /// to have been durable: nothing else is allowed.
    pub fn forget(&mut self, since: Moment, at: Nanos) {
        let (from, to) = (self.moment(at), self.moment(at));
        let reverts = self.reverts(since, from, to);
        self.operations.extend(reverts);
    }

    /// Notes that what holds the values ended at `at`, after [`Self::cut_off`]: the next start may
    /// find what could not be written since `opened`. It does not where a later change is there
    /// for good: of those that were answered before `durable` all are.
    pub fn resurface(&mut self, opened: Moment, durable: Moment, at: Nanos) {
        let (from, to) = (self.moment(at), self.moment(at));
        // A delete that need not have found anything may have left nothing.
        let lasting = self.operations.iter().filter(|op| {
            op.is_change()
                && op.call != Call::Clear
                && op.outcome == Some(Outcome::Done)
                && op.returned < durable
        });
        let last = lasting.map(|op| op.invoked).max();
        let is_found = |op: &&Operation| {
            op.outcome == Some(Outcome::Unwritten)
                && op.invoked > opened
                && last.is_none_or(|last| op.returned > last)
        };
        let found = self.operations.iter().filter(is_found).map(|op| Operation {
            call: Call::Revert(op.call.leaves()),
            invoked: from,
            returned: to,
            outcome: None,
        });
        let found: Vec<_> = found.collect();
        self.operations.extend(found);
    }

    /// What may have happened between `invoked` and `returned` instead of the changes since
    /// `since`: that the last one before, or any of them, was the last.
    fn reverts(&self, since: Moment, invoked: Moment, returned: Moment) -> Vec<Operation> {
        let changes = || self.operations.iter().filter(|op| op.is_change());
        let durable = changes().filter(|op| op.returned < since && op.outcome.is_some());
        let last = durable.map(|op| op.invoked).max();
        let left = changes().filter(move |op| last.is_none_or(|last| op.returned >= last));
        let mut seen = HashSet::new();
        let states = left.map(|change| change.call.leaves()).chain(last.is_none().then_some(None));
        let states = states.filter(|state| seen.insert(*state));
        states
            .map(|state| Operation { call: Call::Revert(state), invoked, returned, outcome: None })
            .collect()
    }

    /// The same history with what faults of the flash may have done: a loss for each answer that
    /// tells of one, right before it. At each of the moments `cuts`, where power was lost, what is
    /// lost may be found again: an older copy of it, which was still there. At each of the moments
    /// `reverts` anything older may be back.
    #[must_use]
    pub fn with_faults(&self, cuts: &[Moment], reverts: &[Moment]) -> Self {
        let mut all = Self { operations: Vec::new(), moments: self.moments };
        let mut breaks: Vec<_> = cuts.iter().chain(reverts).copied().collect();
        breaks.sort_unstable();
        let mut breaks = breaks.into_iter().peekable();
        for operation in &self.operations {
            while let Some(at) = breaks.next_if(|at| *at < operation.invoked) {
                let since = if reverts.contains(&at) { Moment::FIRST } else { at };
                if since == Moment::FIRST || all.lost_answers() > 0 {
                    let reverts = all.reverts(since, at, operation.invoked);
                    all.operations.extend(reverts);
                }
            }
            if operation.outcome == Some(Outcome::Lost) {
                all.operations.push(Operation { call: Call::Lose, outcome: None, ..*operation });
            }
            all.operations.push(*operation);
        }
        all
    }

    /// The same history as flash with bad blocks may have it: a delete for which there was no space
    /// changed nothing, and nor did a record that could not be programmed. A concurrent change may
    /// have seen the failed one; its own outcome then decides.
    #[must_use]
    pub fn on_bad_blocks(&self) -> Self {
        let operations = self.operations.iter().filter_map(|&operation| {
            match (operation.call, operation.outcome) {
                (Call::Delete, Some(Outcome::Full)) => None,
                (Call::Store(..) | Call::Delete, Some(Outcome::Lost)) => self
                    .is_changed_during(&operation)
                    .then_some(Operation { outcome: None, ..operation }),
                _ => Some(operation),
            }
        });
        Self { operations: operations.collect(), moments: self.moments }
    }

    /// The same history as a disk that fails may have it. A read that failed tells nothing: the
    /// next one may succeed. A change that failed changed nothing. A concurrent change may have
    /// seen it; its own outcome then decides.
    #[must_use]
    pub fn on_failing_disk(&self) -> Self {
        let operations = self.operations.iter().filter_map(|&operation| {
            let failed = matches!(
                operation.outcome,
                Some(Outcome::Lost | Outcome::Unwritten | Outcome::Full)
            );
            let is_change = matches!(operation.call, Call::Store(..) | Call::Delete);
            match (failed, is_change) {
                (false, _) => Some(operation),
                (true, true) => self
                    .is_changed_during(&operation)
                    .then_some(Operation { outcome: None, ..operation }),
                (true, false) => None,
            }
        });
        Self { operations: operations.collect(), moments: self.moments }
    }

    /// True when a change overlaps `operation` in time.
    fn is_changed_during(&self, operation: &Operation) -> bool {
        let overlaps = |other: &&Operation| {
            other.invoked < operation.returned && operation.invoked < other.returned
        };
        self.operations.iter().filter(overlaps).any(Operation::is_change)
    }

    /// The next moment, which is after all so far.
    pub fn now(&mut self, at: Nanos) -> Moment {
        self.moment(at)
    }

    /// Answers that tell of a lost value.
    pub fn lost_answers(&self) -> usize {
        let lost = |operation: &&Operation| operation.outcome == Some(Outcome::Lost);
        self.operations.iter().filter(lost).count()
    }

    /// The operations so far.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// A history of these operations, which need not be in order.
    pub fn of(mut operations: Vec<Operation>) -> Self {
        operations.sort_unstable_by_key(|operation| operation.invoked);
        for operation in &operations {
            assert!(operation.invoked < operation.returned, "an answer follows its call");
        }
        let moments = operations.iter().flat_map(|op| [op.invoked, op.returned]);
        let orders = moments.filter(|moment| *moment != Moment::NEVER).map(|moment| moment.order);
        let moments = orders.max().map_or(0, |last| last + 1);
        Self { operations, moments }
    }

    fn moment(&mut self, at: Nanos) -> Moment {
        let moment = Moment { at, order: self.moments };
        self.moments += 1;
        moment
    }
}

impl Operation {
    /// True when it is known to have changed the key, or may have.
    pub fn is_change(&self) -> bool {
        !matches!(self.call, Call::Retrieve | Call::Exist)
            && matches!(self.outcome, None | Some(Outcome::Done))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(version, condition) => {
                write!(f, "store {version}")?;
                f.write_str(match condition {
                    Condition::None => "",
                    Condition::MustExist => " if there",
                    Condition::MustNotExist => " if not there",
                })
            }
            Self::Retrieve => f.write_str("retrieve"),
            Self::Exist => f.write_str("exist"),
            Self::Delete => f.write_str("delete"),
            Self::Clear => f.write_str("clear"),
            Self::Lose => f.write_str("fault"),
            Self::Revert(Some(version)) => write!(f, "back to {version}"),
            Self::Revert(None) => f.write_str("back to nothing"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Value(version) => write!(f, "{version}"),
            Self::NotFound => f.write_str("not found"),
            Self::Exists => f.write_str("exists"),
            Self::Full => f.write_str("no space"),
            Self::Lost => f.write_str("unrecovered"),
            Self::Unwritten => f.write_str("unwritten"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.returned {
            Moment::NEVER => "...".to_owned(),
            returned => format!("{}#{}", returned.at.0, returned.order),
        };
        write!(f, "[{}#{} to {end}] {} -> ", self.invoked.at.0, self.invoked.order, self.call)?;
        match self.outcome {
            Some(outcome) => write!(f, "{outcome}"),
            None => f.write_str("cut off"),
        }
    }
}
