use crate::chooser::Distribution;
use crate::keys::{Keys, KeysError};
use crate::value::Payload;
use base::human_bytes;
use base::limits::VALUE_BYTES_MAX;
use std::fmt;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores each key once, in an order that is not that of the keys; when all are there,
    /// overwrites keys drawn from the distribution.
    Store,
    /// Retrieves keys drawn from the distribution.
    Retrieve,
    /// Retrieves, or overwrites, keys drawn from the distribution.
    Mixed {
        /// Of 100 operations, how many are retrieves on average.
        read_percent: u8,
    },
    /// Deletes each key at most once, in an order that is not that of storing them.
    Delete,
    /// Asks for the existence of keys drawn from the distribution. All are there.
    Exist,
}

impl Operation {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Retrieve => "retrieve",
            Self::Mixed { .. } => "mixed",
            Self::Delete => "delete",
            Self::Exist => "exist",
        }
    }
}

/// When operations are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The next when one has completed, so that this many are outstanding.
    QueueDepth(u32),
    /// At fixed intervals, however many are outstanding. Latency counts from when an operation was
    /// due.
    Rate {
        /// Operations due in a second of the device's clock.
        per_second: u64,
    },
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is measured.
    pub operation: Operation,
    /// How many operations are measured.
    pub operations: u64,
    /// When they are submitted.
    pub load: Load,
    /// The namespace that is asked.
    pub nsid: u32,
    /// Length of each key.
    pub key_bytes: usize,
    /// Length of each value.
    pub value_bytes: u32,
    /// How many keys there are.
    pub keys: u64,
    /// Names the order of operations and the values.
    pub seed: u64,
    /// How often each key is asked for.
    pub distribution: Distribution,
    /// Whether values have bytes.
    pub payload: Payload,
}

