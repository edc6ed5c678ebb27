//! Keys and values by the KV command set: 64 operations outstanding on a few hot keys and many
//! others, on a small and nearly full device, which cleans all the time.

use crate::client::{Client, ROOM, Request, list_all};
use crate::faults::pages_hit;
use crate::history::{Condition, Operation, Outcome};
use crate::ledger::{Excuses, Seen};
use crate::load::{Life, Load};
use crate::power::{Loss, Power};
use crate::seeds::is_quiet;
use crate::small_drive::{PAGES_PER_BLOCK, RECORDS_ON_PAGE, is_buffered, small_drive};
use crate::tally::Tally;
use base::{Nanos, Rng};
use clock::{LocalFuture, Stage};
use engine::Live;
use node::profile::{Log, Stripe};
use node::{Device, FaultPlan, Profile};
use std::collections::BTreeSet;
use std::rc::Rc;
use workload::{Keys, Payload, ValueGenerator};

/// Keys that most operations are on.
const HOT_KEYS: usize = 16;

/// Of so many other keys one is stored once and left alone.
const LEFT_ALONE: usize = 8;

/// Operations between two power cuts, after the device was filled.
const OPERATIONS: usize = 1_200;

/// What a seed stands for.
struct Plan {
    seed: u64,
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
        let profile = small_drive(seed, PAGES_PER_BLOCK, &mut rng);
        let payload = if rng.below(4) == 0 { Payload::Full } else { Payload::None };
        let fill_percent = 60 + rng.below(32);
        let value_bytes_max = match profile.log.as_ref().and_then(Log::stripe) {
            Some(Stripe::Die) => 6_000,
            _ => 10_000,
        };
        let hot_percent = [50, 50, 80, 100][usize::try_from(rng.below(4)).expect("below 4")];
        Self { seed, profile, payload, fill_percent, hot_percent, value_bytes_max }
    }

    /// Sizes of all kinds: nothing, too short for a tag, within a page, longer than one.
    fn value_len(&self, rng: &mut Rng) -> u32 {
        let len = match rng.below(20) {
            0 => 0,
            1..3 => 1 + rng.below(8),
            3..8 => rng.below(1_000),
            8..16 => rng.below(4_096),
            _ => rng.below(self.value_bytes_max),
        };
        u32::try_from(len).expect("less than a value may have")
    }

    fn client(&self) -> Client {
        let lengths = [8, 12, 16, 17, 40, 255];
        let capacity = self.profile.kv_bytes();
        // A value takes 2.2 KB on average, and half as many bytes with its header and padding.
        let background = usize::try_from(capacity * self.fill_percent / 100 / 2_600);
        let count = HOT_KEYS + background.expect("a small device");
        let keys = (0..count).map(|number| {
            let keys = Keys::new(lengths[number % lengths.len()], count as u64);
            keys.expect("a key of 8 bytes holds any number").key(number as u64)
        });
        Client::new(keys.collect(), ValueGenerator::new(self.seed, self.payload))
    }

    /// An operation on a hot key, which comes and goes, or on another, which is mostly overwritten.
    fn request(&self, subjects: usize, rng: &mut Rng) -> (usize, Request) {
        if rng.below(100) < self.hot_percent {
            let request = match rng.below(100) {
                0..20 => self.store(Condition::None, rng),
                20..32 => self.store(Condition::MustExist, rng),
                32..52 => self.store(Condition::MustNotExist, rng),
                52..76 => Request::Retrieve { room: ROOM },
                76..86 => Request::Exist,
                _ => Request::Delete,
            };
            return (index(HOT_KEYS, rng), request);
        }
        let request = match rng.below(100) {
            0..65 => self.store(Condition::None, rng),
            65..70 => self.store(Condition::MustNotExist, rng),
            70..88 => Request::Retrieve { room: ROOM },
            88..90 => Request::Exist,
            _ => Request::Delete,
        };
        let mut subject = HOT_KEYS + index(subjects - HOT_KEYS, rng);
        if is_left_alone(subject) {
            subject -= 1;
        }
        (subject, request)
    }

    fn store(&self, condition: Condition, rng: &mut Rng) -> Request {
        Request::Store { len: self.value_len(rng), condition }
    }
}

fn index(bound: usize, rng: &mut Rng) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("below a usize")
}

/// True for some of the keys that are not hot, none of them neighbours.
fn is_left_alone(subject: usize) -> bool {
    subject > HOT_KEYS && subject.is_multiple_of(LEFT_ALONE)
}

