/// Records that a task handles before others have a turn: each may need memory that no cache has.
pub(crate) const SHARE_OF_A_TURN: usize = 16;

/// Counts the records that a task has handled since it gave way.
///
/// Only in real time does a task give way: in virtual time no time passes between records.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    records: usize,
}

impl Turn {
    /// Counts `records`, and gives way to other tasks after each [`SHARE_OF_A_TURN`] of them. Work
    /// that `is_urgent` does not: a load that is late would not let it go on.
    #[inline]
    pub(crate) async fn took(&mut self, records: usize, is_urgent: bool) {
        self.records += records;
        if self.records >= SHARE_OF_A_TURN {
            self.records = 0;
            if !is_urgent {
                clock::give_way().await;
            }
        }
    }
}
