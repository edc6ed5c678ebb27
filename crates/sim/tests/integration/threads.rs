//! Reactors on threads of their own that use one drive, or one store in memory: the answers on each
//! key have an order.

use base::{Buf, Key, Nanos, Rng};
use clock::Stage;
use drive::{Durability, Format};
use engine::{Ack, Config, Error, IndexConfig, KeySpaceId, ReactorWork, Store, Write};
use media::{BlocksShape, Memory, MemoryBlocks, Shape, Victims};
use node::{DiskDrive, DiskOptions, INDEXES};
use reactor::{Peer, Reactor, Remote, peers};
use sim::{Call, Condition, History, Open, Outcome, Version, check};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const SPACE: KeySpaceId = KeySpaceId(1);
const EXTENT_BYTES: u64 = 256 << 10;
const EXTENTS: u64 = 24;
const THREADS: usize = 4;
/// Tasks of a thread, each with an operation at a time.
const TASKS: u64 = 3;
const OPERATIONS: u64 = 1_500;
const KEYS: u64 = 60;
const KEY_BYTES: u64 = 8;

/// What all threads share.
struct Shared {
    began: Instant,
    histories: Vec<Mutex<History>>,
    versions: AtomicU32,
    /// Bytes of keys and values that were stored.
    stored_bytes: AtomicU64,
    /// Tasks that have work left.
    left: AtomicU32,
    /// The drive is closed: until then other reactors write what they have queued.
    is_closed: AtomicBool,
}

impl Shared {
    fn invoke(&self, key: u64, call: Call) -> Open {
        let mut history = self.history(key);
        history.invoke(call, self.now())
    }

    fn respond(&self, key: u64, open: Open, outcome: Outcome) {
        let mut history = self.history(key);
        history.respond(open, outcome, self.now());
    }

    fn history(&self, key: u64) -> std::sync::MutexGuard<'_, History> {
        self.histories[usize::try_from(key).expect("a few keys")].lock().expect("no task panics")
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.began.elapsed().as_nanos()).expect("it is soon over"))
    }
}

fn key(number: u64) -> Key {
    Key::new(&number.to_be_bytes()).expect("eight bytes are a key")
}

fn value(version: u32) -> Buf {
    let len = 1 + version as usize * 131 % 1_200;
    Buf::copy_from(&version.to_be_bytes().repeat(len))
}

fn version_of(value: &Buf) -> Version {
    let bytes = value.bytes().expect("a disk keeps bytes");
    let version = u32::from_be_bytes(*bytes.first_chunk().expect("it begins with its version"));
    assert_eq!(value.len() as usize, self::value(version).len() as usize, "it is whole");
    assert!(bytes.chunks(4).all(|part| part == version.to_be_bytes()), "it is of one version");
    Version(version)
}

async fn operate(store: &Arc<Store>, shared: &Shared, rng: &mut Rng) {
    let number = rng.below(KEYS);
    let key = key(number);
    match rng.below(8) {
        0..4 => {
            let version = shared.versions.fetch_add(1, SeqCst);
            let open = shared.invoke(number, Call::Store(Version(version), Condition::None));
            let (announced, value) = (store.announce(), value(version));
            shared.stored_bytes.fetch_add(KEY_BYTES + u64::from(value.len()), SeqCst);
            let stored = store.put(SPACE, &key, &value, Write::default(), announced).await;
            stored.expect("there is room");
            shared.respond(number, open, Outcome::Done);
        }
        4 => {
            let open = shared.invoke(number, Call::Delete);
            let outcome = match store.delete(SPACE, &key, store.announce()).await {
                Ok(()) => Outcome::Done,
                Err(Error::KeyNotFound) => Outcome::NotFound,
                Err(error) => panic!("a delete fails: {error}"),
            };
            shared.respond(number, open, outcome);
        }
        _ => {
            let open = shared.invoke(number, Call::Retrieve);
            let outcome = match store.get(SPACE, &key).await {
                Ok(value) => Outcome::Value(version_of(&value)),
                Err(Error::KeyNotFound) => Outcome::NotFound,
                Err(error) => panic!("a retrieve fails: {error}"),
            };
            shared.respond(number, open, outcome);
        }
    }
}

/// Starts the tasks of a thread, and waits until those of all threads are done.
async fn work(store: Arc<Store>, shared: &Arc<Shared>, seed: u64) {
    for task in 0..TASKS {
        let (store, shared) = (store.clone(), shared.clone());
        clock::spawn(async move {
            let mut rng = Rng::new(seed * TASKS + task);
            for _ in 0..OPERATIONS {
                operate(&store, &shared, &mut rng).await;
            }
            shared.left.fetch_sub(1, SeqCst);
        });
    }
    while shared.left.load(SeqCst) > 0 {
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
    }
}

/// A thread that does not open the drive.
fn help(peer: Peer, remote: &Remote, store: &Receiver<Arc<Store>>, shared: &Arc<Shared>) {
    let store = store.recv().expect("the drive opens");
    let seed = u64::from(peer.number());
    let all = async {
        work(store, shared, seed).await;
        while !shared.is_closed.load(SeqCst) {
            clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        }
    };
    Reactor::among(peer, None).serve(remote, all).expect("it has a ring");
}

