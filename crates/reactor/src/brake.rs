use base::Nanos;
use std::time::{Duration, Instant};

/// The wall clock, as the time of a run that began at some instant of its clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brake {
    started: Instant,
    start: Nanos,
}

/// The last of a wait is spun: what a sleep may take longer than it was asked to on a kernel whose
/// timers have their usual 50 us of slack, with as much for waking up.
const SPUN: Duration = Duration::from_micros(100);

impl Brake {
    /// From here on the wall goes on from `start`.
    pub(crate) fn new(start: Nanos) -> Self {
        Self { started: Instant::now(), start }
    }

    #[inline]
    pub(crate) fn wall(self) -> Nanos {
        let nanos = self.started.elapsed().as_nanos();
        self.start + Nanos(u64::try_from(nanos).expect("a run is shorter than 500 years"))
    }

    /// Returns when the wall has reached `until`.
    pub(crate) fn wait(self, until: Nanos) {
        let left = Duration::from_nanos(until.0.saturating_sub(self.wall().0));
        std::thread::sleep(left.saturating_sub(SPUN));
        while self.wall() < until {
            std::hint::spin_loop();
        }
    }
}
