use base::Nanos;
use std::fmt;

/// A value by its number: equal for equal content, and given out by whoever keeps the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

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
}

/// What a store asks of the key before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    None,
    /// That it is there.
    MustExist,
    /// That it is not there.
    MustNotExist,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Store this version.
    Store(Version, Condition),
    /// Return the value.
    Retrieve,
    /// Say whether there is a value.
    Exist,
    /// Remove the value.
    Delete,
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

    /// Notes that all open operations will never be answered: what they did they did before `at`.
    pub fn cut_off(&mut self, at: Nanos) {
        let moment = self.moment(at);
        let open = self.operations.iter_mut().filter(|op| op.returned == Moment::NEVER);
        open.for_each(|operation| operation.returned = moment);
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
