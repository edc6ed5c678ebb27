use crate::load::Load;
use base::{Buf, Nanos};
use clock::{Class, Stage};
use drive::{Durability, Format};
use engine::{Store, WorkPool};
use media::{Blocks, BlocksShape, MemoryBlocks, Segments};
use node::{DiskDrive, DiskOptions, MemoryDrive, MemoryKind};
use reactor::{Peer, Reactor, Remote, peers};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// Tasks of a reactor on a drive, whose stores wait for their pages.
const TASKS: u64 = 64;

const BLOCK_BYTES: u32 = 4_096;
const MEMORY_BYTES: u64 = 4 << 30;
const DRIVE_BYTES: u64 = 1 << 30;

/// What the reactors of a run share.
struct Team {
    load: Load,
    reactors: usize,
    /// All begin together, those of other stores too.
    start: Arc<Barrier>,
    /// Tasks that have work left.
    left: AtomicUsize,
    /// Cleans by all reactors, as in a server.
    pool: Arc<WorkPool>,
}

/// The store, and what must outlive it.
enum Held {
    Memory(MemoryDrive),
    Drive(DiskDrive),
}

impl Held {
    async fn open(team: &Team) -> Self {
        let (pool, reactors) = (team.pool.clone(), u32::try_from(team.reactors).expect("a few"));
        if !team.load.is_on_blocks {
            let (kind, bytes) = (MemoryKind::Kv, MEMORY_BYTES);
            let drive = MemoryDrive::format_among(pool, kind, bytes, reactors, 1).await;
            return Self::Memory(drive.expect("it has some extents"));
        }
        let blocks = DRIVE_BYTES / u64::from(BLOCK_BYTES);
        let shape = BlocksShape { block_bytes: BLOCK_BYTES, blocks, parallelism: 64 };
        let blocks = Arc::new(MemoryBlocks::new(shape));
        fill(&blocks).await;
        let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: None };
        DiskDrive::format(blocks.clone(), format).await.expect("the blocks are many enough");
        let durability = Durability::Capacitor;
        let options = DiskOptions { durability, reactors, ..DiskOptions::default() };
        let drive = DiskDrive::open_among(pool, blocks, options).await;
        Self::Drive(drive.expect("the drive is new"))
    }

    fn store(&self) -> &Arc<Store> {
        match self {
            Self::Memory(drive) => drive.kv().expect("it has pairs"),
            Self::Drive(drive) => drive.store(),
        }
    }
}

/// Gives each block its memory, so that no run waits for the kernel to clear it.
async fn fill(blocks: &MemoryBlocks) {
    for block in 0..blocks.shape().blocks {
        let content = Segments::from_iter([Buf::copy_from(&[0; BLOCK_BYTES as usize])]);
        blocks.write(block, content, Class::HostWrite).await.expect("memory does not fail");
    }
}

/// Thousands of operations a second that so many reactors do together, on one store.
pub(crate) fn rate(load: Load, reactors: usize) -> f64 {
    rate_from(load, reactors, Arc::new(Barrier::new(reactors)))
}

/// As [`rate`], of reactors that share nothing: each has a store of its own, with all keys, and
/// executes its share of the operations. This is the limit of the machine.
pub(crate) fn rate_apart(load: Load, reactors: usize) -> f64 {
    let start = Arc::new(Barrier::new(reactors));
    let load = Load { operations: load.operations / reactors as u64, ..load };
    let threads = (0..reactors).map(|_| {
        let start = start.clone();
        std::thread::spawn(move || rate_from(load, 1, start))
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
}

#[expect(clippy::cast_precision_loss, reason = "for a report")]
fn rate_from(load: Load, reactors: usize, start: Arc<Barrier>) -> f64 {
    let tasks = if load.is_on_blocks { TASKS } else { 1 };
    let team = Arc::new(Team {
        load,
        reactors,
        start,
        left: AtomicUsize::new(reactors * usize::try_from(tasks).expect("a few")),
        pool: Arc::default(),
    });
    let remotes: Vec<Remote> =
        (0..reactors).map(|_| Remote::new().expect("a file descriptor is free")).collect();
    let mut places = peers(&remotes).into_iter();
    let first = places.next().expect("there is one");
    let (mut threads, mut senders) = (Vec::new(), Vec::new());
    for (peer, remote) in places.zip(remotes[1..].iter().cloned()) {
        let (sender, receiver) = channel();
        senders.push(sender);
        let team = team.clone();
        threads.push(std::thread::spawn(move || help(peer, &remote, &receiver, &team, tasks)));
    }
    let all = lead(senders, &team, tasks);
    let served = Reactor::among(first, None).serve(&remotes[0], all);
    let (seconds, _) = served.expect("the kernel has io_uring");
    for thread in threads {
        thread.join().expect("it does not panic");
    }
    load.operations as f64 / seconds / 1_000.0
}

async fn lead(senders: Vec<Sender<Arc<Store>>>, team: &Arc<Team>, tasks: u64) -> f64 {
    let held = Held::open(team).await;
    team.load.fill(held.store()).await;
    for sender in senders {
        sender.send(held.store().clone()).expect("the thread is there");
    }
    team.start.wait();
    let start = Instant::now();
    work(held.store(), team, tasks, 0).await;
    let seconds = start.elapsed().as_secs_f64();
    if let Held::Drive(drive) = &held {
        drive.store().end_cleaning().await;
    }
    seconds
}

fn help(peer: Peer, remote: &Remote, store: &Receiver<Arc<Store>>, team: &Arc<Team>, tasks: u64) {
    let store = store.recv().expect("the drive opens");
    let seed = u64::from(peer.number());
    let mut reactor = Reactor::among(peer, None);
    team.start.wait();
    let all = async {
        let worker = team.pool.join();
        work(&store, team, tasks, seed).await;
        worker.leave().await;
    };
    reactor.serve(remote, all).expect("the kernel has io_uring");
}

/// Does the share of a reactor, and waits until all have done theirs.
async fn work(store: &Arc<Store>, team: &Arc<Team>, tasks: u64, seed: u64) {
    let share = team.load.operations / team.reactors as u64 / tasks;
    for task in 0..tasks {
        let (store, team) = (store.clone(), team.clone());
        clock::spawn(async move {
            team.load.execute(&store, share, seed * tasks + task).await;
            team.left.fetch_sub(1, SeqCst);
        });
    }
    while team.left.load(SeqCst) > 0 {
        clock::sleep(Nanos::from_micros(500), Stage::Queue).await;
    }
}
