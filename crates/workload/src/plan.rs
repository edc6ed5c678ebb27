use crate::chooser::Distribution;
use crate::keys::{Keys, KeysError};
use crate::space::Space;
use crate::value::Payload;
use crate::value_sizes::{ValueSizes, ValueSizesError};
use crate::ycsb::{Mixture, Verb, Ycsb};
use base::limits::{BLOCK_BYTES, VALUE_BYTES_MAX};
use base::{Nanos, human_bytes};
use std::fmt;

/// The measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stores each key once, in an order that is not that of the keys. Then overwrites keys drawn
    /// from the distribution.
    Store,
    /// Retrieves keys drawn from the distribution.
    Retrieve,
    /// Retrieves or overwrites keys, or reads or writes blocks, drawn from the distribution.
    Mixed {
        /// The mean number of retrieves in 100 operations.
        read_percent: u8,
    },
    /// Deletes each key at most once, in another order than that of storing them.
    Delete,
    /// Asks for the existence of keys drawn from the distribution, all of which exist.
    Exist,
    /// A core workload of YCSB.
    Ycsb(Ycsb),
    /// Reads blocks in sequence, cyclically.
    Read,
    /// Writes blocks in sequence, cyclically.
    Write,
    /// Reads blocks drawn from the distribution.
    RandRead,
    /// Writes blocks drawn from the distribution.
    RandWrite,
}

impl Operation {
    /// Returns the name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Retrieve => "retrieve",
            Self::Mixed { .. } => "mixed",
            Self::Delete => "delete",
            Self::Exist => "exist",
            Self::Ycsb(ycsb) => ycsb.name(),
            Self::Read => "read",
            Self::Write => "write",
            Self::RandRead => "randread",
            Self::RandWrite => "randwrite",
        }
    }

    /// True when it applies to pairs.
    pub const fn is_for_pairs(self) -> bool {
        !matches!(self, Self::Read | Self::Write | Self::RandRead | Self::RandWrite)
    }

    /// True when it applies to the blocks of a block namespace.
    pub const fn is_for_blocks(self) -> bool {
        !self.is_for_pairs() || matches!(self, Self::Mixed { .. })
    }

    /// True when it applies to the blocks of a zoned namespace, which is written only in sequence.
    pub const fn is_for_zones(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::RandRead)
    }

    /// True when it uses all keys in sequence, whatever the distribution.
    pub const fn is_sequential(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Returns its mixture, if it is one.
    pub(crate) const fn mixture(self) -> Option<Mixture> {
        match self {
            Self::Mixed { read_percent: percent } => {
                let (often, otherwise) = (Verb::Retrieve, Verb::Overwrite);
                Some(Mixture { percent, often, otherwise })
            }
            Self::Ycsb(ycsb) => Some(ycsb.mixture()),
            _ => None,
        }
    }

    /// True when it may store keys beyond those of the plan.
    pub const fn adds_keys(self) -> bool {
        matches!(self, Self::Ycsb(Ycsb::D | Ycsb::E))
    }

    /// Returns the mean number of stores of new keys in 100 operations.
    pub fn insert_percent(self) -> u8 {
        self.mixture().map_or(0, Mixture::insert_percent)
    }
}

/// When the run stops submitting. It waits for outstanding operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this many operations.
    Operations(u64),
    /// After this time of the target's clock since the start of the run, or earlier when no key is
    /// left to delete or store.
    Time(Nanos),
}

/// When operations are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The next when one has completed, so that this many are outstanding.
    QueueDepth(u32),
    /// At fixed intervals. Latency counts from when an operation was due.
    Rate {
        /// Operations due in each second of the device's clock.
        per_second: u64,
        /// The most outstanding operations; the host delays further ones. `None` for no limit.
        outstanding: Option<u32>,
    },
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The measured operation.
    pub operation: Operation,
    /// How many operations are measured, or for how long.
    pub until: Until,
    /// When they are submitted.
    pub load: Load,
    /// The namespace.
    pub nsid: u32,
    /// The kind of keys in it.
    pub space: Space,
    /// The length of each key. Blocks have numbers instead of keys.
    pub key_bytes: usize,
    /// Lengths of the values. The seed, the key and the version determine a value's length. Blocks
    /// have a fixed length.
    pub values: ValueSizes,
    /// The number of keys at the start.
    pub keys: u64,
    /// Whether all of them are stored already, as [`fill`](crate::fill) would store them.
    pub is_filled: bool,
    /// The seed of the order of operations and of the values.
    pub seed: u64,
    /// How often each key is used.
    pub distribution: Distribution,
    /// Whether values have bytes.
    pub payload: Payload,
}

