//! Keys and values by the KV command set: 64 operations outstanding of each host on a few hot keys
//! and many others, on a small and nearly full device, which cleans all the time.

use crate::client::{Client, ROOM, Request, list_all};
use crate::history::{Condition, Operation, Outcome};
use crate::hosts::Hosts;
use crate::ledger::{Excuses, Seen};
use crate::load::Life;
use crate::power::{Loss, Power};
use crate::quiet::is_quiet;
use crate::tally::Tally;
use crate::target::Target;
use base::{Nanos, Rng};
use clock::{LocalFuture, Stage};
use controller::Queue;
use engine::Live;
use node::Device;
use std::collections::BTreeSet;
use std::rc::Rc;
use workload::{Keys, Payload, ValueGenerator};

/// Keys that most operations are on.
const HOT_KEYS: usize = 16;

/// Of so many other keys one is stored once and left alone.
const LEFT_ALONE: usize = 8;

/// Commands and values of some hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvPlan {
    pub(crate) seed: u64,
    /// Bytes of pairs that the device takes.
    pub(crate) capacity_bytes: u64,
    pub(crate) payload: Payload,
    /// How full the device is with all background keys there, in percent of its capacity.
    pub(crate) fill_percent: u64,
    /// Of 100 operations, how many are on hot keys.
    pub(crate) hot_percent: u64,
    /// Longest value in bytes that is usual.
    pub(crate) value_bytes_max: u64,
    /// Hosts, each with a queue of its own.
    pub(crate) hosts: usize,
    /// Operations between two power cuts, after the device was filled.
    pub(crate) operations: usize,
}

impl KvPlan {
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
        let capacity = self.capacity_bytes;
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

/// Hosts, their keys, and what they know of them.
pub(crate) struct KvHosts {
    plan: KvPlan,
    client: Client,
}

impl KvHosts {
    pub(crate) fn new(plan: KvPlan) -> Self {
        Self { client: plan.client(), plan }
    }

    /// Fills a new device, or reads what is on an old one; then works on it.
    async fn work(self: Rc<Self>, target: Rc<dyn Target>, life: Life) {
        let Life { power, mut rng, .. } = life;
        if life.may_be_cut {
            self.client.faults_may_revert();
        }
        let subjects = self.client.keys.len();
        target.controller().set_delete_reports_missing(true);
        if life.number == 0 {
            let queue = target.controller().queue_pair();
            let fill = (HOT_KEYS..subjects)
                .map(|subject| (subject, self.plan.store(Condition::None, &mut rng)));
            let session = self.client.session(&queue);
            session.submit_all(&power, fill).await;
            session.finish(&power).await;
        } else {
            self.check_content(&*target, &power, 1_024 << rng.below(3)).await;
        }
        if life.is_last {
            return;
        }
        let left_alone = left_alone(&self.client);
        clock::spawn(list_repeatedly(target.clone(), left_alone));
        let requests = (0..self.plan.operations).map(|_| self.plan.request(subjects, &mut rng));
        let requests: Vec<_> = requests.collect();
        let shares = requests.chunks(self.plan.operations.div_ceil(self.plan.hosts));
        let finishes = rng.below(2) == 0 || life.finishes;
        let hosts = shares
            .map(|share| -> LocalFuture<'static, ()> {
                let (hosts, target, power) = (self.clone(), target.clone(), power.clone());
                let (share, rng) = (share.to_vec(), Rng::new(rng.next_u64()));
                Box::pin(async move { hosts.ask(&*target, &power, &share, rng, finishes).await })
            })
            .collect();
        target.serve_all(hosts).await;
        if finishes {
            self.check_content(&*target, &power, 4_096).await;
        }
    }

    /// One host submits `requests`, with flushes in between, and waits for all answers or not.
    async fn ask(
        &self,
        target: &dyn Target,
        power: &Power,
        requests: &[(usize, Request)],
        mut rng: Rng,
        finishes: bool,
    ) {
        let queue = target.controller().queue_pair();
        let session = self.client.session(&queue);
        for part in requests.chunks((requests.len() / 3).max(1)) {
            session.submit_all(power, part.iter().copied()).await;
            if rng.below(2) == 0 {
                self.client.flush(target, power).await;
            }
        }
        if finishes {
            session.finish(power).await;
        }
    }

