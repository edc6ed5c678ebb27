use crate::drive::ledger::{Found, Ledger};
use crate::drive::life::Life;
use base::{Nanos, Rng};
use clock::{Stage, sleep};
use drive::{Durability, Format, Medium, OpenError};
use media::{BlocksShape, Media};
use reactor::Reactor;
use sim::{DiskConditions, DiskFaults, Left, SimDisk, Tally, sweep};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const EXTENT_BYTES: u64 = 64 << 10;
const EXTENTS: u64 = 9;
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };

/// When power is lost.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// As this write, trim or flush begins.
    Change(u64),
    /// After this time.
    After(Nanos),
}

/// A disk, with blocks and sectors as the seed says.
fn disk(seed: u64) -> SimDisk {
    let size = |large: u64| if large == 0 { 512 } else { 4_096 };
    let (block_bytes, sector_bytes) = (size(seed & 1), size(seed >> 1 & 1));
    let trims = seed & 4 == 0;
    let blocks = (12_288 + 8_192 + EXTENTS * EXTENT_BYTES) / u64::from(block_bytes);
    let shape = BlocksShape { block_bytes, blocks, parallelism: 4 };
    let conditions = DiskConditions { trims, ..DiskConditions::new(sector_bytes) };
    SimDisk::new(shape, conditions, seed)
}

fn formatted(seed: u64) -> Arc<SimDisk> {
    let disk = Arc::new(disk(seed));
    let blocks = disk.clone();
    Reactor::new(None)
        .run(async move { Medium::format(blocks, FORMAT).await.expect("nothing fails") });
    disk
}

/// One life of a drive.
struct Lived {
    ledger: Rc<RefCell<Ledger>>,
    durability: Durability,
    found: Found,
}

impl Lived {
    fn new(durability: Durability) -> Self {
        Self { ledger: Rc::default(), durability, found: Found::default() }
    }

    /// Opens the drive, holds it against the ledger, and uses it until power is lost.
    fn until(&mut self, disk: &Arc<SimDisk>, seed: u64, cut: Cut) {
        let mut reactor = Reactor::new(Some(seed));
        let (ledger, durability) = (self.ledger.clone(), self.durability);
        let (blocks, found) = (disk.clone(), Rc::new(RefCell::new(self.found)));
        let told = found.clone();
        reactor.run(async {
            if let Cut::Change(number) = cut {
                disk.cut_at(disk.counts().changes() + number);
            }
            clock::spawn(async move {
                let drive = Medium::open(blocks, durability).await;
                let drive = Arc::new(drive.expect("nothing fails"));
                let mut checked = ledger.borrow().clone();
                let mut found = *told.borrow();
                checked.check(&drive, &mut found).await;
                (*ledger.borrow_mut(), *told.borrow_mut()) = (checked, found);
                Life { drive, ledger, durability }.live(seed);
            });
            match cut {
                Cut::Change(_) => disk.until_cut().await,
                Cut::After(time) => sleep(time, Stage::Queue).await,
            }
        });
        drop(reactor);
        self.found = *found.borrow();
    }

    /// What the drive holds is what it must.
    fn check(&mut self, disk: Arc<SimDisk>) {
        let (ledger, durability) = (self.ledger.clone(), self.durability);
        let mut found = self.found;
        Reactor::new(None).run(async {
            let drive = Medium::open(disk, durability).await.expect("nothing fails");
            let mut checked = ledger.borrow().clone();
            checked.check(&drive, &mut found).await;
            *ledger.borrow_mut() = checked;
        });
        self.found = found;
    }
}

/// What a loss of power leaves where appends return as this says.
fn left(durability: Durability, rng: &mut Rng) -> Left {
    match durability {
        Durability::Capacitor => Left::All,
        _ => Left::ALL[usize::try_from(rng.below(4)).expect("a small number")],
    }
}

const DURABILITIES: [Durability; 3] =
    [Durability::Group, Durability::EverySecond, Durability::Capacitor];

/// Several lives of one drive, each cut somewhere, one of them at `first`.
fn lives(seed: u64, first: Option<Cut>, count: u64) -> Found {
    lives_on(formatted(seed), seed, first, count)
}

fn lives_on(mut disk: Arc<SimDisk>, seed: u64, first: Option<Cut>, count: u64) -> Found {
    let mut rng = Rng::fork(seed, 77);
    let durability = match rng.below(4) {
        0 => Durability::EverySecond,
        1 => Durability::Capacitor,
        _ => Durability::Group,
    };
    let mut lived = Lived::new(durability);
    for life in 0..count {
        let at = match first.filter(|_| life == 0) {
            Some(cut) => cut,
            None if rng.below(4) == 0 => Cut::Change(rng.below(12)),
            None if rng.below(2) == 0 => Cut::Change(rng.below(600)),
            None => Cut::After(Nanos(rng.below(150_000_000))),
        };
        lived.until(&disk, mixed(seed, life), at);
        let left = left(durability, &mut rng);
        disk = Arc::new(match rng.below(4) {
            0 => disk.killed(DiskFaults::default(), mixed(seed, life)),
            _ => disk.cut(left, DiskFaults::default(), mixed(seed, life)),
        });
    }
    lived.check(disk);
    lived.found
}

