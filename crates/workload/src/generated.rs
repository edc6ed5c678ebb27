use crate::acknowledged::Acknowledged;
use crate::chooser::{Chooser, Distribution};
use crate::keys::Keys;
use crate::kind::Kind;
use crate::permutation::Permutation;
use crate::plan::{OPERATIONS_MAX, Operation, Plan, Until};
use crate::script::Choice;
use crate::sizer::Sizer;
use crate::space::Space;
use crate::ycsb::{Mixture, Verb};
use crate::zone_writer::{ZoneWrite, ZoneWriter};
use base::{Key, Rng, mix};
use serde::{Deserialize, Serialize};

/// The operations drawn for a plan.
#[derive(Debug)]
pub(crate) struct Generated {
    does: Does,
    /// The number of keys in the plan.
    planned: u64,
    /// The keys, if operations add to those of the plan.
    acknowledged: Option<Acknowledged>,
    /// The most keys.
    keys_max: u64,
    /// The keys, unless the namespace has blocks.
    keys: Option<Keys>,
    space: Space,
    /// Logical blocks of each block.
    logical_blocks: u32,
    sizer: Sizer,
    value_bytes_max: u32,
    order: Order,
    chooser: Chooser,
    /// The order of writes in a namespace with zones.
    zone_writer: Option<ZoneWriter>,
    /// Draws the kind of operations of a mixture, and the length of scans.
    rng: Rng,
    chosen: u64,
    limit: u64,
}

/// The saved state of drawn operations.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedGenerated {
    acknowledged: Option<Acknowledged>,
    chooser: Chooser,
    zone_writer: Option<ZoneWriter>,
    rng: Rng,
    chosen: u64,
}

/// The task of a run.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Stores the first version of each key, in order, from this number on.
    Fill {
        from: u64,
    },
    /// Stores the first version again, of drawn keys.
    Overwrite,
    /// Stores keys in order first, then overwrites.
    Store,
    /// Overwrites, each with a different version.
    Write,
    /// Deletes in order.
    Delete,
    /// Repeats one kind of operation with drawn keys.
    Ask(Kind),
    Mix(Mixture),
}

impl Does {
    fn of(plan: &Plan) -> Self {
        if let Some(mixture) = plan.operation.mixture() {
            return Self::Mix(mixture);
        }
        match plan.operation {
            Operation::Store if !plan.is_filled => Self::Store,
            Operation::Store | Operation::Write | Operation::RandWrite => Self::Write,
            Operation::Delete => Self::Delete,
            Operation::Exist => Self::Ask(Kind::Exist),
            _ => Self::Ask(plan.space.read_kind()),
        }
    }
}

/// The versions that a run leaves in the keys of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// The versions before the run.
    Same,
    /// The first version of each.
    First,
    /// Versions that a history records, if there was one.
    Counted,
    /// Unknown versions.
    Unknown,
}

/// The order of first stores or of deletes.
#[derive(Debug)]
enum Order {
    /// The order of the numbers.
    Rising,
    Shuffled(Permutation),
}

/// The uses of the seed; each has its own stream of random numbers.
#[derive(Clone, Copy)]
enum Stream {
    Fill = 1,
    Delete,
    Choose,
    Mix,
    Size,
    Overwrite,
}

/// Returns the seed of `stream` in the run of `plan`.
fn seed(plan: &Plan, stream: Stream) -> u64 {
    mix(plan.seed ^ mix(stream as u64))
}

/// The place of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockExtent {
    /// Its first logical block.
    pub(crate) lba: u64,
    /// The number of its logical blocks.
    pub(crate) blocks: u32,
    /// The start of the zone that the block is appended to, if it is.
    pub(crate) append_to: Option<u64>,
}

/// The most keys of a scan; the least is one (YCSB, core workload E).
const SCAN_KEYS_MAX: u64 = 100;

impl Generated {
    /// Returns the operations of `plan`, which was validated.
    pub(crate) fn new(plan: &Plan) -> Self {
        let has_inserts = plan.operation.insert_percent() > 0;
        let zone_writer = match (plan.space, plan.operation) {
            (Space::Zones(zoning), Operation::Write) => {
                let blocks = plan.logical_blocks();
                Some(ZoneWriter::new(zoning, blocks, plan.keys, plan.is_filled))
            }
            _ => None,
        };
        Self {
            does: Does::of(plan),
            acknowledged: has_inserts.then(|| Acknowledged::new(plan.keys)),
            zone_writer,
            ..Self::storing(plan, limit(plan))
        }
    }

