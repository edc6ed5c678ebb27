/// Records that a task handles before others have a turn. A record takes 300 to 800 instructions,
/// and memory that no cache has: some 1 us. So this is less than half of 50 us.
pub(crate) const SHARE_OF_A_TURN: usize = 16;

/// Bytes of values that a task moves before others have a turn. Copies and checksums take up to
/// 0.4 ns a byte, so these take 26 us.
const BYTES_OF_A_TURN: u64 = 64 << 10;

/// Counts the work that a task has done since it gave way.
///
/// Only in real time does a task give way: in virtual time no time passes between records. It does
/// so also while stores wait for room: tasks that need none are not to wait with them.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    records: usize,
    bytes: u64,
}

impl Turn {
    /// Counts `records`, and gives way to other tasks after each [`SHARE_OF_A_TURN`] of them.
    #[inline]
    pub(crate) async fn took(&mut self, records: usize) {
        self.took_bytes(records, 0).await;
    }

    /// As [`Self::took`], of records whose values have so many bytes in all, and gives way after
    /// each [`BYTES_OF_A_TURN`] too.
    #[inline]
    pub(crate) async fn took_bytes(&mut self, records: usize, bytes: u32) {
        self.records += records;
        self.bytes += u64::from(bytes);
        if self.records >= SHARE_OF_A_TURN || self.bytes >= BYTES_OF_A_TURN {
            *self = Self::default();
            clock::give_way().await;
        }
    }
}
