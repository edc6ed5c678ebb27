use std::ops::Sub;

/// What was executed: of a run, or of many operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Instructions in user space.
    pub(crate) instructions: i64,
    /// Instructions of this program that lock memory.
    pub(crate) locked: i64,
    /// Integer divisions of this program.
    pub(crate) divisions: i64,
    /// Calls that allocate memory.
    pub(crate) allocations: i64,
    /// Calls of memcpy and memmove.
    pub(crate) copies: i64,
    /// Calls that compute a CRC.
    pub(crate) checksums: i64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, fewer: Self) -> Self {
        Self {
            instructions: self.instructions - fewer.instructions,
            locked: self.locked - fewer.locked,
            divisions: self.divisions - fewer.divisions,
            allocations: self.allocations - fewer.allocations,
            copies: self.copies - fewer.copies,
            checksums: self.checksums - fewer.checksums,
        }
    }
}

impl Counts {
    /// Returns the means of `operations`, rounded to tenths, in the order of [`crate::table`].
    pub(crate) fn means(self, operations: u64) -> [f64; 6] {
        let Self { instructions, locked, divisions, allocations, copies, checksums } = self;
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let mean = |count: i64| (count as f64 * 10.0 / operations as f64).round() / 10.0;
        [instructions, locked, divisions, allocations, copies, checksums].map(mean)
    }
}
