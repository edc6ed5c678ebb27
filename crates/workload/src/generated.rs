use crate::acknowledged::Acknowledged;
use crate::chooser::{Chooser, Distribution};
use crate::keys::Keys;
use crate::kind::Kind;
use crate::permutation::Permutation;
use crate::plan::{OPERATIONS_MAX, Operation, Plan, Until};
use crate::script::Choice;
use crate::sizer::Sizer;
use crate::ycsb::{Mixture, Verb};
use base::{Key, Rng, mix};

/// Operations drawn as a plan says.
#[derive(Debug)]
pub(crate) struct Generated {
    operation: Operation,
    /// Where the operation is a mixture.
    mixture: Option<Mixture>,
    /// How many keys the plan has.
    planned: u64,
    /// The keys, if operations add to those of the plan.
    acknowledged: Option<Acknowledged>,
    /// How many keys there can be.
    keys_max: u64,
    keys: Keys,
    sizer: Sizer,
    value_bytes_max: u32,
    order: Order,
    chooser: Chooser,
    /// Draws what an operation of a mixture does, and how far a scan goes.
    rng: Rng,
    chosen: u64,
    limit: u64,
}

/// The order in which keys are stored first, or deleted.
#[derive(Debug)]
enum Order {
    /// That of their numbers.
    Rising,
    Shuffled(Permutation),
}

/// What the seed is used for; each use has its own stream of random numbers.
#[derive(Clone, Copy)]
enum Stream {
    Fill = 1,
    Delete,
    Choose,
    Mix,
    Size,
}

/// Scans go from one to so many keys (YCSB, core workload E).
const SCAN_KEYS_MAX: u64 = 100;

impl Generated {
    /// The operations of `plan`, which was validated.
    pub(crate) fn new(plan: &Plan) -> Self {
        let seed = |stream: Stream| mix(plan.seed ^ mix(stream as u64));
        let is_rising = plan.distribution == Distribution::Sequential;
        let keys = if is_rising { Keys::rising } else { Keys::new };
        let stream =
            if plan.operation == Operation::Delete { Stream::Delete } else { Stream::Fill };
        let shuffled = || Order::Shuffled(Permutation::new(plan.keys, seed(stream)));
        let has_inserts = plan.operation.insert_percent() > 0;
        Self {
            operation: plan.operation,
            mixture: plan.operation.mixture(),
            planned: plan.keys,
            acknowledged: has_inserts.then(|| Acknowledged::new(plan.keys)),
            keys_max: plan.keys_max(),
            keys: keys(plan.key_bytes, plan.keys).expect("part of a plan's validation"),
            sizer: Sizer::new(&plan.values, seed(Stream::Size)),
            value_bytes_max: plan.values.max(),
            order: if is_rising { Order::Rising } else { shuffled() },
            chooser: Chooser::new(
                plan.distribution,
                plan.keys,
                expected_inserts(plan),
                seed(Stream::Choose),
            ),
            rng: Rng::new(seed(Stream::Mix)),
            chosen: 0,
            limit: limit(plan),
        }
    }

    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.chosen < self.limit
            && self.acknowledged.as_ref().is_none_or(|keys| keys.issued() < self.keys_max)
    }

    /// How many operations there are in all, unless keys run out.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Choice {
        let index = self.chosen;
        self.chosen += 1;
        if let Some(mixture) = self.mixture {
            return self.draw(mixture);
        }
        match self.operation {
            Operation::Store if index < self.planned => {
                Choice::new(Kind::Store, self.in_order(index))
            }
            Operation::Store => {
                // Nobody retrieves them, so versions need only differ. Counting them for each key
                // would cost a cache miss.
                let version = u32::try_from(index).expect("below 2^32 in a run");
                Choice { version, ..Choice::new(Kind::Store, self.existing()) }
            }
            Operation::Delete => Choice::new(Kind::Delete, self.in_order(index)),
            Operation::Exist => Choice::new(Kind::Exist, self.existing()),
            _ => Choice::new(Kind::Retrieve, self.existing()),
        }
    }

    #[inline]
    fn draw(&mut self, mixture: Mixture) -> Choice {
        let is_often = self.rng.below(100) < u64::from(mixture.percent);
        let verb = if is_often { mixture.often } else { mixture.otherwise };
        match verb {
            Verb::Retrieve => Choice::new(Kind::Retrieve, self.existing()),
            Verb::Overwrite => Choice::new(Kind::Store, self.existing()),
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

    /// A store of key number `key` was acknowledged.
    #[inline]
    pub(crate) fn acknowledge(&mut self, key: u32) {
        if let Some(keys) = &mut self.acknowledged {
            keys.acknowledge(key.into());
        }
    }

    /// How many keys there are whose versions a history has to tell apart, if it has to: only if
    /// what is stored during the run is also retrieved.
    pub(crate) fn keys_with_versions(&self) -> Option<u64> {
        self.mixture.filter(|mixture| mixture.has_versions()).map(|_| self.planned)
    }

    #[inline]
    pub(crate) fn key(&self, number: u32) -> Key {
        self.keys.key(number.into())
    }

    /// The number of a key of which a store may have happened.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        let issued = self.acknowledged.as_ref().map_or(self.planned, Acknowledged::issued);
        let number = self.keys.number(key).filter(|&number| number < issued)?;
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

/// How many keys the law of the distribution leaves room for: as YCSB, twice as many as are
/// expected. Where the number of operations is not known, as many as there are.
fn expected_inserts(plan: &Plan) -> u64 {
    match (plan.operation.insert_percent(), plan.until) {
        (0, _) => 0,
        (percent, Until::Operations(operations)) => operations * u64::from(percent) * 2 / 100,
        (_, Until::Time(_)) => plan.keys,
    }
}
