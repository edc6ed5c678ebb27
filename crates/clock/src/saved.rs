use crate::resource::{Queue, SavedQueue};
use crate::schedule::{Schedule, with};
use crate::unix::UnixMillis;
use base::{Nanos, Rng};
use serde::{Deserialize, Serialize};

/// A clock on which nothing is left to happen, in a saved state.
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedClock {
    now: Nanos,
    unix_start: UnixMillis,
    next_tie: u64,
    shuffle: Option<Rng>,
    queues: Vec<SavedQueue>,
    /// How often those who wait longest were passed over at each station.
    stations: Vec<u32>,
}

/// The clock, whose tasks wait for nothing that comes by itself.
///
/// # Panics
/// When a timer is set.
pub fn save() -> SavedClock {
    with(|schedule| schedule.save())
}

/// Has the clock go on where another stopped that had the same resources. False, and no change,
/// when it had others.
pub fn restore(saved: SavedClock) -> bool {
    with(|schedule| schedule.restore(saved))
}

impl Schedule {
    fn save(&self) -> SavedClock {
        assert!(self.is_idle(), "a clock is saved when nothing is left to happen");
        SavedClock {
            now: self.now,
            unix_start: self.unix_start,
            next_tie: self.next_tie,
            shuffle: self.shuffle.clone(),
            queues: self.queues.iter().map(Queue::save).collect(),
            stations: self.stations.iter().map(|station| station.bypassed).collect(),
        }
    }

    fn restore(&mut self, saved: SavedClock) -> bool {
        let fits = saved.queues.len() == self.queues.len()
            && saved.stations.len() == self.stations.len()
            && saved.now >= self.now;
        if !fits || self.has_timers() {
            return false;
        }
        self.now = saved.now;
        self.unix_start = saved.unix_start;
        self.next_tie = saved.next_tie;
        self.shuffle = saved.shuffle;
        for (queue, saved) in self.queues.iter_mut().zip(saved.queues) {
            queue.restore(saved);
        }
        for (station, bypassed) in self.stations.iter_mut().zip(saved.stations) {
            station.bypassed = bypassed;
        }
        true
    }
}
