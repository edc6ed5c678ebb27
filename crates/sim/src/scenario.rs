//! One seeded run of a whole device: a client with 64 operations outstanding on a few hot keys and
//! many others, on a small and nearly full device that cleans, loses its power and is opened again.

use crate::client::{Client, Request, list_all};
use crate::history::{Condition, Outcome};
use crate::linearizable::check;
use crate::seeds::Tally;
use base::{Key, Nanos, Rng};
use clock::Stage;
use controller::QueuePair;
use engine::{Live, SPARE_EXTENTS_MIN};
use nand::{BlockId, Cells, DieId};
use node::profile::{Ack, GcVictims, Handlers, Index, Log, LogFtl, Model, Stripe};
use node::{Device, INDEXES, Profile};
use reactor::Reactor;
use std::collections::BTreeSet;
use std::sync::Arc;
use workload::{Keys, Payload, ValueGenerator};

/// Keys that most operations are on.
const HOT_KEYS: usize = 16;

/// Of so many other keys one is stored once and left alone.
const LEFT_ALONE: usize = 8;

/// Operations between two power cuts, after the device was filled.
const OPERATIONS: usize = 1_200;

/// Devices in turn on the same cells.
const LIVES: u64 = 3;

/// What a seed stands for.
struct Plan {
    seed: u64,
    rng: Rng,
    profile: Profile,
    payload: Payload,
    /// How full the device is with all background keys there, in percent of its capacity.
    fill_percent: u64,
    /// Of 100 operations, how many are on hot keys.
    hot_percent: u64,
    /// Longest value in bytes that is usual.
    value_bytes_max: u64,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut profile = tiny(&mut rng);
        // Each index has its turn, with ties broken in both ways.
        let (index, _) = INDEXES[usize::try_from(seed / 2 % INDEXES.len() as u64).expect("a few")];
        profile.index = Some(Index::named(index).expect("it is registered"));
        let payload = if rng.below(4) == 0 { Payload::Full } else { Payload::None };
        let fill_percent = 60 + rng.below(32);
        let value_bytes_max = match profile.log.as_ref().and_then(Log::stripe) {
            Some(Stripe::Die) => 6_000,
            _ => 10_000,
        };
        let hot_percent = [50, 50, 80, 100][usize::try_from(rng.below(4)).expect("below 4")];
        Self { seed, rng, profile, payload, fill_percent, hot_percent, value_bytes_max }
    }

    fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).expect("below a usize")
    }

    /// Sizes of all kinds: nothing, too short for a tag, within a page, longer than one.
    fn value_len(&mut self) -> u32 {
        let len = match self.rng.below(20) {
            0 => 0,
            1..3 => 1 + self.rng.below(8),
            3..8 => self.rng.below(1_000),
            8..16 => self.rng.below(4_096),
            _ => self.rng.below(self.value_bytes_max),
        };
        u32::try_from(len).expect("less than a value may have")
    }

    fn client(&mut self) -> Client {
        let lengths = [8, 12, 16, 17, 40, 255];
        let capacity = self.profile.kv_bytes();
        // A value takes 2.2 KB on average, and half as many bytes with its header and padding.
        let background = usize::try_from(capacity * self.fill_percent / 100 / 2_600);
        let count = HOT_KEYS + background.expect("a small device");
        let keys = (0..count).map(|number| {
            let keys = Keys::new(lengths[number % lengths.len()], count as u64);
            keys.expect("a key of 8 bytes holds any number").key(number as u64)
        });
        let keys: Vec<Key> = keys.collect();
        Client::new(keys.into_iter(), ValueGenerator::new(self.seed, self.payload))
    }

    /// An operation on a hot key, which comes and goes, or on another, which is mostly overwritten.
    fn request(&mut self, subjects: usize) -> (usize, Request) {
        if self.rng.below(100) < self.hot_percent {
            let request = match self.rng.below(100) {
                0..20 => self.store(Condition::None),
                20..32 => self.store(Condition::MustExist),
                32..52 => self.store(Condition::MustNotExist),
                52..76 => Request::Retrieve,
                76..86 => Request::Exist,
                _ => Request::Delete,
            };
            return (self.index(HOT_KEYS), request);
        }
        let request = match self.rng.below(100) {
            0..65 => self.store(Condition::None),
            65..70 => self.store(Condition::MustNotExist),
            70..88 => Request::Retrieve,
            88..90 => Request::Exist,
            _ => Request::Delete,
        };
        let mut subject = HOT_KEYS + self.index(subjects - HOT_KEYS);
        if is_left_alone(subject) {
            subject -= 1;
        }
        (subject, request)
    }

    fn store(&mut self, condition: Condition) -> Request {
        Request::Store { len: self.value_len(), condition }
    }
}

