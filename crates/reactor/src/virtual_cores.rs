use crate::driver::{self, Driver, Installed};
use crate::reactor::Reactor;
use crate::remote::Remote;
use crate::virtual_time::{CommonClock, CoreTimes, VirtualTime};
use base::{Nanos, Rng};
use clock::{BusyMeter, TaskId};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

/// One in so many polls is preceded by a look at mailboxes although there is more to do.
const LOOK_ONE_IN: u64 = 16;

/// The cores of reactors in virtual time: polls take time, messages arrive late, and cores stall.
pub(crate) struct VirtualCores {
    time: Arc<VirtualTime>,
    cores: Vec<Core>,
    rng: RefCell<Rng>,
}

struct Core {
    remote: Remote,
    /// When it polls the next task at the earliest.
    free_at: Cell<Nanos>,
    meter: Rc<BusyMeter>,
}

impl VirtualCores {
    pub(crate) fn new(count: usize, times: CoreTimes, seed: u64) -> Self {
        let time = VirtualTime::new(times, seed);
        let core = |_| Core {
            remote: Remote::of(Some(time.clone())).expect("the process has a free descriptor"),
            free_at: Cell::default(),
            meter: Rc::new(BusyMeter::new(Nanos::ZERO)),
        };
        let cores = (0..count).map(core).collect();
        Self { time, cores, rng: RefCell::new(Rng::new(base::mix(seed))) }
    }

    pub(crate) fn remotes(&self) -> Vec<Remote> {
        self.cores.iter().map(|core| core.remote.clone()).collect()
    }

    pub(crate) fn clock(&self) -> CommonClock {
        CommonClock::of(self.time.clone())
    }

    /// Returns the driver of the core at `place`.
    pub(crate) fn driver(&self, place: usize) -> Box<Driver> {
        Box::new(Driver::without_ring(&self.cores[place].remote))
    }

    /// Returns when the core at `place` polls a task that has something to do at `event`.
    pub(crate) fn earliest(&self, place: usize, event: Nanos) -> Nanos {
        event.max(self.cores[place].free_at.get())
    }

    /// Gives `reactor`, that of the core at `place`, a turn at `now`: see [`Reactor::step`].
    pub(crate) fn step(
        &self,
        (place, now): (usize, Nanos),
        reactor: &mut Reactor,
        poll_root: impl FnOnce(TaskId, &mut Context<'_>) -> bool,
    ) {
        let Core { remote, free_at, meter } = &self.cores[place];
        let outer = self.time.now();
        self.time.begin(now);
        remote.count(&meter.take(now), false);
        let looks_first = self.rng.borrow_mut().below(LOOK_ONE_IN) == 0;
        let mut slot = reactor.driver.take();
        {
            let _installed = Installed::new(&mut slot);
            let time = self.time.clone();
            let wall = Box::new(move || time.read());
            reactor.step_by_the_wall((now, wall), meter, looks_first, poll_root);
        }
        reactor.driver = slot;
        let (end, free) = self.time.end_poll();
        remote.count(&meter.take(end), true);
        free_at.set(free);
        self.time.begin(outer);
    }

    /// Stalls the core that runs. `work` gets the end of the stall, and gives the other cores turns
    /// until then. It returns the instant of the last turn.
    pub(crate) fn stall(&self, work: impl FnOnce(Nanos) -> Nanos) {
        let now = self.time.now();
        let last = driver::set_aside(|| work(self.time.end_of_stall(now)));
        self.time.begin(now.max(last));
    }
}

impl fmt::Debug for VirtualCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualCores, {} of them", self.cores.len())
    }
}