/// All that was stored is counted, and all of it that is no longer there.
async fn check_counters(store: &Arc<Store>, before: u64, stored: u64) {
    let mut left = 0;
    for number in 0..KEYS {
        if let Ok(value) = store.get(SPACE, &key(number)).await {
            left += KEY_BYTES + u64::from(value.len());
        }
    }
    let counts = store.counters();
    assert_eq!((counts.host_bytes - before, counts.dropped_bytes), (stored, stored - left));
    let mut by_reactor = store.work_by_reactor();
    by_reactor.sort_unstable_by_key(|work| work.reactor_id);
    let numbers: Vec<u64> = by_reactor.iter().map(|work| work.reactor_id.into()).collect();
    assert_eq!(numbers, (0..THREADS as u64).collect::<Vec<_>>());
    assert!(by_reactor.iter().all(|work| work.host_bytes > 0), "{by_reactor:?}");
    let sum = |of: fn(&ReactorWork) -> u64| by_reactor.iter().map(of).sum::<u64>();
    assert_eq!(sum(|work| work.host_bytes), counts.host_bytes);
    // One reactor cleans: it may have cleaned more by now.
    assert!(sum(|work| work.victims) >= counts.victims);
}

/// What the threads use.
#[derive(Clone, Copy, Debug)]
enum Used {
    Drive(Durability),
    /// A store in memory.
    Memory,
}

/// What is open, and closed at the end.
enum Opened {
    Drive(DiskDrive),
    Memory(Arc<Store>),
}

impl Used {
    async fn open(self) -> Opened {
        match self {
            Self::Drive(durability) => Opened::Drive(new_drive(durability).await),
            Self::Memory => Opened::Memory(new_store().await),
        }
    }
}

impl Opened {
    fn store(&self) -> &Arc<Store> {
        match self {
            Self::Drive(drive) => drive.store(),
            Self::Memory(store) => store,
        }
    }

    async fn close(&self) {
        match self {
            Self::Drive(drive) => drive.close().await.expect("nothing fails"),
            Self::Memory(store) => store.flush().await.expect("memory does not fail"),
        }
    }
}

async fn new_drive(durability: Durability) -> DiskDrive {
    let bytes = (EXTENTS + 1) * EXTENT_BYTES;
    let shape = BlocksShape { block_bytes: 4_096, blocks: bytes / 4_096, parallelism: 4 };
    let blocks = Arc::new(MemoryBlocks::new(shape));
    let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
    DiskDrive::format(blocks.clone(), format).await.expect("it fits");
    let options = DiskOptions { durability, reactors: 4, ..DiskOptions::default() };
    DiskDrive::open(blocks, options).await.expect("it is new")
}

async fn new_store() -> Arc<Store> {
    let shape = Shape {
        page_bytes: 16 << 10,
        spare_bytes: 1 << 10,
        pages_per_extent: 16,
        extents: u32::try_from(EXTENTS).expect("a few"),
        parallelism: 4,
        frames: None,
    };
    let config = Config {
        capacity_bytes: EXTENTS / 2 * EXTENT_BYTES,
        // Each writer has a share of two pages.
        ack: Ack::Buffer { bytes: 128 << 10 },
        victims: Victims::Greedy,
        index: INDEXES[0].1,
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 4,
        group: clock::Group::new(),
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(shape)), config);
    store.create_key_space(SPACE).await.expect("there is room");
    store
}

async fn open_and_work(used: Used, helpers: Vec<Sender<Arc<Store>>>, shared: Arc<Shared>) -> u64 {
    let opened = used.open().await;
    let before = opened.store().counters().host_bytes;
    for helper in helpers {
        helper.send(opened.store().clone()).expect("the thread is there");
    }
    work(opened.store().clone(), &shared, 0).await;
    check_counters(opened.store(), before, shared.stored_bytes.load(SeqCst)).await;
    opened.close().await;
    shared.is_closed.store(true, SeqCst);
    opened.store().counters().victims
}

fn run(used: Used) {
    let tasks = u32::try_from(THREADS).expect("a few") * u32::try_from(TASKS).expect("a few");
    let shared = Arc::new(Shared {
        began: Instant::now(),
        histories: (0..KEYS).map(|_| Mutex::default()).collect(),
        versions: AtomicU32::new(1),
        stored_bytes: AtomicU64::new(0),
        left: AtomicU32::new(tasks),
        is_closed: AtomicBool::new(false),
    });
    let remotes: Vec<Remote> = (0..THREADS).map(|_| Remote::new().expect("a file")).collect();
    let mut places = peers(&remotes).into_iter();
    let first = places.next().expect("there are several");
    let (mut threads, mut helpers) = (Vec::new(), Vec::new());
    for (peer, remote) in places.zip(remotes[1..].iter().cloned()) {
        let (sender, receiver) = channel();
        let shared = shared.clone();
        helpers.push(sender);
        threads.push(std::thread::spawn(move || help(peer, &remote, &receiver, &shared)));
    }
    let all = open_and_work(used, helpers, shared.clone());
    let (victims, _) = Reactor::among(first, None).serve(&remotes[0], all).expect("it has a ring");
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    assert!(victims > 3, "{used:?}: {victims} extents were cleaned");
    for (number, history) in shared.histories.iter().enumerate() {
        let history = history.lock().expect("no task panics");
        if let Err(violation) = check(&history) {
            panic!("{used:?}, key {number}: {violation}");
        }
    }
}

#[test]
fn what_threads_do_to_a_key_has_an_order_that_explains_all_answers() {
    for durability in [Durability::Group, Durability::EverySecond, Durability::Capacitor] {
        run(Used::Drive(durability));
    }
    run(Used::Memory);
}