/// True for some of the keys that are not hot, none of them neighbours.
fn is_left_alone(subject: usize) -> bool {
    subject > HOT_KEYS && subject.is_multiple_of(LEFT_ALONE)
}

impl Drop for Plan {
    /// Says what a seed that fails stands for.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, profile, payload, fill_percent, hot_percent, .. } = self;
            let (log, nand, handlers) = (&profile.log, &profile.nand, profile.firmware.handlers);
            eprintln!(
                "seed {seed}: {} index, {log:?}, {:?} model, {} registers, {} spare bytes, \
                 handlers {handlers:?}, payload {payload:?}, {fill_percent} % full, \
                 {hot_percent} % hot",
                profile.index.map_or("no", |index| index.kind),
                nand.model,
                nand.registers,
                nand.spare_bytes
            );
        }
    }
}

/// The profile `moke` made so small that it is full at once and cleans all the time, and with
/// another choice of everything that may matter to order and content.
fn tiny(rng: &mut Rng) -> Profile {
    let mut profile = Profile::load("moke").expect("a built-in profile");
    let mut choose = |bound| rng.below(bound);
    let nand = &mut profile.nand;
    (nand.channels, nand.dies_per_channel) = (2, 2);
    (nand.blocks_per_plane, nand.pages_per_block) = (14, 16);
    nand.page_bytes = 4_096;
    nand.spare_bytes = [64, 256, 1_024][usize::try_from(choose(3)).expect("below 3")];
    nand.registers = 1 + u32::from(choose(2) == 0);
    nand.model = if choose(8) == 0 { Model::Scalar } else { Model::Staged };
    profile.firmware.handlers = match choose(3) {
        0 => Handlers::Unlimited,
        more => Handlers::Count(u32::try_from(1 + 3 * (more - 1)).expect("1 or 4")),
    };
    let log = profile.log.as_mut().expect("moke has a log");
    let stripe = match choose(3) {
        0 => Stripe::Die,
        1 => Stripe::Channel,
        _ => Stripe::All,
    };
    log.ftl = LogFtl::Append { stripe };
    log.ack = if choose(5) == 0 { Ack::Buffer { bytes: 64 << 10 } } else { Ack::Program };
    log.gc_victims = match choose(5) {
        0 => GcVictims::Greedy,
        1 => GcVictims::CostBenefit,
        2 => GcVictims::Random,
        3 => GcVictims::Fifo,
        _ => GcVictims::DChoices,
    };
    let nand = &profile.nand;
    let extents = stripe.extents(nand, nand.blocks_per_plane) - u64::from(SPARE_EXTENTS_MIN);
    profile.namespaces[0].size_bytes = extents * stripe.extent_bytes(nand) * 3 / 4;
    profile
}

/// Runs `seed`, and returns what it went through.
///
/// # Panics
/// When a history is not linearizable, or something that the device counts or lists is wrong.
pub fn run(seed: u64) -> Tally {
    let mut plan = Plan::new(seed);
    let cells = Device::manufacture(&plan.profile, seed);
    let mut client = plan.client();
    let mut tally = Tally::default();
    for life in 0..LIVES {
        if life > 0 && plan.rng.below(2) == 0 {
            open_in_vain(&mut plan, &cells);
            tally.reopenings += 1;
        }
        let erased = erases(&cells);
        let shuffle = (seed % 2 == 1).then_some(seed ^ life);
        let mut reactor = Reactor::new(shuffle);
        let end = reactor.run(async {
            let device = start(&plan, &cells, life).await;
            live(&device, &mut plan, &mut client, life).await;
            let figures = device.figures();
            tally.victims += figures.store.victims;
            assert_eq!(erases(&cells) - erased, figures.nand.erases, "erases are counted");
            clock::now()
        });
        drop(reactor);
        client.cut_off(end);
        tally.reopenings += u64::from(life > 0);
    }
    for subject in &client.subjects {
        if let Err(violation) = check(&subject.history) {
            panic!("{:?}: {violation}", subject.key);
        }
    }
    tally.operations = client.operations;
    tally.stored_bytes = client.stored_bytes;
    tally
}

/// Opens a device and cuts its power before or soon after it is open.
fn open_in_vain(plan: &mut Plan, cells: &Arc<Cells>) {
    let (profile, cells) = (plan.profile.clone(), cells.clone());
    let (seed, cut) = (plan.rng.next_u64(), Nanos(plan.rng.below(30_000_000)));
    Reactor::new(Some(seed)).run(async move {
        clock::spawn(async move {
            let device = Device::open(&profile, cells, seed).await;
            drop(device.expect("what was opened before can be opened again"));
        });
        clock::sleep(cut, Stage::Core).await;
    });
}

