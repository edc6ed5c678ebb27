//! The plan of a seed of the scenarios over NVMe/TCP and PCIe: its device, its network and its
//! operations.

use crate::client::{Client, ROOM, Request};
use crate::history::Condition;
use crate::ledger::Excuses;
use crate::quiet::is_quiet;
use crate::small_drive::small_drive;
use crate::tally::Tally;
use crate::trace;
use base::{KIB, Nanos, Rng};
use controller::IN_CAPSULE_BYTES_MAX;
use net::Conditions;
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::rc::Rc;
use workload::{Keys, Payload, ValueGenerator};

/// Keys that most operations are on.
pub(crate) const HOT_KEYS: usize = 24;

/// Of 100 operations, how many are on them.
const HOT_PERCENT: u64 = 70;

/// The plan of a seed.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) profile: Profile,
    pub(crate) conditions: Conditions,
    /// Connections that are cut, and the longest time between two of them.
    pub(crate) cuts: u64,
    pub(crate) cut_every: Nanos,
    /// Longest value in bytes.
    pub(crate) value_bytes_max: u64,
    /// Keys, the hot ones included.
    pub(crate) subjects: usize,
}

/// A network with the values that it moves in a reasonable number of pieces.
struct Road {
    piece_max: usize,
    capacity: usize,
    value_bytes_max: u64,
    /// So many that the device takes the longest value.
    pages_per_block: u32,
}

const ROADS: [Road; 5] = [
    Road { piece_max: 40, capacity: 500, value_bytes_max: 12_000, pages_per_block: 16 },
    Road { piece_max: 1_000, capacity: 9_000, value_bytes_max: 30_000, pages_per_block: 16 },
    Road { piece_max: 9_000, capacity: 20_000, value_bytes_max: 100 * KIB, pages_per_block: 64 },
    Road { piece_max: 65_536, capacity: 262_144, value_bytes_max: 100 * KIB, pages_per_block: 64 },
    // Values of several PDUs.
    Road { piece_max: 65_536, capacity: 262_144, value_bytes_max: 300 * KIB, pages_per_block: 160 },
];

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let Road { piece_max, capacity, value_bytes_max, pages_per_block } =
            ROADS[pick(5, &mut rng)];
        let profile = small_drive(seed, pages_per_block, &mut rng);
        let delay_max = [5, 50, 500][pick(3, &mut rng)];
        let delay = (Nanos::from_micros(1), Nanos::from_micros(delay_max));
        let conditions = Conditions { delay, piece_max, capacity, life: None };
        let cuts = [0, 10, 40, 100][pick(4, &mut rng)];
        let cut_every = Nanos::from_micros([500, 4_000, 20_000][pick(3, &mut rng)]);
        let fill_percent = 50 + rng.below(35);
        let background = profile.kv_bytes() * fill_percent / 100 / mean_len(value_bytes_max);
        let subjects = HOT_KEYS + usize::try_from(background).expect("a small device");
        Self { seed, profile, conditions, cuts, cut_every, value_bytes_max, subjects }
    }

    /// Runs `serve` with the plan of `seed`, and returns what the seed went through. `serve`
    /// returns the victims that the device cleaned, and how often hosts connected again.
    ///
    /// # Panics
    /// If no order of the operations explains every answer.
    pub(crate) fn run<F>(seed: u64, serve: impl FnOnce(Rc<Self>, Rc<Client>) -> F) -> Tally
    where
        F: Future<Output = (u64, u64)>,
    {
        let plan = Rc::new(Self::new(seed));
        let client = Rc::new(plan.client());
        let mut reactor = Reactor::new((seed % 2 == 1).then_some(seed));
        reactor.set_trace(trace::is_on().then(trace::sink));
        let (victims, reconnections) = reactor.run(serve(plan, client.clone()));
        let tally = client.check(Excuses::default());
        Tally { victims, reconnections, ..tally }
    }

    /// Returns the device, which is new.
    pub(crate) async fn device(&self) -> Rc<Device> {
        let cells = Device::manufacture(&self.profile, self.seed);
        let device = Device::format(&self.profile, cells, self.seed, FaultPlan::default()).await;
        let device = device.expect("the device is large enough");
        device.controller().set_delete_reports_missing(true);
        Rc::new(device)
    }

    fn client(&self) -> Client {
        let keys = (0..self.subjects).map(|number| {
            let keys = Keys::new([8, 9, 12, 15, 16][number % 5], self.subjects as u64);
            keys.expect("a key of 8 bytes holds any number").key(number as u64)
        });
        Client::new(keys.collect(), ValueGenerator::new(self.seed, Payload::Full))
    }

    /// An operation on a hot key, which comes and goes, or on another, which is mostly overwritten.
    pub(crate) fn request(&self, rng: &mut Rng) -> (usize, Request) {
        if rng.below(100) < HOT_PERCENT {
            let request = match rng.below(100) {
                0..22 => self.store(Condition::None, rng),
                22..34 => self.store(Condition::MustExist, rng),
                34..50 => self.store(Condition::MustNotExist, rng),
                50..74 => self.retrieve(rng),
                74..84 => Request::Exist,
                _ => Request::Delete,
            };
            return (pick(HOT_KEYS as u64, rng), request);
        }
        let request = match rng.below(100) {
            0..70 => self.store(Condition::None, rng),
            70..95 => self.retrieve(rng),
            _ => Request::Delete,
        };
        (HOT_KEYS + pick((self.subjects - HOT_KEYS) as u64, rng), request)
    }

    pub(crate) fn store(&self, condition: Condition, rng: &mut Rng) -> Request {
        Request::Store { len: self.value_len(rng), condition }
    }

    /// Sizes of all kinds: nothing, too short for a tag, as long as fits a capsule, or a buffer of
    /// the target, and one byte more or less, and any.
    fn value_len(&self, rng: &mut Rng) -> u32 {
        let len = match rng.below(20) {
            0 => 0,
            1 => 1 + rng.below(8),
            2..7 => rng.below(1_000),
            7..10 => u64::from(IN_CAPSULE_BYTES_MAX) - 2 + rng.below(4),
            10 => u64::from(nvme_tcp::target::LARGE) - 2 + rng.below(4),
            _ => rng.below(self.value_bytes_max),
        };
        u32::try_from(len.min(self.value_bytes_max)).expect("less than a value may have")
    }

    /// Into a buffer that is often longer than the value, and sometimes not.
    fn retrieve(&self, rng: &mut Rng) -> Request {
        let most = u32::try_from(self.value_bytes_max).expect("less than a value may have");
        let room = match rng.below(5) {
            0 => 8 + u32::try_from(rng.below(9_000)).expect("below 9,000"),
            1 => ROOM,
            _ => most,
        };
        Request::Retrieve { room }
    }
}

/// What a value takes on average, with its header: what [`Plan::value_len`] comes to.
const fn mean_len(value_bytes_max: u64) -> u64 {
    2_400 + value_bytes_max * 9 / 40
}

/// Uniform in `0..bound`.
pub(crate) fn pick(bound: u64, rng: &mut Rng) -> usize {
    usize::try_from(rng.below(bound)).expect("below a usize")
}

impl Drop for Plan {
    /// Prints the plan of a seed that fails.
    fn drop(&mut self) {
        if std::thread::panicking() && !is_quiet() {
            let Self { seed, profile, conditions, cuts, cut_every, subjects, .. } = self;
            eprintln!(
                "seed {seed}: {} index, {:?}, {subjects} keys, {conditions:?}, {cuts} cuts, one \
                 within {cut_every}",
                profile.index.map_or("no", |index| index.kind),
                profile.log,
            );
        }
    }
}