impl Drop for Plan {
    /// Says what a seed that fails stands for.
    fn drop(&mut self) {
        if std::thread::panicking() && !is_quiet() {
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

/// A client, its keys and a device for them.
pub(crate) struct KvLoad {
    plan: Plan,
    client: Client,
}

impl KvLoad {
    pub(crate) fn new(seed: u64) -> Self {
        let plan = Plan::new(seed);
        let client = plan.client();
        Self { plan, client }
    }

    /// Fills a new device, or reads what is on an old one; then works on it.
    async fn work(&self, device: &Rc<Device>, life: Life) {
        let Life { power, mut rng, .. } = life;
        if life.may_be_cut {
            self.client.faults_may_revert();
        }
        let queue = device.controller().queue_pair();
        let subjects = self.client.keys.len();
        device.controller().set_delete_reports_missing(true);
        if life.number == 0 {
            let fill = (HOT_KEYS..subjects)
                .map(|subject| (subject, self.plan.store(Condition::None, &mut rng)));
            self.client.submit_all(&queue, &power, fill).await;
            self.client.finish(&queue, &power).await;
        } else {
            self.check_content(device, &power, 1_024 << rng.below(3)).await;
        }
        if life.is_last {
            return;
        }
        let left_alone = left_alone(&self.client);
        clock::spawn(list_meanwhile(device.clone(), left_alone));
        let requests = (0..OPERATIONS).map(|_| self.plan.request(subjects, &mut rng));
        let requests: Vec<_> = requests.collect();
        for part in requests.chunks(OPERATIONS / 3) {
            self.client.submit_all(&queue, &power, part.iter().copied()).await;
            if rng.below(2) == 0 {
                self.client.flush(device, &power).await;
            }
        }
        if rng.below(2) == 0 {
            self.client.finish(&queue, &power).await;
            self.check_content(device, &power, 4_096).await;
        }
    }

    /// Retrieves everything: that is also what the device lists and counts.
    async fn check_content(&self, device: &Device, power: &Power, buffer_bytes: u32) {
        let queue = device.controller().queue_pair();
        let subjects = 0..self.client.keys.len();
        let everything = subjects.map(|subject| (subject, Request::Retrieve { room: ROOM }));
        self.client.submit_all(&queue, power, everything).await;
        self.client.finish(&queue, power).await;
        let listed = list_all(&queue, buffer_bytes).await;
        power.on().await;
        let (there, lost) = (self.client.seen(Seen::There), self.client.seen(Seen::Lost));
        let differing = listed.symmetric_difference(&there).filter(|key| !lost.contains(*key));
        let differing = differing.count();
        // A fault may strike between the two.
        let hit = records_hit(device);
        assert!(
            differing <= hit,
            "of {} keys listed and {} retrieved, {differing} are not the same",
            listed.len(),
            there.len()
        );
        check_counts(device, there.len() as u64, (lost.len() + hit) as u64);
    }
}

/// Holds what the device counts to what is `there`, and `lost`.
pub(crate) fn check_counts(device: &Device, there: u64, lost: u64) {
    let usage = device.store().usage();
    // The namespace has two records of its own.
    let records = usage.values.records - 2;
    assert!(records.abs_diff(there) <= lost, "{records} live values, not {there}");
    let by_extent = device.store().live_by_extent().into_iter();
    let sum = by_extent.fold(Live::default(), |sum, (_, live)| Live {
        records: sum.records + live.records,
        bytes: sum.bytes + live.bytes,
    });
    assert_eq!(sum, usage.values, "what lives in all extents is what lives in all");
}

impl Load for KvLoad {
    fn profile(&self) -> &Profile {
        &self.plan.profile
    }

    fn is_buffered(&self) -> bool {
        is_buffered(&self.plan.profile)
    }

    fn subjects_on_page(&self) -> usize {
        RECORDS_ON_PAGE
    }

    fn operations_in_life(&self) -> u64 {
        (OPERATIONS + self.client.keys.len()) as u64
    }

    fn live(self: Rc<Self>, device: Rc<Device>, life: Life) -> LocalFuture<'static, ()> {
        Box::pin(async move { self.work(&device, life).await })
    }

    fn operations(&self) -> u64 {
        self.client.ledger().operations
    }

    fn cut_off(&self, loss: Loss) {
        self.client.cut_off(loss);
    }

    fn check(&self, excuses: Excuses) -> Tally {
        self.client.check(excuses)
    }
}

/// The keys that were stored and are never touched again.
fn left_alone(client: &Client) -> BTreeSet<Vec<u8>> {
    let ledger = client.ledger();
    let left = (0..client.keys.len()).filter(|subject| {
        let last = ledger.operations_of(*subject).last();
        let is_there =
            |last: &Operation| matches!(last.outcome, Some(Outcome::Done | Outcome::Value(_)));
        is_left_alone(*subject) && last.is_some_and(is_there)
    });
    left.map(|subject| client.keys[subject].as_bytes().to_vec()).collect()
}

/// Records that faults may have taken, at most.
fn records_hit(device: &Device) -> usize {
    let pages = pages_hit(&FaultPlan::default(), Some(&device.faults()));
    usize::try_from(pages).expect("a few") * RECORDS_ON_PAGE
}

/// Lists the device again and again while others change it: what is there all the time, and can be
/// read, is met once.
async fn list_meanwhile(device: Rc<Device>, left_alone: BTreeSet<Vec<u8>>) {
    let queue = device.controller().queue_pair();
    loop {
        let listed = list_all(&queue, 2_048).await;
        let missing = left_alone.difference(&listed).count();
        let hit = records_hit(&device);
        assert!(missing <= hit, "{missing} keys were there all the time and not listed");
        clock::sleep(Nanos::from_millis(50), Stage::Core).await;
    }
}
