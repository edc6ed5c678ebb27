use crate::geometry::BlockId;
use base::Nanos;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// Which faults an array has, and when. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultPlan {
    /// Draws what [`When::Ppm`] leaves to chance, and which bit flips.
    pub seed: u64,
    /// In any order. Each has its own draws, so that dropping the last leaves those before as they
    /// were.
    pub rules: Vec<FaultRule>,
}

/// A fault of some kind, of those steps that match all that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRule {
    /// What happens.
    pub kind: FaultKind,
    /// To which of the steps that match.
    pub when: When,
    /// Only on this die.
    pub die: Option<u32>,
    /// Only in blocks of this number within their die.
    pub block: Option<u32>,
    /// Only at pages of this number within their block. An erase has no page.
    pub page: Option<u32>,
    /// Only from this instant on.
    pub from: Nanos,
    /// Only before this instant.
    pub until: Option<Nanos>,
    /// At most so often.
    pub most: Option<u64>,
}

impl FaultRule {
    /// Returns a rule for steps anywhere and at any time.
    pub const fn new(kind: FaultKind, when: When) -> Self {
        let (die, block, page, from) = (None, None, None, Nanos::ZERO);
        Self { kind, when, die, block, page, from, until: None, most: None }
    }

    /// True when the rule applies to a step at this place and time.
    pub(crate) fn matches(&self, block: BlockId, page: Option<u32>, now: Nanos) -> bool {
        self.die.is_none_or(|die| die == block.die.0)
            && self.block.is_none_or(|number| number == block.block)
            && (self.page.is_none() || self.page == page)
            && self.from <= now
            && self.until.is_none_or(|until| now < until)
    }
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// A sense finds an uncorrectable page; the page stays so until its block is erased.
    UncorrectableRead,
    /// A sense permanently flips one bit of the page, without an error.
    FlippedBit,
    /// A program fails. Its page is used up and unreadable. Other programs of the block fail until
    /// it is erased, including those requested before.
    FailedProgram,
    /// An erase fails. Afterwards no page of the block can be read.
    FailedErase,
    /// A program or an erase fails, and so do all later ones of its block. If it is a program,
    /// pages programmed before stay readable.
    BadBlock,
    /// A step takes longer in the array.
    SlowDie {
        /// The time of a step in percent of its usual time; at least 100.
        percent: u32,
    },
}

/// Which of the steps that match a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Each step, with this chance in a million.
    Ppm(u32),
    /// This one of the steps, from 1.
    Nth(u64),
}

/// A fault that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The instant.
    pub at: Nanos,
    /// The kind of fault.
    pub kind: FaultKind,
    /// The block.
    pub block: BlockId,
    /// The page; `None` for an erase.
    pub page: Option<u32>,
    /// The number of the step among those of its kind in the whole array, from 1. For faults of
    /// reads: senses of readable pages. For other faults: programs or erases, or both for
    /// [`FaultKind::BadBlock`], of blocks that are not bad. For [`FaultKind::SlowDie`]: all steps
    /// that an array begins. A copy counts as a sense and a program.
    pub ordinal: u64,
}

impl Fault {
    /// Returns the rule that reproduces exactly this fault in a run that is the same up to there. A
    /// bit flips in the same place if the plan has the same seed.
    pub const fn rule(&self) -> FaultRule {
        FaultRule::new(self.kind, When::Nth(self.ordinal))
    }
}

/// The number of faults of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Pages that became unreadable.
    pub uncorrectable_reads: u64,
    /// Bits that flipped.
    pub flipped_bits: u64,
    /// Programs that failed.
    pub failed_programs: u64,
    /// Erases that failed.
    pub failed_erases: u64,
    /// Blocks that went bad.
    pub bad_blocks: u64,
    /// Steps of the array that took longer.
    pub slow_steps: u64,
}

impl FaultCounts {
    /// Returns the sum of all kinds.
    pub const fn total(&self) -> u64 {
        self.uncorrectable_reads
            + self.flipped_bits
            + self.failed_programs
            + self.failed_erases
            + self.bad_blocks
            + self.slow_steps
    }

    pub(crate) const fn of(&mut self, kind: FaultKind) -> &mut u64 {
        match kind {
            FaultKind::UncorrectableRead => &mut self.uncorrectable_reads,
            FaultKind::FlippedBit => &mut self.flipped_bits,
            FaultKind::FailedProgram => &mut self.failed_programs,
            FaultKind::FailedErase => &mut self.failed_erases,
            FaultKind::BadBlock => &mut self.bad_blocks,
            FaultKind::SlowDie { .. } => &mut self.slow_steps,
        }
    }
}

impl Add for FaultCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            uncorrectable_reads: self.uncorrectable_reads + other.uncorrectable_reads,
            flipped_bits: self.flipped_bits + other.flipped_bits,
            failed_programs: self.failed_programs + other.failed_programs,
            failed_erases: self.failed_erases + other.failed_erases,
            bad_blocks: self.bad_blocks + other.bad_blocks,
            slow_steps: self.slow_steps + other.slow_steps,
        }
    }
}

/// The faults that happened, counted and listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// The number of faults by kind.
    pub counts: FaultCounts,
    /// Faults in order of time, the first [`FaultReport::LISTED_MAX`] of each kind.
    pub list: Vec<Fault>,
    /// The number of faults that are not listed.
    pub unlisted: u64,
}

/// Appends the faults of another array, or of the same one after a loss of power.
impl Add for FaultReport {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.list.extend(other.list);
        let (counts, unlisted) = (self.counts + other.counts, self.unlisted + other.unlisted);
        Self { counts, unlisted, ..self }
    }
}

impl FaultReport {
    /// The most faults of one kind that are listed.
    pub const LISTED_MAX: u64 = 1_000;

    pub(crate) fn add(&mut self, fault: Fault) {
        let count = self.counts.of(fault.kind);
        *count += 1;
        if *count <= Self::LISTED_MAX {
            self.list.push(fault);
        } else {
            self.unlisted += 1;
        }
    }
}