    /// Retrieves everything: that is also what the device lists and counts.
    async fn check_content(&self, target: &dyn Target, power: &Power, buffer_bytes: u32) {
        let queue = target.controller().queue_pair();
        let subjects = 0..self.client.keys.len();
        let everything = subjects.map(|subject| (subject, Request::Retrieve { room: ROOM }));
        let session = self.client.session(&queue);
        session.submit_all(power, everything).await;
        session.finish(power).await;
        let listed = list_all(&queue, buffer_bytes).await;
        power.on().await;
        let (there, lost) = (self.client.seen(Seen::There), self.client.seen(Seen::Lost));
        let differing = listed.symmetric_difference(&there).filter(|key| !lost.contains(*key));
        let differing = differing.count();
        // A fault may strike between the two.
        let hit = target.records_hit();
        assert!(
            differing <= hit,
            "of {} keys listed and {} retrieved, {differing} are not the same",
            listed.len(),
            there.len()
        );
        check_counts(target, there.len() as u64, (lost.len() + hit) as u64);
    }
}

impl Hosts for KvHosts {
    fn live(self: Rc<Self>, target: Rc<dyn Target>, life: Life) -> LocalFuture<'static, ()> {
        Box::pin(self.work(target, life))
    }

    fn operations_in_life(&self) -> u64 {
        (self.plan.operations + self.client.keys.len()) as u64
    }

    fn operations(&self) -> u64 {
        self.client.ledger().operations
    }

    fn opened(&self) {
        self.client.opened();
    }

    fn cut_off(&self, loss: Loss) {
        self.client.cut_off(loss);
    }

    fn check(&self, excuses: Excuses) -> Tally {
        self.client.check(excuses)
    }
}

impl Drop for KvHosts {
    /// Says what a seed that fails stands for.
    fn drop(&mut self) {
        if std::thread::panicking() && !is_quiet() {
            eprintln!("{:?}", self.plan);
        }
    }
}

/// Retrieves every key through the queue of one more host. Checks that the device lists and counts
/// exactly the keys that exist.
pub(crate) async fn check_pairs(queue: &impl Queue, client: &Client, device: &Device) {
    let everything =
        (0..client.keys.len()).map(|subject| (subject, Request::Retrieve { room: ROOM }));
    let power = Power::default();
    let session = client.session(queue);
    session.submit_all(&power, everything).await;
    session.finish_all(&power).await;
    let listed = list_all(queue, 4_096).await;
    let there = client.seen(Seen::There);
    assert!(listed == there, "{} keys are listed, and {} are there", listed.len(), there.len());
    check_counts(device, there.len() as u64, 0);
}

/// Holds what the device counts to what is `there`, and `lost`.
pub(crate) fn check_counts(target: &dyn Target, there: u64, lost: u64) {
    let usage = target.store().usage();
    // The namespace has two records of its own.
    let records = usage.values.records - 2;
    assert!(records.abs_diff(there) <= lost, "{records} live values, not {there}");
    let by_extent = target.store().live_by_extent().into_iter();
    let sum = by_extent.map(|(_, live)| live).sum::<Live>();
    assert_eq!(sum, usage.values, "what lives in all extents is what lives in all");
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

/// Lists the device repeatedly while hosts change it: keys that are there throughout and can be
/// read are listed once.
async fn list_repeatedly(target: Rc<dyn Target>, left_alone: BTreeSet<Vec<u8>>) {
    let queue = target.controller().queue_pair();
    loop {
        let listed = list_all(&queue, 2_048).await;
        let missing = left_alone.difference(&listed).count();
        let hit = target.records_hit();
        assert!(missing <= hit, "{missing} keys were there all the time and not listed");
        clock::sleep(Nanos::from_millis(50), Stage::Core).await;
    }
}
