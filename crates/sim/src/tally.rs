use base::{human_bytes, mix};
use std::fmt;
use std::ops::AddAssign;

/// What a run went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations whose answers were checked.
    pub operations: u64,
    /// Extents that were cleaned.
    pub victims: u64,
    /// Losses of power, wherever they came.
    pub cuts: u64,
    /// Of these, those that came before the device was open.
    pub cuts_of_opening: u64,
    /// Times that the device was open again, by reading all that the flash held.
    pub scans: u64,
    /// The same, by what was kept for that.
    pub checkpoints: u64,
    /// Faults of the flash, or the disk.
    pub faults: u64,
    /// Values that were read without waiting.
    pub immediate_gets: u64,
    /// Values that were stored without waiting.
    pub immediate_puts: u64,
    /// Bytes of keys and values that were stored.
    pub stored_bytes: u64,
    /// Times that a host connected again.
    pub reconnections: u64,
    /// Stores and deletes of keys that were never answered.
    pub unanswered: u64,
    /// One number for all answers about keys, blocks or zones, and the times of commands and
    /// answers.
    pub digest: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.victims += other.victims;
        self.cuts += other.cuts;
        self.cuts_of_opening += other.cuts_of_opening;
        self.scans += other.scans;
        self.checkpoints += other.checkpoints;
        self.faults += other.faults;
        self.immediate_gets += other.immediate_gets;
        self.immediate_puts += other.immediate_puts;
        self.stored_bytes += other.stored_bytes;
        self.reconnections += other.reconnections;
        self.unanswered += other.unanswered;
        self.digest = mix(self.digest ^ other.digest);
    }
}

impl Tally {
    /// Times that the device was open again.
    pub const fn reopenings(&self) -> u64 {
        self.scans + self.checkpoints
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operations, victims, cuts, cuts_of_opening, faults, .. } = *self;
        let stored = human_bytes(self.stored_bytes);
        write!(f, "{operations} operations, {stored} stored, {victims} extents cleaned, ")?;
        write!(f, "{cuts} cuts, {cuts_of_opening} of them while opening, {faults} faults, ")?;
        write!(f, "opened again {} times by scan, ", self.scans)?;
        write!(f, "{} by checkpoint, {} reconnections, ", self.checkpoints, self.reconnections)?;
        write!(f, "{} changes of keys not answered", self.unanswered)
    }
}
