//! Keys and values over NVMe/TCP: one device behind the target, and hosts at the other end of a
//! network that splits, delays and cuts what they say. All of them work on the same keys.

use crate::client::{Client, ROOM, Request, list_all};
use crate::history::Condition;
use crate::kv::check_counts;
use crate::ledger::{Excuses, Seen};
use crate::power::Power;
use crate::remote_host::RemoteHost;
use crate::remote_target::{ADDRESS, NQN, Target};
use crate::seeds::is_quiet;
use crate::small_drive::small_drive;
use crate::tally::Tally;
use crate::trace;
use base::{KIB, Nanos, Rng};
use client::{Association, Host, IoQueue, Reads, Settings};
use clock::Stage;
use controller::IN_CAPSULE_BYTES_MAX;
use net::{Conditions, End, Network};
use node::{Device, FaultPlan, Profile};
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;
use workload::{Keys, Payload, ValueGenerator};

/// Hosts at a time.
const HOSTS: u8 = 16;

/// Keys that most operations are on.
pub(crate) const HOT_KEYS: usize = 24;

/// Of 100 operations, how many are on them.
const HOT_PERCENT: u64 = 70;

/// What a seed stands for.
pub(crate) struct Plan {
    seed: u64,
    profile: Profile,
    conditions: Conditions,
    /// Connections that are cut, and the longest time between two of them.
    cuts: u64,
    cut_every: Nanos,
    /// Longest value in bytes.
    value_bytes_max: u64,
    /// Keys, the hot ones included.
    subjects: usize,
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
    fn new(seed: u64) -> Self {
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

    fn store(&self, condition: Condition, rng: &mut Rng) -> Request {
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
    /// Says what a seed that fails stands for.
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

/// Runs `seed`, and returns what it went through.
///
/// # Panics
/// When some answer can not be, or a host that has left leaves something behind in the target.
pub(crate) fn run(seed: u64) -> Tally {
    let plan = Rc::new(Plan::new(seed));
    let client = Rc::new(plan.client());
    let mut reactor = Reactor::new((seed % 2 == 1).then_some(seed));
    reactor.set_trace(trace::is_on().then(trace::sink));
    let (victims, reconnections) = reactor.run(serve(plan, client.clone()));
    let tally = client.check(Excuses::default());
    Tally { victims, reconnections, ..tally }
}

/// Serves a device to all hosts until they have left. Returns the victims that it cleaned, and how
/// often a host connected again.
async fn serve(plan: Rc<Plan>, client: Rc<Client>) -> (u64, u64) {
    let mut rng = Rng::new(base::mix(plan.seed));
    let cells = Device::manufacture(&plan.profile, plan.seed);
    let device = Device::format(&plan.profile, cells, plan.seed, FaultPlan::default()).await;
    let device = Rc::new(device.expect("the device is large enough"));
    device.controller().set_delete_reports_missing(true);
    fill(&plan, &client, &device, &mut rng).await;

    let network = Network::new(plan.seed, plan.conditions);
    let target = Target::start(&network, &device);
    let has_ended = Rc::new(Cell::new(false));
    clock::spawn(cut(network.clone(), plan.clone(), rng.next_u64(), has_ended.clone()));
    let hosts = (1..=HOSTS).map(|number| {
        let rng = Rng::new(rng.next_u64());
        RemoteHost::new(number, &plan, &client, &network, rng).work()
    });
    let reconnections = clock::join_all(hosts.collect()).await.iter().sum();
    has_ended.set(true);
    target.wait_until_idle(&network).await;
    client.give_up();

    network.set_conditions(Conditions::CALM);
    check_content(&network, &client, &device).await;
    target.wait_until_idle(&network).await;
    (device.figures().store.victims, reconnections)
}

/// Stores all but the hot keys, from within the process: that takes no time.
async fn fill(plan: &Plan, client: &Client, device: &Device, rng: &mut Rng) {
    let queue = device.controller().queue_pair();
    let stores =
        (HOT_KEYS..plan.subjects).map(|subject| (subject, plan.store(Condition::None, rng)));
    let power = Power::default();
    let session = client.session(&queue);
    session.submit_all(&power, stores).await;
    session.finish(&power).await;
}

/// Cuts some connection again and again, whatever it is at.
async fn cut(network: Network, plan: Rc<Plan>, seed: u64, has_ended: Rc<Cell<bool>>) {
    let mut rng = Rng::new(seed);
    for _ in 0..plan.cuts {
        clock::sleep(Nanos(rng.below(plan.cut_every.0)), Stage::Queue).await;
        if has_ended.get() {
            return;
        }
        let open = network.open();
        if !open.is_empty() {
            let number = open[pick(open.len() as u64, &mut rng)];
            trace::event(format_args!("connection {number} of {} is cut", open.len()));
            network.cut(number);
        }
    }
}

/// Retrieves everything as one more host: that is also what the device lists and counts.
async fn check_content(network: &Network, client: &Client, device: &Device) {
    let (association, queue) = connect_calmly(network).await;
    let everything =
        (0..client.keys.len()).map(|subject| (subject, Request::Retrieve { room: ROOM }));
    let power = Power::default();
    let session = client.session(&queue);
    session.submit_all(&power, everything).await;
    session.finish_all(&power).await;
    let listed = list_all(&queue, 4_096).await;
    let there = client.seen(Seen::There);
    assert!(listed == there, "{} keys are listed, and {} are there", listed.len(), there.len());
    check_counts(device, there.len() as u64, 0);
    assert_eq!((queue.failure(), association.failure()), (None, None), "nothing was cut");
    queue.close();
    association.shut_down().await.expect("nothing is cut");
}

async fn connect_calmly(network: &Network) -> (Association<End>, IoQueue<End>) {
    let stream = || async { network.connect(ADDRESS).await.expect("the target listens") };
    let settings = Settings::new(Host::of_uuid([HOSTS + 1; 16]), NQN);
    let association = Association::connect(settings, stream().await).await;
    let association = association.expect("the target takes one host");
    let queue = association.io_queue(vec![stream().await], Reads::Pairs).await;
    (association, queue.expect("the target takes one queue"))
}