const fn mixed(seed: u64, life: u64) -> u64 {
    seed.wrapping_mul(1_000).wrapping_add(life)
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.lives += other.lives;
        self.pages += other.pages;
        self.gone += other.gone;
        self.unasked += other.unasked;
        self.summaries += other.summaries;
        self.kept += other.kept;
        self.freed += other.freed;
    }
}

#[test]
fn what_was_answered_outlives_losses_of_power_and_ends_of_processes() {
    let mut sum = Found::default();
    let mut runs = 0;
    sweep("drive", 150, |seed| {
        sum += lives(seed, None, 5);
        runs += 1;
        Tally::default()
    });
    println!("{sum:?}");
    if runs > 100 {
        let counts = [sum.gone, sum.unasked, sum.summaries, sum.kept, sum.freed];
        assert!(counts.iter().all(|count| *count > 50), "hardly anything happened: {sum:?}");
    }
}

#[test]
fn power_is_lost_at_each_write_and_flush() {
    let mut sum = Found::default();
    sweep("drive", 1_600, |seed| {
        sum += lives(seed, Some(Cut::Change(seed / 8 % 200)), 1);
        Tally::default()
    });
    println!("{sum:?}");
}

#[test]
fn a_format_that_is_cut_leaves_no_drive_or_the_one_before() {
    for seed in 0..4 {
        let whole = formatted(seed);
        let format_changes = whole.counts().changes();
        let (mut none, mut new, mut old) = (0, 0, 0);
        for (change, left) in (0..=format_changes).zip(Left::ALL.into_iter().cycle()) {
            let mut lived = Lived::new(Durability::Group);
            let used = Arc::new(whole.cut(Left::All, DiskFaults::default(), seed));
            lived.until(&used, seed, Cut::After(Nanos(30_000_000)));
            let disk = Arc::new(used.cut(Left::All, DiskFaults::default(), seed));
            let mut reactor = Reactor::new(None);
            reactor.run(async {
                disk.cut_at(change);
                let blocks = disk.clone();
                clock::spawn(async move {
                    let format = Format { secret: [3; 16], ..FORMAT };
                    Medium::format(blocks.clone(), format).await.unwrap();
                    drop(Medium::open(blocks, Durability::Group).await);
                });
                disk.until_cut().await;
            });
            drop(reactor);
            let after = Arc::new(disk.cut(left, DiskFaults::default(), seed));
            let blocks: Arc<SimDisk> = after.clone();
            let opened =
                Reactor::new(None).run(async { Medium::open(blocks, Durability::Group).await });
            match opened {
                Err(error) => {
                    assert_eq!(error, OpenError::NotADrive, "change {change}");
                    none += 1;
                }
                Ok(drive) if drive.extents().is_empty() => new += 1,
                Ok(_) => {
                    lived.check(after);
                    old += 1;
                }
            }
        }
        assert!(none > 10 && new > 0 && old > 0, "{none} none, {new} new, {old} old");
    }
}

#[test]
fn writes_and_flushes_that_fail_lose_nothing_that_was_answered() {
    let mut sum = Found::default();
    sweep("drive", 100, |seed| {
        for durability in DURABILITIES {
            let mut rng = Rng::fork(seed, 5);
            let healthy = formatted(seed);
            // Behind what opening the drive takes.
            let faults = DiskFaults::random(rng.next_u64(), 10, 150);
            let disk = Arc::new(healthy.cut(Left::All, faults, seed));
            let mut lived = Lived::new(durability);
            lived.until(&disk, seed, Cut::After(Nanos(100_000_000)));
            let left = left(durability, &mut rng);
            lived.check(Arc::new(disk.cut(left, DiskFaults::default(), seed)));
            sum += lived.found;
        }
        Tally::default()
    });
    println!("{sum:?}");
}

/// What makes these tests worth something.
#[test]
fn a_disk_that_lies_about_flushes_is_found() {
    let lying = |seed| {
        let faults = DiskFaults { lies: true, ..DiskFaults::default() };
        let disk = Arc::new(formatted(seed).cut(Left::All, faults, seed));
        let lived = std::panic::AssertUnwindSafe(|| {
            lives_on(disk, seed, Some(Cut::After(Nanos(50_000_000))), 1)
        });
        std::panic::catch_unwind(lived).is_err()
    };
    let found = (0..40).filter(|seed| lying(*seed)).count();
    assert!(found > 5, "found by {found} of 40 seeds");
}
