//! The lives of a device on one array of cells: it is opened, works, and loses its power at any
//! instant, in opening too, again and again.

use crate::faults::{RunFaults, Struck, drawn, explicit, pages_hit};
use crate::ledger::Excuses;
use crate::load::{Life, Load};
use crate::power::{Loss, Power};
use crate::tally::Tally;
use crate::trace;
use base::{Nanos, Rng};
use clock::Stage;
use engine::{Error, How, Store};
use nand::{BlockId, Cells, DieId, FaultPlan};
use node::Device;
use reactor::Reactor;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Devices in turn on the same cells that get to be open.
const LIVES: u64 = 4;

/// How often it is looked whether it is time for a cut.
const STEP: Nanos = Nanos::from_micros(200);

/// How long a load may make no progress, in virtual time.
const STALL: Nanos = Nanos::from_micros(100_000_000);

/// When the power of a device is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// So long after it was turned on: mostly while the device is opened.
    Early(Nanos),
    /// So long after so many answers in this life.
    Amid { operations: u64, then: Nanos },
    /// So long after all work is done.
    AtEnd { then: Nanos },
    /// When all work is done and the device has stopped in good order, or so long after it began
    /// to.
    Stopped { after: Option<Nanos> },
}

/// Runs a load on devices in turn.
pub(crate) struct Driver {
    load: Rc<dyn Load>,
    cells: Arc<Cells>,
    seed: u64,
    rng: Rng,
    tally: Tally,
    /// Devices that were turned on so far.
    mounts: usize,
    faults: Option<Struck>,
    given: Option<RunFaults>,
    /// What went wrong in each device so far.
    happened: Rc<RefCell<RunFaults>>,
    pages_hit: u64,
}

/// A device under power.
struct Mount {
    device: RefCell<Option<Rc<Device>>>,
    is_done: Cell<bool>,
    is_stopped: Cell<bool>,
    opened: Cell<Option<How>>,
    plan: FaultPlan,
    happened: Rc<RefCell<RunFaults>>,
}

impl Mount {
    fn new(plan: FaultPlan, happened: Rc<RefCell<RunFaults>>) -> Self {
        let (device, opened) = (RefCell::new(None), Cell::new(None));
        let (is_done, is_stopped) = (Cell::new(false), Cell::new(false));
        Self { device, is_done, is_stopped, opened, plan, happened }
    }
}

impl Drop for Mount {
    /// Notes what went wrong, also when the device is dropped because something is wrong.
    fn drop(&mut self) {
        if let Some(device) = self.device.borrow().as_ref() {
            let report = device.faults();
            if let Some(plan) = self.happened.borrow_mut().0.last_mut() {
                *plan = explicit(&self.plan, &report);
            }
        }
    }
}

impl Driver {
    /// Uses the faults that are `given`, or draws some. Those that take effect go to `happened`.
    pub(crate) fn new(
        load: Rc<dyn Load>,
        seed: u64,
        given: Option<RunFaults>,
        happened: Rc<RefCell<RunFaults>>,
    ) -> Self {
        let cells = Device::manufacture(load.profile(), seed);
        let mut rng = Rng::new(base::mix(seed));
        let faults = [None, None, Some(Struck::Changes), Some(Struck::All)];
        let faults = faults[usize::try_from(rng.below(4)).expect("one of four")];
        let (tally, mounts, pages_hit) = (Tally::default(), 0, 0);
        Self { load, cells, seed, rng, tally, mounts, faults, given, happened, pages_hit }
    }