    /// Returns stores of the first version of each key of `plan` from number `first` on.
    pub(crate) fn filling(plan: &Plan, first: u64) -> Self {
        Self { does: Does::Fill { from: first }, ..Self::storing(plan, plan.keys - first) }
    }

    /// As `filling`, but in the order of the numbers.
    pub(crate) fn filling_in_order(plan: &Plan, first: u64) -> Self {
        Self { order: Order::Rising, ..Self::filling(plan, first) }
    }

    /// Returns `operations` stores of the first version of uniformly drawn keys of `plan`,
    /// different ones in each `round`.
    pub(crate) fn overwriting(plan: &Plan, round: u32, operations: u64) -> Self {
        let seed = seed(plan, Stream::Overwrite) ^ mix(round.into());
        Self {
            does: Does::Overwrite,
            chooser: Chooser::new(Distribution::Uniform, plan.keys, 0, seed),
            ..Self::storing(plan, operations)
        }
    }

    /// Returns `limit` stores of keys of `plan`.
    fn storing(plan: &Plan, limit: u64) -> Self {
        let is_rising = plan.distribution == Distribution::Sequential;
        let keys = if is_rising { Keys::rising } else { Keys::new };
        let keys = || keys(plan.key_bytes, plan.keys).expect("part of a plan's validation");
        let is_pairs = plan.space == Space::Pairs;
        let stream =
            if plan.operation == Operation::Delete { Stream::Delete } else { Stream::Fill };
        let shuffled = || Order::Shuffled(Permutation::new(plan.keys, seed(plan, stream)));
        Self {
            does: Does::Overwrite,
            planned: plan.keys,
            acknowledged: None,
            keys_max: plan.keys_max(),
            keys: is_pairs.then(keys),
            space: plan.space,
            logical_blocks: plan.logical_blocks(),
            sizer: Sizer::new(&plan.values, seed(plan, Stream::Size)),
            value_bytes_max: plan.values.max(),
            order: if is_rising || !is_pairs { Order::Rising } else { shuffled() },
            chooser: Chooser::new(
                plan.law(),
                plan.keys,
                expected_inserts(plan),
                seed(plan, Stream::Choose),
            ),
            zone_writer: None,
            rng: Rng::new(seed(plan, Stream::Mix)),
            chosen: 0,
            limit,
        }
    }

    /// Saves the state.
    pub(crate) fn save(&self) -> SavedGenerated {
        SavedGenerated {
            acknowledged: self.acknowledged.clone(),
            chooser: self.chooser.clone(),
            zone_writer: self.zone_writer.clone(),
            rng: self.rng.clone(),
            chosen: self.chosen,
        }
    }

    /// Continues the saved operations of the same plan.
    pub(crate) fn restored(plan: &Plan, saved: SavedGenerated) -> Self {
        let SavedGenerated { acknowledged, chooser, zone_writer, rng, chosen } = saved;
        Self { acknowledged, chooser, zone_writer, rng, chosen, ..Self::new(plan) }
    }

