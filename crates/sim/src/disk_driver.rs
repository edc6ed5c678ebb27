//! The lives of a drive on one disk: it is opened, works, and its disk loses its power, or its
//! process is killed, at any write, flush or instant, in opening too, again and again.

use crate::disk::{DiskFaults, SimDisk};
use crate::disk_plan::DiskPlan;
use crate::disk_target::{DiskTarget, records_lost};
use crate::hosts::Hosts;
use crate::ledger::Excuses;
use crate::load::Life;
use crate::power::{Loss, Power};
use crate::quiet::is_quiet;
use crate::tally::Tally;
use crate::target::Target;
use crate::trace;
use base::{Nanos, Rng};
use clock::Stage;
use drive::Durability;
use engine::{How, WorkPool};
use node::DiskDrive;
use reactor::{PeerGroup, Places, Reactor};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Lives after which all is looked at.
const LIVES: u64 = 4;

/// How often it is looked whether a life has come to its end.
const STEP: Nanos = Nanos::from_micros(200);

/// A life that takes longer than that has come to a standstill.
const LIFE_MAX: Nanos = Nanos::from_secs(120);

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The power is lost as the write, trim or flush of this number begins, or when all is done.
    Change(u64),
    /// So long after so many answers.
    Amid { operations: u64, then: Nanos },
    /// So long after the drive began to be closed, when all is done, or when it is closed.
    Closed { after: Option<Nanos> },
}

/// Lets hosts work on a drive.
pub(crate) struct DiskDriver {
    hosts: Rc<dyn Hosts>,
    plan: DiskPlan,
    disk: Arc<SimDisk>,
    rng: Rng,
    tally: Tally,
    /// Times that the drive was turned on, and that it got to be open.
    mounts: u64,
    opened: u64,
    /// Records that failed reads may have taken.
    lost: usize,
}

/// A drive under power.
#[derive(Default)]
struct Mount {
    target: RefCell<Option<Rc<DiskTarget>>>,
    how: Cell<How>,
    is_done: Cell<bool>,
    is_closed: Cell<bool>,
    /// It could not be opened, or was asked to close and has.
    is_over: Cell<bool>,
}

impl DiskDriver {
    /// Hosts for a drive that takes as many bytes of pairs as it is told.
    pub(crate) fn new(
        plan: DiskPlan,
        rng: Rng,
        hosts: impl FnOnce(&DiskPlan, u64) -> Rc<dyn Hosts>,
    ) -> Self {
        let disk = Arc::new(plan.disk());
        let blocks = disk.clone();
        let format = plan.format();
        let info = Reactor::new(None).run(async move { DiskDrive::format(blocks, format).await });
        let capacity_bytes = node::capacity_bytes(&info.expect("nothing fails"));
        let hosts = hosts(&plan, capacity_bytes);
        let (tally, mounts, opened, lost) = (Tally::default(), 0, 0, 0);
        Self { hosts, plan, disk, rng, tally, mounts, opened, lost }
    }

    /// Lets the drive live all its lives, and checks what it answered.
    pub(crate) fn run(mut self) -> Tally {
        for number in 0..LIVES {
            if number > 0 {
                for _ in 0..[0, 0, 1, 1, 2, 3][self.below(6)] {
                    let end = End::Change(self.rng.below(60));
                    self.live(end, false);
                }
            }
            let end = self.end();
            self.live(end, false);
        }
        self.live_last()
    }

    /// Lets the drive lose its power as the write, trim or flush of this number begins in its first
    /// life, and checks what it answered.
    pub(crate) fn run_until(mut self, change: u64) -> Tally {
        self.live(End::Change(change), false);
        self.live_last()
    }

    /// One more life, in which nothing new goes wrong and all is read.
    fn live_last(mut self) -> Tally {
        let faults = DiskFaults { unreadable: self.disk.unreadable(), ..DiskFaults::default() };
        self.disk = Arc::new(self.disk.killed(faults, self.plan.seed));
        self.live(End::Closed { after: None }, true);
        let disk_failed = self.tally.faults > 0;
        let mut tally = self.hosts.check(Excuses { hit: self.lost, is_worn: false, disk_failed });
        tally += self.tally;
        tally
    }

    fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.rng.below(bound)).expect("below a usize")
    }

    fn end(&mut self) -> End {
        let then = Nanos(self.rng.below(3_000_000));
        let operations = self.rng.below(self.hosts.operations_in_life());
        let after = Some(Nanos(self.rng.below(20_000_000)));
        match self.rng.below(8) {
            0 => End::Closed { after: None },
            1 => End::Closed { after },
            2..5 => End::Amid { operations, then },
            _ => End::Change(self.rng.below(500)),
        }
    }

    /// Opens the drive and lets hosts work, until it ends as `end` says.
    fn live(&mut self, end: End, is_last: bool) {
        trace::event(format_args!("mount {}, life {}: {end:?}", self.mounts, self.opened));
        let seed = self.plan.seed.wrapping_mul(1_000) + self.mounts;
        let power = Power::default();
        let rng = Rng::new(self.rng.next_u64());
        let may_be_cut = self.lost > 0;
        let finishes = matches!(end, End::Closed { .. });
        let (number, power_of_life) = (self.opened, power.clone());
        let life = Life { number, is_last, finishes, power: power_of_life, may_be_cut, rng };
        let mount = Rc::new(Mount::default());
        let shuffle = (self.plan.seed % 2 == 1).then_some(seed);
        let mut reactors = PeerGroup::new(self.plan.reactors, seed, shuffle);
        reactors.set_trace(|| trace::is_on().then(trace::sink));
        let places = reactors.places();
        let at = reactors.run(async {
            if let End::Change(number) = end {
                self.disk.cut_at(number);
            }
            let pool = self.pool(&places, seed);
            clock::spawn(self.work(&mount, life, places, pool));
            self.wait_for(end, &mount).await;
            power.cut();
            trace::event(format_args!("it ends"));
            clock::now()
        });
        self.count(&mount);
        drop(reactors);
        let is_cut = self.disk.is_cut();
        // The power of the disk goes, or only the process that uses it.
        let is_killed = !is_cut && self.rng.below(3) == 0;
        let durability = self.plan.options.durability;
        let forgets = !is_killed && !mount.is_closed.get() && durability == Durability::EverySecond;
        drop(mount);
        self.hosts.cut_off(Loss { at, forgets, is_lasting: !is_killed });
        let unreadable = self.disk.unreadable();
        let faults = self.plan.faults(unreadable, &mut self.rng);
        let left = self.plan.left(&mut self.rng);
        let disk = &self.disk;
        self.disk = Arc::new(if is_killed {
            disk.killed(faults, seed)
        } else {
            disk.cut(left, faults, seed)
        });
    }

    fn count(&mut self, mount: &Mount) {
        self.tally.cuts += 1;
        self.mounts += 1;
        let counts = self.disk.counts();
        self.tally.faults += counts.failed_reads + counts.failed_changes;
        self.lost += records_lost(&self.disk);
        let Some(target) = mount.target.borrow().clone() else {
            self.tally.cuts_of_opening += 1;
            return;
        };
        self.tally.victims += target.store().counters().victims;
        if self.opened > 0 {
            match mount.how.get() {
                How::Checkpoint => self.tally.checkpoints += 1,
                How::Scan => self.tally.scans += 1,
            }
        }
        self.opened += 1;
    }

    /// Lets the other reactors do work of the drive. In one of two lives they end that at some
    /// instant.
    fn pool(&self, places: &Places, seed: u64) -> Arc<WorkPool> {
        let (pool, mut rng) = (Arc::<WorkPool>::default(), Rng::new(seed));
        for place in 1..self.plan.reactors {
            let after = (rng.below(2) == 0).then(|| Nanos(rng.below(20_000_000)));
            let pool = pool.clone();
            places.spawn(place, async move {
                let worker = pool.join();
                if let Some(after) = after {
                    clock::sleep(after, Stage::Queue).await;
                    worker.leave().await;
                }
            });
        }
        pool
    }

    /// Opens the drive and works on it.
    fn work(
        &self,
        mount: &Rc<Mount>,
        mut life: Life,
        places: Places,
        pool: Arc<WorkPool>,
    ) -> impl Future<Output = ()> + use<> {
        let (hosts, disk, mount) = (self.hosts.clone(), self.disk.clone(), mount.clone());
        let DiskPlan { options, reactors, .. } = self.plan;
        async move {
            let drive = match DiskDrive::open_among(pool, disk.clone(), options).await {
                Ok(drive) => drive,
                Err(error) => {
                    trace::event(format_args!("it does not open: {error}"));
                    let counts = disk.counts();
                    let faults = counts.failed_reads + counts.failed_changes;
                    assert!(faults > 0, "nothing has failed, and it does not open: {error}");
                    mount.is_over.set(true);
                    return;
                }
            };
            trace::event(format_args!("{:?}", drive.recovery()));
            mount.how.set(drive.recovery().how);
            life.may_be_cut |= drive.recovery().lost_pages > 0 || records_lost(&disk) > 0;
            let target = Rc::new(DiskTarget::new(drive, disk, places, reactors));
            *mount.target.borrow_mut() = Some(target.clone());
            hosts.opened();
            hosts.live(target, life).await;
            mount.is_done.set(true);
        }
    }

    /// Waits while `is_busy`, a life at most.
    async fn wait_while(&self, mount: &Mount, mut is_busy: impl FnMut() -> bool) {
        while is_busy() && !mount.is_over.get() && !self.disk.is_cut() {
            assert!(clock::now() < LIFE_MAX, "no progress: {:?}", self.disk.counts());
            clock::sleep(STEP, Stage::Core).await;
        }
    }

    async fn wait_for(&self, end: End, mount: &Rc<Mount>) {
        let is_working = || !mount.is_done.get();
        let then = match end {
            End::Change(_) => {
                self.wait_while(mount, is_working).await;
                return;
            }
            End::Amid { operations, then } => {
                self.wait_while(mount, || mount.target.borrow().is_none()).await;
                let enough = self.hosts.operations() + operations;
                let few = || is_working() && self.hosts.operations() < enough;
                self.wait_while(mount, few).await;
                then
            }
            End::Closed { after } => {
                self.wait_while(mount, is_working).await;
                let Some(target) = mount.target.borrow().clone() else { return };
                let closing = mount.clone();
                clock::spawn(async move {
                    let closed = target.drive.close().await;
                    let excused = target.may_fail_to_flush() || target.records_hit() > 0;
                    assert!(closed.is_ok() || excused, "{closed:?}");
                    closing.is_closed.set(closed.is_ok());
                    closing.is_over.set(true);
                });
                match after {
                    Some(after) => after,
                    None => return self.wait_while(mount, || !mount.is_over.get()).await,
                }
            }
        };
        clock::sleep(then, Stage::Core).await;
    }
}

impl Drop for DiskDriver {
    /// Says what a seed that fails stands for.
    fn drop(&mut self) {
        if std::thread::panicking() && !is_quiet() {
            eprintln!("{:?}", self.plan);
        }
    }
}
