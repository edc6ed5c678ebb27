use crate::fabrics::count::Count;
use std::ops::Add;

/// Counters of executed I/O commands. All only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Commands that read data.
    pub reads: u64,
    /// Commands that wrote data.
    pub writes: u64,
    /// All other executed commands: those without host data, and failed ones.
    pub others: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            others: self.others + other.others,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

/// A sum of [`Work`] that one reactor adds to and others may read.
#[derive(Debug, Default)]
pub(crate) struct WorkCount {
    reads: Count,
    writes: Count,
    others: Count,
    bytes_read: Count,
    bytes_written: Count,
}

impl WorkCount {
    #[inline]
    pub(crate) fn add(&self, work: &Work) {
        self.reads.add(work.reads);
        self.writes.add(work.writes);
        self.others.add(work.others);
        self.bytes_read.add(work.bytes_read);
        self.bytes_written.add(work.bytes_written);
    }

    pub(crate) fn get(&self) -> Work {
        Work {
            reads: self.reads.get(),
            writes: self.writes.get(),
            others: self.others.get(),
            bytes_read: self.bytes_read.get(),
            bytes_written: self.bytes_written.get(),
        }
    }
}