/// Why a plan cannot be run, in one sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// There is nothing to measure, or more than can be counted.
    Operations(u64),
    /// There is no key, or more than can be counted.
    Keys(u64),
    /// Keys of this length cannot be told apart.
    KeyBytes(KeysError),
    /// Values cannot be that long.
    ValueBytes(u32),
    /// Nothing would ever be outstanding.
    QueueDepth,
    /// Nothing would ever be due.
    Rate,
    /// A share of more than everything.
    ReadPercent(u8),
    /// A key can be deleted once.
    Deletes {
        /// Operations that were asked for.
        operations: u64,
        /// Keys that there are.
        keys: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(operations) => {
                write!(f, "a run is of 1 to {OPERATIONS_MAX} operations, not {operations}")
            }
            Self::Keys(keys) => write!(f, "a run has 1 to {OPERATIONS_MAX} keys, not {keys}"),
            Self::KeyBytes(error) => error.fmt(f),
            Self::ValueBytes(bytes) => {
                let max = human_bytes(VALUE_BYTES_MAX.into());
                write!(f, "a value has at most {max}, not {bytes} bytes")
            }
            Self::QueueDepth => f.write_str("a queue depth is at least 1"),
            Self::Rate => f.write_str("a rate is at least 1 operation a second"),
            Self::ReadPercent(percent) => {
                write!(f, "of 100 operations at most 100 are retrieves, not {percent}")
            }
            Self::Deletes { operations, keys } => {
                write!(
                    f,
                    "{keys} keys can be deleted once each, which is less than {operations} times"
                )
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Versions and places in a run are counted in 32 bits.
const OPERATIONS_MAX: u64 = u32::MAX as u64 - 1;

impl Plan {
    /// Tells whether the plan can be run, on a device that is large enough.
    pub fn validate(&self) -> Result<(), PlanError> {
        if !(1..=OPERATIONS_MAX).contains(&self.operations) {
            return Err(PlanError::Operations(self.operations));
        }
        if !(1..=OPERATIONS_MAX).contains(&self.keys) {
            return Err(PlanError::Keys(self.keys));
        }
        Keys::new(self.key_bytes, self.keys).map_err(PlanError::KeyBytes)?;
        if self.value_bytes > VALUE_BYTES_MAX {
            return Err(PlanError::ValueBytes(self.value_bytes));
        }
        self.validate_load()?;
        match self.operation {
            Operation::Mixed { read_percent } if read_percent > 100 => {
                Err(PlanError::ReadPercent(read_percent))
            }
            Operation::Delete if self.operations > self.keys => {
                Err(PlanError::Deletes { operations: self.operations, keys: self.keys })
            }
            _ => Ok(()),
        }
    }

    fn validate_load(&self) -> Result<(), PlanError> {
        match self.load {
            Load::QueueDepth(0) => Err(PlanError::QueueDepth),
            Load::Rate { per_second: 0 } => Err(PlanError::Rate),
            _ => Ok(()),
        }
    }

    /// True when all keys are to be stored before the run: see [`fill`](crate::fill).
    pub const fn needs_fill(&self) -> bool {
        !matches!(self.operation, Operation::Store)
    }

    /// The plan that stores the keys of this one.
    pub(crate) const fn filling(&self) -> Self {
        Self { operation: Operation::Store, operations: self.keys, ..*self }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// 1,000 retrieves of 100 keys.
    pub(crate) const PLAN: Plan = Plan {
        operation: Operation::Retrieve,
        operations: 1_000,
        load: Load::QueueDepth(8),
        nsid: 1,
        key_bytes: 16,
        value_bytes: 100,
        keys: 100,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    };

    #[test]
    fn plans_that_cannot_run_are_refused_with_their_reason() {
        let many = u64::from(u32::MAX);
        let refused = [
            (Plan { operations: 0, ..PLAN }, PlanError::Operations(0)),
            (Plan { operations: many, ..PLAN }, PlanError::Operations(many)),
            (Plan { keys: 0, ..PLAN }, PlanError::Keys(0)),
            (Plan { keys: many, ..PLAN }, PlanError::Keys(many)),
            (
                Plan { key_bytes: 1, keys: 257, ..PLAN },
                PlanError::KeyBytes(KeysError::TooMany { bytes: 1, count: 257 }),
            ),
            (
                Plan { key_bytes: 256, ..PLAN },
                PlanError::KeyBytes(KeysError::Length { bytes: 256 }),
            ),
            (Plan { value_bytes: (2 << 20) + 1, ..PLAN }, PlanError::ValueBytes((2 << 20) + 1)),
            (Plan { load: Load::QueueDepth(0), ..PLAN }, PlanError::QueueDepth),
            (Plan { load: Load::Rate { per_second: 0 }, ..PLAN }, PlanError::Rate),
            (
                Plan { operation: Operation::Mixed { read_percent: 101 }, ..PLAN },
                PlanError::ReadPercent(101),
            ),
            (
                Plan { operation: Operation::Delete, operations: 101, ..PLAN },
                PlanError::Deletes { operations: 101, keys: 100 },
            ),
        ];
        for (plan, error) in refused {
            assert_eq!(plan.validate(), Err(error));
            let sentence = error.to_string();
            assert!(!sentence.contains('\n') && sentence.len() < 100, "{sentence}");
        }
    }

    #[test]
    fn the_limits_themselves_can_run() {
        let operations = u64::from(u32::MAX) - 1;
        for plan in [
            PLAN,
            Plan { operations, keys: operations, ..PLAN },
            Plan { operations: 1, keys: 1, key_bytes: 1, value_bytes: 0, ..PLAN },
            Plan { key_bytes: 255, value_bytes: 2 << 20, ..PLAN },
            Plan { operation: Operation::Delete, operations: 100, ..PLAN },
            Plan { operation: Operation::Mixed { read_percent: 100 }, ..PLAN },
            Plan { load: Load::Rate { per_second: u64::MAX }, ..PLAN },
        ] {
            assert_eq!(plan.validate(), Ok(()));
        }
    }
}
