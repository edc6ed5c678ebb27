use crate::geometry::{DieId, Geometry};
use crate::timing::Registers;
use base::Nanos;
use clock::{Stage, now, sleep_until};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The published model: computes when each die and channel becomes free as operations arrive. Later
/// operations cannot use time that an earlier one has booked but not reached, and classes have no
/// effect.
#[derive(Debug)]
pub(crate) struct Scalar {
    registers: Registers,
    free_at: Mutex<FreeAt>,
}

#[derive(Debug)]
struct FreeAt {
    dies: Vec<Nanos>,
    channels: Vec<Nanos>,
}

impl Scalar {
    pub(crate) fn new(geometry: &Geometry, registers: Registers) -> Self {
        let dies = vec![Nanos::ZERO; geometry.dies() as usize];
        let channels = vec![Nanos::ZERO; geometry.channels as usize];
        Self { registers, free_at: Mutex::new(FreeAt { dies, channels }) }
    }

    /// Senses for `array`, calls `sensed`, then transfers for `channel`.
    pub(crate) async fn sense<T>(
        &self,
        die: DieId,
        array: Nanos,
        channel: Nanos,
        sensed: impl FnOnce() -> T,
    ) -> T {
        let (start, end) = self.book_sense(die, array, channel);
        sleep_until(start, Stage::Queue).await;
        sleep_until(start + array, Stage::Array).await;
        let result = sensed();
        sleep_until(end - channel, Stage::Queue).await;
        sleep_until(end, Stage::Channel).await;
        result
    }

    /// Transfers for `channel`, calls `begun`, works for `array`, and returns the result of
    /// `begun`.
    pub(crate) async fn change<T>(
        &self,
        die: DieId,
        channel: Nanos,
        array: Nanos,
        begun: impl FnOnce() -> T,
    ) -> T {
        let (start, end) = self.book_change(die, channel, array);
        sleep_until(start, Stage::Queue).await;
        sleep_until(start + channel, Stage::Channel).await;
        sleep_until(end - array, Stage::Queue).await;
        let begun = begun();
        sleep_until(end, Stage::Array).await;
        begun
    }

    /// Returns when the sense starts and when the transfer ends.
    fn book_sense(&self, die: DieId, array: Nanos, channel: Nanos) -> (Nanos, Nanos) {
        let mut free_at = self.free_at();
        let (die_free, channel_free) = free_at.of(die);
        let start = now().max(*die_free);
        let sensed = start + array;
        let end = transfer(channel_free, sensed, channel);
        *die_free = match self.registers {
            Registers::Single => end,
            Registers::Double => sensed,
        };
        (start, end)
    }

    /// Returns when the transfer starts and when the array is done.
    fn book_change(&self, die: DieId, channel: Nanos, array: Nanos) -> (Nanos, Nanos) {
        let mut free_at = self.free_at();
        let (die_free, channel_free) = free_at.of(die);
        let from = match self.registers {
            Registers::Single => now().max(*die_free),
            Registers::Double => now(),
        };
        let transferred = transfer(channel_free, from, channel);
        *die_free = transferred.max(*die_free) + array;
        (transferred - channel, *die_free)
    }

    fn free_at(&self) -> MutexGuard<'_, FreeAt> {
        self.free_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreeAt {
    fn of(&mut self, die: DieId) -> (&mut Nanos, &mut Nanos) {
        let channel = die.0 as usize % self.channels.len();
        (&mut self.dies[die.0 as usize], &mut self.channels[channel])
    }
}

/// Books a transfer for `time`, not before `from`, and returns its end.
fn transfer(channel_free: &mut Nanos, from: Nanos, time: Nanos) -> Nanos {
    if time == Nanos::ZERO {
        return from;
    }
    *channel_free = from.max(*channel_free) + time;
    *channel_free
}
