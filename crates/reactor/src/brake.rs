use base::Nanos;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The wall clock, as the time of a run that began at some instant of its clock.
#[derive(Debug)]
pub(crate) struct Brake {
    started: Instant,
    start: Nanos,
    latest: Cell<Nanos>,
}

/// The last of a wait is spun: what a sleep may take longer than it was asked to on a kernel whose
/// timers have their usual 50 us of slack, with as much for waking up.
pub(crate) const SPUN: Duration = Duration::from_micros(100);

impl Brake {
    /// Maps the present of the wall clock to `start`.
    pub(crate) fn new(start: Nanos) -> Self {
        Self { started: Instant::now(), start, latest: Cell::new(start) }
    }

    #[inline]
    pub(crate) fn wall(&self) -> Nanos {
        let nanos = self.started.elapsed().as_nanos();
        let nanos = u64::try_from(nanos).expect("a run is shorter than 500 years");
        let wall = self.start + Nanos(nanos);
        self.latest.set(wall);
        wall
    }

    /// Returns what [`Self::wall`] returned last, for callers that asked a moment ago.
    #[inline]
    pub(crate) fn latest(&self) -> Nanos {
        self.latest.get()
    }

    /// Returns when the wall has reached `until`.
    pub(crate) fn wait(&self, until: Nanos) {
        let left = Duration::from_nanos(until.0.saturating_sub(self.wall().0));
        std::thread::sleep(left.saturating_sub(SPUN));
        while self.wall() < until {
            std::hint::spin_loop();
        }
    }
}
