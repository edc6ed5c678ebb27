use base::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A task to run at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) at: Nanos,
    /// Breaks ties at one instant.
    pub(crate) tie: u64,
    pub(crate) task: u32,
    /// The resource whose unit the task gives back, or one of the constants below.
    pub(crate) resource: u32,
}

impl Timer {
    /// No unit is given back.
    pub(crate) const NO_RESOURCE: u32 = u32::MAX;
    /// No unit is given back, and the task begins with this timer: input from outside.
    pub(crate) const ARRIVAL: u32 = u32::MAX - 1;
    /// The first number that means a station: add the place of the station.
    pub(crate) const STATION: u32 = 1 << 31;

    const fn slot(&self) -> u64 {
        self.at.0 >> SLOT_BITS
    }
}

impl Ord for Timer {
    /// Reversed, so that the earliest is the greatest: a heap returns it first, and a sorted list
    /// has it last.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.tie).cmp(&(self.at, self.tie))
    }
}

impl PartialOrd for Timer {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A slot is 64 ns long: at a million operations a second of simulated time it holds one or none.
const SLOT_BITS: u32 = 6;

/// Slots of the wheel: 262 us, longer than a sense and all transfers. Programs and erases wait in a
/// heap, and so do timers whose slot is taken; they are few.
const SLOTS: usize = 4096;

/// All timers, earliest first: a wheel for the near future and a heap for the rest.
///
/// A heap alone took a tenth of the time of a simulated retrieve (`experiments/speed.rs`).
#[derive(Debug)]
pub(crate) struct Timers {
    /// At most one timer in each slot.
    slots: Box<[Timer; SLOTS]>,
    /// One bit for each slot that has a timer, and one for each word of those bits that is not 0.
    filled: [u64; SLOTS / 64],
    filled_words: u64,
    /// The slot of the earliest timers, which are sorted here, the earliest last.
    slot: u64,
    current: Vec<Timer>,
    /// Timers beyond the wheel, and those that found their slot taken.
    others: BinaryHeap<Timer>,
    len: usize,
}

impl Default for Timers {
    fn default() -> Self {
        let none = Timer { at: Nanos::ZERO, tie: 0, task: 0, resource: Timer::NO_RESOURCE };
        Self {
            slots: vec![none; SLOTS].try_into().expect("it has a timer for each slot"),
            filled: [0; SLOTS / 64],
            filled_words: 0,
            slot: 0,
            current: Vec::new(),
            others: BinaryHeap::new(),
            len: 0,
        }
    }
}

impl Timers {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, timer: Timer) {
        self.len += 1;
        let slot = timer.slot();
        assert!(slot >= self.slot, "a timer is set for the future");
        if slot == self.slot {
            let at = self.current.partition_point(|other| *other < timer);
            self.current.insert(at, timer);
            return;
        }
        let at = place(slot);
        let (word, bit) = (&mut self.filled[at / 64], 1 << (at % 64));
        if slot - self.slot < SLOTS as u64 && *word & bit == 0 {
            *word |= bit;
            self.filled_words |= 1 << (at / 64);
            self.slots[at] = timer;
        } else {
            self.others.push(timer);
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Timer> {
        let timer = match self.current.pop() {
            Some(timer) => timer,
            None => self.advance()?,
        };
        self.len -= 1;
        Some(timer)
    }

    /// Returns when the earliest timer fires, without a move to its slot: earlier ones may still
    /// come.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<Nanos> {
        if let Some(timer) = self.current.last() {
            return Some(timer.at);
        }
        let near = self.next_filled().map(|slot| self.slots[place(slot)].at);
        let other = self.others.peek().map(|timer| timer.at);
        near.into_iter().chain(other).min()
    }

    /// Moves to the earliest slot that has timers, and takes the earliest of them.
    #[inline]
    fn advance(&mut self) -> Option<Timer> {
        let near = self.next_filled();
        let other = self.others.peek().map(Timer::slot);
        if let Some(slot) = near
            && other.is_none_or(|other| slot < other)
        {
            self.slot = slot;
            return Some(self.take_near(place(slot)));
        }
        self.slot = other?;
        self.sort_in(near == other)
    }

    /// Takes the earliest timer of the present slot, in which there are others and `near` one.
    fn sort_in(&mut self, near: bool) -> Option<Timer> {
        if near {
            let timer = self.take_near(place(self.slot));
            self.current.push(timer);
        }
        while self.others.peek().is_some_and(|timer| timer.slot() == self.slot) {
            self.current.extend(self.others.pop());
        }
        self.current.sort_unstable();
        self.current.pop()
    }

    /// Takes the timer of a filled slot.
    #[inline]
    fn take_near(&mut self, at: usize) -> Timer {
        self.filled[at / 64] &= !(1 << (at % 64));
        if self.filled[at / 64] == 0 {
            self.filled_words &= !(1 << (at / 64));
        }
        self.slots[at]
    }

    /// Returns the first filled slot after the current one, around the wheel.
    #[inline]
    fn next_filled(&self) -> Option<u64> {
        if self.filled_words == 0 {
            return None;
        }
        let start = place(self.slot + 1);
        let (word, bit) = (start / 64, start % 64);
        let rest = self.filled[word] & (u64::MAX << bit);
        let at = if rest == 0 {
            // First the later words, then the earlier ones, last the lower bits of this one.
            let words = self.filled_words;
            let after = words & (u64::MAX << word) & !(1 << word);
            let next = if after == 0 { words } else { after };
            let word = next.trailing_zeros() as usize;
            word * 64 + self.filled[word].trailing_zeros() as usize
        } else {
            word * 64 + rest.trailing_zeros() as usize
        };
        let ahead = (at + SLOTS - place(self.slot)) % SLOTS;
        Some(self.slot + ahead as u64)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below the number of slots")]
const fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Compares with a sorted list: distances from none to far beyond the wheel, and ties.
    #[test]
    fn timers_fire_in_order_of_time_and_tie() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (mut timers, mut model) = (Timers::default(), Vec::new());
            let mut now = 0;
            let reach = [100, 5_000, 300_000, 10_000_000][usize::try_from(seed % 4).unwrap()];
            for tie in 0..2_000 {
                if rng.below(3) > 0 {
                    let at = Nanos(now + rng.below(reach) / 10 * 10);
                    let timer = Timer { at, tie, task: 0, resource: 0 };
                    timers.push(timer);
                    model.push((at.0, tie));
                } else {
                    let earliest = model.iter().min().copied();
                    assert_eq!(timers.earliest(), earliest.map(|(at, _)| Nanos(at)));
                    let fired = timers.pop().map(|timer| (timer.at.0, timer.tie));
                    assert_eq!(fired, earliest, "seed {seed}");
                    model.retain(|entry| Some(*entry) != earliest);
                    now = earliest.map_or(now, |(at, _)| at);
                }
                assert_eq!(timers.len(), model.len());
            }
        }
    }
}
