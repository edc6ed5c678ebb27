use crate::queue::{Queue, SavedQueue};
use crate::schedule::{Schedule, with};
use crate::unix_millis::UnixMillis;
use base::{Nanos, Rng};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The resources of one device on a clock that several devices may share: those made between
/// [`Self::begin`] and [`Self::end`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    queues: Range<usize>,
    stations: Range<usize>,
}

impl Part {
    /// Returns an empty part, which begins with the next resource.
    pub fn begin() -> Self {
        with(|schedule| {
            let (queues, stations) = (schedule.queues.len(), schedule.stations.len());
            Self { queues: queues..queues, stations: stations..stations }
        })
    }

    /// Returns the part with all resources made since it began.
    #[must_use]
    pub fn end(self) -> Self {
        let end = Self::begin();
        Self {
            queues: self.queues.start..end.queues.end,
            stations: self.stations.start..end.stations.end,
        }
    }
}

/// The saved state of an idle clock and of one part of its resources.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedClock {
    now: Nanos,
    unix_start: UnixMillis,
    next_tie: u64,
    shuffle: Option<Rng>,
    queues: Vec<SavedQueue>,
    /// How often the oldest waiter was bypassed at each station.
    stations: Vec<u32>,
}

/// Saves the clock and the resources of `part`.
///
/// # Panics
/// When a timer is set.
pub fn save(part: &Part) -> SavedClock {
    with(|schedule| schedule.save(part))
}

/// Moves the clock forward to the saved instant, unless it is later already, and restores the
/// resources of `part`. Returns false and changes nothing if the resources differ in number or a
/// timer is set.
pub fn restore(part: &Part, saved: SavedClock) -> bool {
    with(|schedule| schedule.restore(part, saved))
}

impl Schedule {
    fn save(&self, part: &Part) -> SavedClock {
        assert!(self.is_idle(), "a clock is saved when nothing is left to happen");
        let stations = &self.stations[part.stations.clone()];
        SavedClock {
            now: self.now,
            unix_start: self.unix_start,
            next_tie: self.next_tie,
            shuffle: self.shuffle.clone(),
            queues: self.queues[part.queues.clone()].iter().map(Queue::save).collect(),
            stations: stations.iter().map(|station| station.bypassed).collect(),
        }
    }

    fn restore(&mut self, part: &Part, saved: SavedClock) -> bool {
        let fits =
            saved.queues.len() == part.queues.len() && saved.stations.len() == part.stations.len();
        if !fits || self.has_timers() {
            return false;
        }
        // Of two clocks that become one the date goes back for neither.
        let date = self.date_at(self.now).max(saved.unix_start.after(saved.now));
        self.now = self.now.max(saved.now);
        self.unix_start = UnixMillis(date.0 - self.now.0 / 1_000_000);
        self.unix_part = Nanos(0);
        self.next_tie = self.next_tie.max(saved.next_tie);
        self.shuffle = saved.shuffle;
        for (queue, saved) in self.queues[part.queues.clone()].iter_mut().zip(saved.queues) {
            queue.restore(saved);
        }
        let stations = self.stations[part.stations.clone()].iter_mut();
        for (station, bypassed) in stations.zip(saved.stations) {
            station.bypassed = bypassed;
        }
        true
    }
}