    /// Lets the device live all its lives, and checks what it answered.
    pub(crate) fn run(mut self) -> Tally {
        for number in 0..LIVES {
            if number > 0 {
                for _ in 0..[0, 0, 1, 1, 2, 3][self.below(6)] {
                    let cut = Cut::Early(self.early());
                    self.mount(number, cut);
                }
            }
            let cut = self.cut(number);
            self.mount(number, cut);
        }
        let pages = usize::try_from(self.pages_hit).expect("a few faults");
        let hit = pages * self.load.subjects_on_page();
        let is_worn = self.happened.borrow().retire_blocks();
        let mut tally = self.load.check(Excuses { hit, is_worn, disk_failed: false });
        tally += self.tally;
        tally
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.rng.below(bound)).expect("below a usize")
    }

    /// Any time up to when a device is open, on all scales.
    fn early(&mut self) -> Nanos {
        let scale = 1 << (10 + self.rng.below(16));
        Nanos(self.rng.below(scale))
    }

    fn cut(&mut self, life: u64) -> Cut {
        let then = Nanos(self.rng.below(2_000_000));
        let operations = self.rng.below(self.load.operations_in_life());
        let after = Some(Nanos(self.rng.below(20_000_000)));
        match self.rng.below(9) {
            0 => Cut::AtEnd { then },
            1 => Cut::Stopped { after: None },
            2 => Cut::Stopped { after },
            _ if life == LIVES - 1 => Cut::AtEnd { then },
            _ => Cut::Amid { operations, then },
        }
    }

    /// The faults of the next device.
    fn plan(&mut self) -> FaultPlan {
        // Drawn in any case, so that all else stays as it is with other faults.
        let mut rng = Rng::new(self.rng.next_u64());
        match (&self.given, self.faults) {
            (Some(given), _) => given.0.get(self.mounts).cloned().unwrap_or_default(),
            (None, Some(struck)) => drawn(struck, self.load.profile(), &mut rng),
            (None, None) => FaultPlan::default(),
        }
    }

    /// Turns a device on, and its power off when `cut` says.
    fn mount(&mut self, number: u64, cut: Cut) {
        trace::event(format_args!("device {}, life {number}: {cut:?}", self.mounts));
        let plan = self.plan();
        self.happened.borrow_mut().0.push(plan.clone());
        let power = Power::default();
        let (is_last, may_be_cut) = (number == LIVES - 1, false);
        let rng = Rng::new(self.rng.next_u64());
        let life = Life { number, is_last, finishes: false, power: power.clone(), may_be_cut, rng };
        let (saves, checkpoints) = (self.rng.below(4) == 0, Rng::new(self.rng.next_u64()));
        let erased = erases(&self.cells);
        let shuffle = (self.seed % 2 == 1).then_some(self.seed ^ self.mounts as u64);
        let happened = self.happened.clone();
        let mount = Rc::new(Mount::new(plan, happened));
        let mut reactor = Reactor::new(shuffle);
        reactor.set_trace(trace::is_on().then(trace::sink));
        let loss = reactor.run(async {
            clock::spawn(self.work(&mount, life, checkpoints));
            self.wait_for(cut, &mount).await;
            power.cut();
            trace::event(format_args!("the power is cut"));
            let at = clock::now();
            let forgets = self.save(&mount, saves).await;
            Loss { at, forgets, is_lasting: true }
        });
        self.count(&mount, number, erased);
        drop(reactor);
        drop(mount);
        self.load.cut_off(loss);
    }

    fn count(&mut self, mount: &Mount, number: u64, erased: u64) {
        self.tally.cuts += 1;
        self.mounts += 1;
        let device = mount.device.borrow().clone();
        let report = device.as_ref().map(|device| device.faults());
        self.pages_hit += pages_hit(&mount.plan, report.as_ref());
        let Some(device) = device else {
            self.tally.cuts_of_opening += 1;
            return;
        };
        let figures = device.figures();
        self.tally.victims += figures.store.victims;
        self.tally.faults += report.map_or(0, |report| report.counts.total());
        match mount.opened.get() {
            Some(How::Checkpoint) => self.tally.checkpoints += 1,
            Some(How::Scan) => self.tally.scans += 1,
            None => {}
        }
        if self.happened.borrow().rules() == 0 && number > 0 {
            assert_eq!(erases(&self.cells) - erased, figures.nand.erases, "erases are counted");
        }
    }

    /// Opens a device and works on it.
    fn work(
        &self,
        mount: &Rc<Mount>,
        mut life: Life,
        rng: Rng,
    ) -> impl Future<Output = ()> + use<> {
        let (load, cells, mount) = (self.load.clone(), self.cells.clone(), mount.clone());
        let (seed, plan) = (self.seed ^ self.mounts as u64, mount.plan.clone());
        let hit_before = self.pages_hit;
        async move {
            let profile = load.profile();
            let device = if life.number == 0 {
                Device::format(profile, cells, seed, plan).await
            } else {
                Device::open(profile, cells, seed, plan).await.map(|(device, opened)| {
                    trace::event(format_args!("{opened:?}"));
                    let recovery = opened.recovery.unwrap_or_default();
                    mount.opened.set(Some(recovery.how));
                    // A page that faults have made unreadable may be the last one of those that
                    // were being filled: then it looks like one that a loss of power has cut off.
                    let hit = pages_hit(&mount.plan, Some(&device.faults()));
                    life.may_be_cut = opened.lost_pages > 0 || hit + hit_before > 0;
                    device
                })
            };
            let device = Rc::new(device.expect("the device is large enough and not damaged"));
            *mount.device.borrow_mut() = Some(device.clone());
            if let Some(store) = device.kv() {
                clock::spawn(checkpoint_now_and_then(store.clone(), rng));
            }
            load.live(device, life).await;
            mount.is_done.set(true);
        }
    }

    async fn wait_for(&self, cut: Cut, mount: &Mount) {
        let then = match cut {
            Cut::Early(at) => at,
            Cut::Amid { operations, then } => {
                self.wait_until(|| mount.device.borrow().is_some()).await;
                let end = self.load.operations() + operations;
                self.wait_until(|| mount.is_done.get() || self.load.operations() >= end).await;
                then
            }
            Cut::AtEnd { then } => {
                self.wait_until(|| mount.is_done.get()).await;
                then
            }
            Cut::Stopped { after } => {
                self.wait_until(|| mount.is_done.get()).await;
                let device = mount.device.borrow().clone().expect("it has worked");
                let Some(after) = after else {
                    // Blocks that went bad may leave too few to write to.
                    let stopped = device.stop().await;
                    assert!(stopped.is_ok() || self.happened.borrow().rules() > 0, "{stopped:?}");
                    mount.is_stopped.set(stopped.is_ok());
                    return;
                };
                clock::spawn(async move {
                    // The power may be lost before it is done.
                    let _ = device.stop().await;
                });
                after
            }
        };
        clock::sleep(then, Stage::Core).await;
    }

    /// Waits until `is_so`. Panics if the load makes no progress for far longer than an operation
    /// takes: a lost answer must not keep a run from ending.
    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        let (mut operations, mut since) = (self.load.operations(), clock::now());
        while !is_so() {
            clock::sleep(STEP, Stage::Core).await;
            if self.load.operations() != operations {
                (operations, since) = (self.load.operations(), clock::now());
            }
            assert!(
                clock::now() - since < STALL,
                "the load has made no progress for {STALL}: {}",
                clock::stuck()
            );
        }
    }

    /// What the device does without power. True if something that was answered is lost.
    async fn save(&self, mount: &Mount, saves: bool) -> bool {
        let device = mount.device.borrow().clone();
        let Some(device) = device else { return false };
        if mount.is_stopped.get() || !(saves || self.load.is_buffered()) {
            return false;
        }
        let loss = device.lose_power().await;
        trace::event(format_args!("{loss:?}"));
        loss.lost_pages > 0 && self.load.is_buffered()
    }
}

/// Makes a checkpoint now and then.
async fn checkpoint_now_and_then(store: Arc<Store>, mut rng: Rng) {
    loop {
        clock::sleep(Nanos(rng.below(400_000_000)), Stage::Core).await;
        match store.checkpoint().await {
            Ok(_) | Err(Error::CapacityExceeded) => {}
            Err(Error::NoCheckpoint) => return,
            Err(error) => panic!("a checkpoint: {error}"),
        }
    }
}

fn erases(cells: &Cells) -> u64 {
    let geometry = cells.geometry();
    let dies = (0..geometry.dies()).map(DieId);
    let blocks = dies
        .flat_map(|die| (0..geometry.blocks_per_die()).map(move |block| BlockId { die, block }));
    blocks.map(|block| u64::from(cells.erase_count(block))).sum()
}
