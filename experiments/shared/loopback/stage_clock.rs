//! The CPU time of an echo's two stages, without the time that it spins.

use base::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pairs of readings by which a clock measures what a reading costs.
const TRIALS: usize = 1_001;

/// The CPU time of the stages so far. The echo adds to it; its client reads it.
#[derive(Debug, Default)]
pub struct StageTimes {
    receive: AtomicU64,
    reply: AtomicU64,
}

impl StageTimes {
    /// Returns the CPU time of reads and of the framing of requests.
    pub fn receive(&self) -> Nanos {
        Nanos(self.receive.load(Ordering::Relaxed))
    }

    /// Returns the CPU time of the framing of replies and of writes.
    pub fn reply(&self) -> Nanos {
        Nanos(self.reply.load(Ordering::Relaxed))
    }
}

/// Reads the CPU clock of the echo's thread between its stages.
pub(super) struct StageClock {
    /// Takes the times; without it the clock is not read.
    times: Option<Arc<StageTimes>>,
    /// The last reading.
    last: Nanos,
    /// The cost of a reading, which is subtracted from each time.
    cost: Nanos,
}

impl StageClock {
    /// Returns a clock of the calling thread.
    pub(super) fn new(times: Option<Arc<StageTimes>>) -> Self {
        let cost = if times.is_some() { reading_cost() } else { Nanos::ZERO };
        Self { times, last: Nanos::ZERO, cost }
    }

    /// Drops the time since the last reading: the thread has spun.
    #[inline]
    pub(super) fn skip(&mut self) {
        if self.times.is_some() {
            self.last = thread_cpu();
        }
    }

    /// Adds the time since the last reading to the receive stage.
    #[inline]
    pub(super) fn end_receive(&mut self) {
        self.end(|times| &times.receive);
    }

    /// Adds the time since the last reading to the reply stage.
    #[inline]
    pub(super) fn end_reply(&mut self) {
        self.end(|times| &times.reply);
    }

    #[inline]
    fn end(&mut self, stage: impl FnOnce(&StageTimes) -> &AtomicU64) {
        let Some(times) = &self.times else { return };
        let now = thread_cpu();
        let spent = (now - self.last).0.saturating_sub(self.cost.0);
        stage(times).fetch_add(spent, Ordering::Relaxed);
        self.last = now;
    }
}

/// Returns the median time between two readings with nothing between them.
fn reading_cost() -> Nanos {
    let mut costs: Vec<u64> = (0..TRIALS)
        .map(|_| {
            let before = thread_cpu();
            (thread_cpu() - before).0
        })
        .collect();
    costs.sort_unstable();
    Nanos(costs[TRIALS / 2])
}

fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).expect("it counts up from zero");
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}