    /// Returns the versions in the keys of the plan after `done` successful operations.
    pub(crate) fn leaves(&self, done: u64) -> Leaves {
        let once_each = done == self.planned;
        match self.does {
            Does::Ask(_) => Leaves::Same,
            Does::Mix(mixture) if mixture.has_versions() => Leaves::Counted,
            Does::Mix(mixture) if mixture.insert_percent() == 0 => Leaves::Same,
            Does::Store if once_each => Leaves::First,
            Does::Write if self.zone_writer.is_none() => Leaves::Counted,
            _ => Leaves::Unknown,
        }
    }

    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.chosen < self.limit
            && self.acknowledged.as_ref().is_none_or(|keys| keys.issued() < self.keys_max)
    }

    /// Returns the number of operations, unless keys run out.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Choice {
        let index = self.chosen;
        self.chosen += 1;
        match self.does {
            Does::Mix(mixture) => self.draw(mixture),
            Does::Ask(kind) => Choice::new(kind, self.existing()),
            Does::Delete => Choice::new(Kind::Delete, self.in_order(index)),
            Does::Fill { from } => self.write(self.in_order(from + index), 0),
            Does::Store if index < self.planned => self.write(self.in_order(index), 0),
            Does::Overwrite => {
                let key = self.existing();
                self.write(key, 0)
            }
            Does::Store | Does::Write => self.write_next(index),
        }
    }

    /// Returns the `index`th write, whose version no other operation has.
    #[inline]
    fn write_next(&mut self, index: u64) -> Choice {
        // No operation reads these blocks, so versions need only differ. A counter for each key
        // would cost a cache miss.
        let version = u32::try_from(index).expect("below 2^32 in a run");
        if let Some(writer) = &mut self.zone_writer {
            let ZoneWrite { number, is_reset_first } = writer.next();
            return Choice { is_reset_first, ..self.write(number, version) };
        }
        let key = self.existing();
        self.write(key, version)
    }

    #[inline]
    fn write(&self, key: u64, version: u32) -> Choice {
        Choice { version, ..Choice::new(self.space.write_kind(), key) }
    }

    #[inline]
    fn draw(&mut self, mixture: Mixture) -> Choice {
        let is_often = self.rng.below(100) < u64::from(mixture.percent);
        let verb = if is_often { mixture.often } else { mixture.otherwise };
        match verb {
            Verb::Retrieve => Choice::new(self.space.read_kind(), self.existing()),
            Verb::Overwrite => Choice::new(self.space.write_kind(), self.existing()),
            Verb::ReadModifyWrite => Choice::new(Kind::ReadModifyWrite, self.existing()),
            Verb::Insert => {
                let keys = self.acknowledged.as_mut().expect("this mixture adds keys");
                Choice::new(Kind::Store, keys.issue())
            }
            Verb::Scan => {
                let count = 1 + self.rng.below(SCAN_KEYS_MAX);
                let count = u32::try_from(count).expect("at most a hundred");
                Choice { count, ..Choice::new(Kind::Scan, self.existing()) }
            }
        }
    }

    #[inline]
    fn existing(&mut self) -> u64 {
        let there = self.acknowledged.as_ref().map_or(self.planned, Acknowledged::there);
        self.chooser.draw(there)
    }

    #[inline]
    fn in_order(&self, index: u64) -> u64 {
        match &self.order {
            Order::Rising => index,
            Order::Shuffled(order) => order.at(index),
        }
    }

    /// Acknowledges a store of key number `key`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, key: u32) {
        if let Some(keys) = &mut self.acknowledged {
            keys.acknowledge(key.into());
        }
    }

    /// Returns the number of keys whose versions a history must record: `None` unless the run
    /// retrieves keys that it also stores.
    pub(crate) fn keys_with_versions(&self) -> Option<u64> {
        matches!(self.does, Does::Mix(mixture) if mixture.has_versions()).then_some(self.planned)
    }

    /// Returns the writer of zones, if the run writes to zones.
    #[inline]
    pub(crate) fn zone_writer(&mut self) -> Option<&mut ZoneWriter> {
        self.zone_writer.as_mut()
    }

    /// True when the next operation must wait for an outstanding one.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.zone_writer.as_ref().is_some_and(ZoneWriter::is_held)
    }

    #[inline]
    pub(crate) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    #[inline]
    pub(crate) fn key(&self, number: u32) -> Key {
        self.keys.as_ref().expect("blocks have no keys").key(number.into())
    }

    /// Returns the place of block number `number`.
    #[inline]
    pub(crate) fn extent(&self, number: u32) -> BlockExtent {
        let (lba, blocks) =
            (self.space.lba(number.into(), self.logical_blocks), self.logical_blocks);
        let append_to = match (self.space, &self.zone_writer) {
            (Space::Zones(zoning), Some(_)) => Some(zoning.start(lba)),
            _ => None,
        };
        BlockExtent { lba, blocks, append_to }
    }

    /// Returns the number of a key that may have been stored.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        let issued = self.acknowledged.as_ref().map_or(self.planned, Acknowledged::issued);
        let number = self.keys.as_ref()?.number(key).filter(|&number| number < issued)?;
        u32::try_from(number).ok()
    }

    #[inline]
    pub(crate) fn value_bytes(&self, key: u32, version: u32) -> u32 {
        self.sizer.bytes(key, version)
    }

    #[inline]
    pub(crate) fn value_bytes_max(&self) -> u32 {
        self.value_bytes_max
    }
}

fn limit(plan: &Plan) -> u64 {
    let limit = match plan.until {
        Until::Operations(operations) => operations,
        Until::Time(_) => OPERATIONS_MAX,
    };
    if plan.operation == Operation::Delete { limit.min(plan.keys) } else { limit }
}

/// Returns how many new keys the distribution allows for: twice the expected number, as in YCSB.
/// Without a number of operations, as many as there are keys.
fn expected_inserts(plan: &Plan) -> u64 {
    match (plan.operation.insert_percent(), plan.until) {
        (0, _) => 0,
        (percent, Until::Operations(operations)) => operations * u64::from(percent) * 2 / 100,
        (_, Until::Time(_)) => plan.keys,
    }
}