/// Why a plan cannot be run; displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The number of operations is zero or too great.
    Operations(u64),
    /// The time is zero.
    Time,
    /// The number of keys is zero or too great.
    Keys(u64),
    /// Keys of this length cannot be distinct.
    KeyBytes(KeysError),
    /// Invalid lengths of values.
    Values(ValueSizesError),
    /// The queue depth is zero.
    QueueDepth,
    /// The rate is zero.
    Rate,
    /// A share above 100 %.
    ReadPercent(u8),
    /// More deletes than keys.
    Deletes {
        /// Operations of the plan.
        operations: u64,
        /// Keys of the plan.
        keys: u64,
    },
    /// The operation does not apply to the namespace.
    Space(Operation),
    /// A command cannot write a block of this size.
    BlockBytes(u32),
    /// The end of a zone is not the end of a block of this size.
    ZoneEnd {
        /// Bytes of a block.
        bytes: u32,
        /// Capacity of a zone in bytes.
        capacity: u64,
    },
    /// A read that is concurrent with a write of its block may return parts of both.
    Torn,
    /// New keys would run out.
    Inserts {
        /// The expected number of new keys.
        inserts: u64,
        /// Keys at the start.
        keys: u64,
        /// The most keys.
        max: u64,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(operations) => {
                write!(f, "a run is of 1 to {OPERATIONS_MAX} operations, not {operations}")
            }
            Self::Time => f.write_str("a run takes more than no time"),
            Self::Keys(keys) => write!(f, "a run has 1 to {OPERATIONS_MAX} keys, not {keys}"),
            Self::KeyBytes(error) => error.fmt(f),
            Self::Values(error) => error.fmt(f),
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
            Self::Space(operation) => {
                write!(f, "{} is not for a namespace of this kind", operation.name())
            }
            Self::BlockBytes(bytes) => {
                let (unit, max) =
                    (human_bytes(BLOCK_BYTES.into()), human_bytes(VALUE_BYTES_MAX.into()));
                write!(f, "a block is a multiple of {unit}, up to {max}, not {bytes} bytes")
            }
            Self::ZoneEnd { bytes, capacity } => {
                let (block, zone) = (human_bytes((*bytes).into()), human_bytes(*capacity));
                write!(f, "a zone of {zone} does not hold a whole number of blocks of {block}")
            }
            Self::Torn => {
                let unit = human_bytes(BLOCK_BYTES.into());
                write!(f, "blocks that are both read and written have {unit}: longer ones may tear")
            }
            Self::Inserts { inserts, keys, max } => {
                write!(f, "{inserts} new keys beside {keys} are more than the {max} that exist")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Versions and places in a run are counted in 32 bits.
pub(crate) const OPERATIONS_MAX: u64 = u32::MAX as u64 - 1;

impl Plan {
    /// Checks whether the plan can run on a device that is large enough.
    pub fn validate(&self) -> Result<(), PlanError> {
        match self.until {
            Until::Operations(operations) if !(1..=OPERATIONS_MAX).contains(&operations) => {
                return Err(PlanError::Operations(operations));
            }
            Until::Time(Nanos::ZERO) => return Err(PlanError::Time),
            _ => (),
        }
        if !(1..=OPERATIONS_MAX).contains(&self.keys) {
            return Err(PlanError::Keys(self.keys));
        }
        self.validate_space()?;
        self.validate_load()?;
        self.validate_operation()
    }

    fn validate_space(&self) -> Result<(), PlanError> {
        let fits = match self.space {
            Space::Pairs => self.operation.is_for_pairs(),
            Space::Blocks => self.operation.is_for_blocks(),
            Space::Zones(_) => self.operation.is_for_zones(),
        };
        if !fits {
            return Err(PlanError::Space(self.operation));
        }
        if self.space == Space::Pairs {
            Keys::new(self.key_bytes, self.keys).map_err(PlanError::KeyBytes)?;
            return self.values.validate().map_err(PlanError::Values);
        }
        match (self.operation, self.values) {
            (Operation::Mixed { .. }, ValueSizes::Fixed(bytes)) if bytes > BLOCK_BYTES => {
                Err(PlanError::Torn)
            }
            (_, ValueSizes::Fixed(bytes)) if is_block(bytes) => self.validate_zones(bytes),
            (_, values) => Err(PlanError::BlockBytes(values.max())),
        }
    }

    fn validate_zones(&self, bytes: u32) -> Result<(), PlanError> {
        let Space::Zones(zoning) = self.space else { return Ok(()) };
        let capacity = zoning.capacity_blocks * u64::from(BLOCK_BYTES);
        let is_whole = capacity > 0 && capacity.is_multiple_of(bytes.into());
        if is_whole { Ok(()) } else { Err(PlanError::ZoneEnd { bytes, capacity }) }
    }

    fn validate_operation(&self) -> Result<(), PlanError> {
        let keys = self.keys;
        // A run for a time has no known number of operations; it ends when keys run out.
        let operations = match self.until {
            Until::Operations(operations) => operations,
            Until::Time(_) => 1,
        };
        match self.operation {
            Operation::Mixed { read_percent } if read_percent > 100 => {
                Err(PlanError::ReadPercent(read_percent))
            }
            Operation::Delete if operations > keys => Err(PlanError::Deletes { operations, keys }),
            operation => {
                let percent = u64::from(operation.insert_percent());
                let (inserts, max) = ((operations * percent).div_ceil(100), self.keys_max());
                if inserts > 0 && keys + inserts > max {
                    return Err(PlanError::Inserts { inserts, keys, max });
                }
                Ok(())
            }
        }
    }

    /// Returns the most keys, each with a number.
    pub fn keys_max(&self) -> u64 {
        match self.space {
            Space::Pairs => Keys::count_max(self.key_bytes).min(OPERATIONS_MAX),
            Space::Blocks | Space::Zones(_) => OPERATIONS_MAX,
        }
    }

    /// Returns how often each key is used, or in which order.
    pub const fn law(&self) -> Distribution {
        if self.operation.is_sequential() { Distribution::Sequential } else { self.distribution }
    }

    /// Returns the number of logical blocks in each block.
    pub(crate) fn logical_blocks(&self) -> u32 {
        self.values.max() / BLOCK_BYTES
    }

    fn validate_load(&self) -> Result<(), PlanError> {
        match self.load {
            Load::QueueDepth(0) | Load::Rate { outstanding: Some(0), .. } => {
                Err(PlanError::QueueDepth)
            }
            Load::Rate { per_second: 0, .. } => Err(PlanError::Rate),
            _ => Ok(()),
        }
    }

    /// True when all keys must be stored before the run: see [`fill`](crate::fill).
    pub const fn needs_fill(&self) -> bool {
        let only_writes =
            matches!(self.operation, Operation::Store | Operation::Write | Operation::RandWrite);
        !self.is_filled && !only_writes
    }

    /// Returns the plan that stores the keys of this one.
    pub(crate) const fn filling(&self) -> Self {
        let operation = match self.space {
            Space::Pairs => Operation::Store,
            Space::Blocks | Space::Zones(_) => Operation::Write,
        };
        // All distributions except one have the same keys; uniform is the fastest to set up.
        let distribution = match self.distribution {
            Distribution::Sequential => Distribution::Sequential,
            _ => Distribution::Uniform,
        };
        Self { operation, until: Until::Operations(self.keys), distribution, ..*self }
    }
}

fn is_block(bytes: u32) -> bool {
    (BLOCK_BYTES..=VALUE_BYTES_MAX).contains(&bytes) && bytes.is_multiple_of(BLOCK_BYTES)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::zoning::Zoning;

    /// 1,000 retrieves of 100 keys.
    pub(crate) const PLAN: Plan = Plan {
        operation: Operation::Retrieve,
        until: Until::Operations(1_000),
        load: Load::QueueDepth(8),
        nsid: 1,
        space: Space::Pairs,
        key_bytes: 16,
        values: ValueSizes::Fixed(100),
        keys: 100,
        is_filled: false,
        seed: 1,
        distribution: Distribution::Uniform,
        payload: Payload::None,
    };

    const fn rate(per_second: u64, outstanding: Option<u32>) -> Load {
        Load::Rate { per_second, outstanding }
    }

    #[test]
    fn plans_that_cannot_run_are_refused_with_their_reason() {
        let many = u64::from(u32::MAX);
        let too_long = ValueSizes::Fixed((2 << 20) + 1);
        let backwards = ValueSizes::Zipfian { min: 3, max: 2 };
        let refused = [
            (Plan { until: Until::Operations(0), ..PLAN }, PlanError::Operations(0)),
            (Plan { until: Until::Operations(many), ..PLAN }, PlanError::Operations(many)),
            (Plan { until: Until::Time(Nanos::ZERO), ..PLAN }, PlanError::Time),
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
            (
                Plan { values: too_long, ..PLAN },
                PlanError::Values(ValueSizesError::TooLong { bytes: (2 << 20) + 1 }),
            ),
            (
                Plan { values: backwards, ..PLAN },
                PlanError::Values(ValueSizesError::Backwards { min: 3, max: 2 }),
            ),
            (Plan { load: Load::QueueDepth(0), ..PLAN }, PlanError::QueueDepth),
            (Plan { load: rate(0, None), ..PLAN }, PlanError::Rate),
            (Plan { load: rate(1, Some(0)), ..PLAN }, PlanError::QueueDepth),
            (
                Plan { operation: Operation::Mixed { read_percent: 101 }, ..PLAN },
                PlanError::ReadPercent(101),
            ),
            (
                Plan { operation: Operation::Delete, until: Until::Operations(101), ..PLAN },
                PlanError::Deletes { operations: 101, keys: 100 },
            ),
            (
                Plan { until: Until::Operations(3_121), key_bytes: 1, ..INSERTING },
                PlanError::Inserts { inserts: 157, keys: 100, max: 256 },
            ),
            (
                Plan { until: Until::Time(Nanos(1)), key_bytes: 1, keys: 256, ..INSERTING },
                PlanError::Inserts { inserts: 1, keys: 256, max: 256 },
            ),
            (
                Plan { until: Until::Operations(1), keys: many - 1, ..INSERTING },
                PlanError::Inserts { inserts: 1, keys: many - 1, max: many - 1 },
            ),
            (Plan { space: Space::Blocks, ..PLAN }, PlanError::Space(PLAN.operation)),
            (Plan { space: Space::Pairs, ..BLOCKS }, PlanError::Space(BLOCKS.operation)),
            (Plan { space: Space::Zones(ZONING), ..BLOCKS }, PlanError::Space(BLOCKS.operation)),
            (Plan { values: ValueSizes::Fixed(0), ..BLOCKS }, PlanError::BlockBytes(0)),
            (Plan { values: ValueSizes::Fixed(4_097), ..BLOCKS }, PlanError::BlockBytes(4_097)),
            (
                Plan { values: ValueSizes::Uniform { min: 0, max: 4_096 }, ..BLOCKS },
                PlanError::BlockBytes(4_096),
            ),
            (Plan { operation: Operation::Mixed { read_percent: 5 }, ..BLOCKS }, PlanError::Torn),
            (
                Plan { operation: Operation::Read, space: Space::Zones(ZONING), ..BLOCKS },
                PlanError::ZoneEnd { bytes: 8_192, capacity: 3 * 4_096 },
            ),
        ];
        for (plan, error) in refused {
            assert_eq!(plan.validate(), Err(error.clone()));
            let sentence = error.to_string();
            assert!(!sentence.contains('\n') && sentence.len() < 100, "{sentence}");
        }
    }

    const BLOCKS: Plan = Plan {
        operation: Operation::RandWrite,
        space: Space::Blocks,
        values: ValueSizes::Fixed(8_192),
        ..PLAN
    };

    const ONE_BLOCK: Plan = Plan { values: ValueSizes::Fixed(4_096), ..BLOCKS };

    const ZONING: Zoning = Zoning { zone_blocks: 4, capacity_blocks: 3 };

    const INSERTING: Plan = Plan { operation: Operation::Ycsb(Ycsb::E), ..PLAN };

    #[test]
    fn the_limits_themselves_can_run() {
        let most = u64::from(u32::MAX) - 1;
        let longest = ValueSizes::Uniform { min: 0, max: 2 << 20 };
        for plan in [
            PLAN,
            Plan { until: Until::Operations(most), keys: most, ..PLAN },
            Plan { until: Until::Operations(1), keys: 1, key_bytes: 1, ..PLAN },
            Plan { until: Until::Time(Nanos(1)), ..PLAN },
            Plan { key_bytes: 255, values: longest, ..PLAN },
            Plan { operation: Operation::Delete, until: Until::Operations(100), ..PLAN },
            Plan { operation: Operation::Delete, until: Until::Time(Nanos(9)), ..PLAN },
            Plan { operation: Operation::Mixed { read_percent: 100 }, ..PLAN },
            Plan { load: rate(u64::MAX, None), ..PLAN },
            Plan { until: Until::Operations(156), key_bytes: 1, ..INSERTING },
            Plan { until: Until::Operations(most - 100), ..INSERTING },
            Plan { key_bytes: 0, values: ValueSizes::Fixed(2 << 20), keys: most, ..BLOCKS },
            Plan { space: Space::Zones(ZONING), operation: Operation::Write, ..ONE_BLOCK },
            Plan { operation: Operation::Mixed { read_percent: 5 }, ..ONE_BLOCK },
        ] {
            assert_eq!(plan.validate(), Ok(()));
        }
    }
}