async fn start(plan: &Plan, cells: &Arc<Cells>, life: u64) -> Device {
    let device = if life == 0 {
        Device::format(&plan.profile, cells.clone(), plan.seed).await
    } else {
        Device::open(&plan.profile, cells.clone(), plan.seed ^ life).await.map(|(device, _)| device)
    };
    let device = device.expect("the device is large enough and not damaged");
    device.controller().set_delete_reports_missing(true);
    device
}

/// Fills a new device, or reads what is on an old one; then works on it until the power is cut.
async fn live(device: &Device, plan: &mut Plan, client: &mut Client, life: u64) {
    let queue = device.controller().queue_pair();
    let subjects = client.subjects.len();
    if life == 0 {
        let fill: Vec<_> =
            (HOT_KEYS..subjects).map(|subject| (subject, plan.store(Condition::None))).collect();
        client.submit_all(&queue, fill.into_iter()).await;
        client.finish(&queue).await;
    } else {
        check_content(device, client, 1_024 << plan.rng.below(3)).await;
    }
    if life == LIVES - 1 {
        return;
    }
    clock::spawn(list_meanwhile(device.controller().queue_pair(), left_alone(client)));
    let requests: Vec<_> = (0..OPERATIONS).map(|_| plan.request(subjects)).collect();
    client.submit_all(&queue, requests.into_iter()).await;
    let log = plan.profile.log.as_ref();
    let is_buffered = log.is_some_and(|log| log.ack != Ack::Program);
    if is_buffered || plan.rng.below(2) == 0 {
        client.finish(&queue).await;
        check_content(device, client, 4_096).await;
    }
    if is_buffered {
        // The memory that buffers stores outlives a cut with its drive, but the cells are all that
        // is kept here.
        device.store().flush().await.expect("nothing fails");
    } else {
        clock::sleep(Nanos(plan.rng.below(2_000_000)), Stage::Core).await;
    }
}

/// The keys that were stored and are never touched again.
fn left_alone(client: &Client) -> BTreeSet<Vec<u8>> {
    let subjects = client.subjects.iter().enumerate();
    let left = subjects.filter(|(number, subject)| {
        let store = subject.history.operations().first();
        is_left_alone(*number) && store.is_some_and(|store| store.outcome == Some(Outcome::Done))
    });
    left.map(|(_, subject)| subject.key.as_bytes().to_vec()).collect()
}

/// Lists the device again and again while others change it: what is there all the time is met once.
async fn list_meanwhile(queue: QueuePair, left_alone: BTreeSet<Vec<u8>>) {
    loop {
        let listed = list_all(&queue, 2_048).await;
        let missing = left_alone.difference(&listed).count();
        assert!(missing == 0, "{missing} keys were there all the time and not listed");
        clock::sleep(Nanos::from_millis(50), Stage::Core).await;
    }
}

/// Retrieves everything: that is also what the device lists and counts.
async fn check_content(device: &Device, client: &mut Client, buffer_bytes: u32) {
    let queue = device.controller().queue_pair();
    let everything = (0..client.subjects.len()).map(|subject| (subject, Request::Retrieve));
    client.submit_all(&queue, everything).await;
    client.finish(&queue).await;
    let there = client.subjects.iter().filter(|subject| subject.was_there());
    let there: BTreeSet<_> = there.map(|subject| subject.key.as_bytes().to_vec()).collect();
    let listed = list_all(&queue, buffer_bytes).await;
    let differing = listed.symmetric_difference(&there).count();
    assert!(
        differing == 0,
        "of {} keys listed and {} retrieved, {differing} are not the same",
        listed.len(),
        there.len()
    );
    let usage = device.store().usage();
    // The namespace has two records of its own.
    assert_eq!(usage.values.records, there.len() as u64 + 2, "live values");
    let by_extent = device.store().live_by_extent().into_iter();
    let sum = by_extent.fold(Live::default(), |sum, (_, live)| Live {
        records: sum.records + live.records,
        bytes: sum.bytes + live.bytes,
    });
    assert_eq!(sum, usage.values, "what lives in all extents is what lives in all");
}

fn erases(cells: &Cells) -> u64 {
    let geometry = cells.geometry();
    let dies = (0..geometry.dies()).map(DieId);
    let blocks = dies
        .flat_map(|die| (0..geometry.blocks_per_die()).map(move |block| BlockId { die, block }));
    blocks.map(|block| u64::from(cells.erase_count(block))).sum()
}
