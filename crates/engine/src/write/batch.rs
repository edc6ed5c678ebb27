//! Batches: several writes, in any key spaces, that happen together or not at all.
//!
//! 1. The latches of all keys are taken in one order, and all conditions are checked.
//! 2. The records are appended in one step, side by side in one extent, with consecutive numbers.
//!    Each says which of its neighbours are of its batch. The index points to all of them at once.
//! 3. The batch is answered when all its pages have landed. A reader of a member before that waits
//!    for all of them, not just for the member's own.
//! 4. Opening treats a batch as never written if one of its records was cut off: see `torn`.
//!
//! Copies by the cleaner are records on their own. It cleans extents whose pages have all landed,
//! and a batch lies in one extent: so the batch is whole by then, and stays so. After a loss of
//! power it passes over the records that opening has passed over.

use crate::ack::Ack;
use crate::error::Error;
use crate::hashed_key::HashedKey;
use crate::key_space::KeySpaceId;
use crate::store::Store;
use crate::write::announced::Announced;
use crate::write::change::{Change, Effect};
use crate::write::condition::{Condition, Write};
use crate::write::set::{Member, WriteSet};
use crate::write::size::Size;
use base::{Buf, Key};
use std::sync::Arc;

/// The most members of a batch, if the index takes as many.
const RECORDS_MAX: u32 = 1_024;

/// A member of a batch.
#[derive(Clone, Debug)]
pub struct BatchWrite {
    /// The key space.
    pub space: KeySpaceId,
    /// The key. A batch names each only once.
    pub key: Key,
    /// The operation on it.
    pub op: BatchOp,
}

/// The operation of a member of a batch.
#[derive(Clone, Debug)]
pub enum BatchOp {
    /// Stores a value.
    Put {
        /// The value.
        value: Buf,
        /// Under which condition, and for how long. One condition that is not met refuses the
        /// batch.
        write: Write,
    },
    /// Removes the key. One that does not exist needs nothing.
    Delete {
        /// Under which condition.
        condition: Condition,
    },
    /// Leaves the key unchanged: the batch is written only if the key meets the condition.
    Keep {
        /// The condition that the key must meet.
        condition: Condition,
    },
}

impl BatchOp {
    /// Removes the key, whatever it holds.
    pub const DELETE: Self = Self::Delete { condition: Condition::Always };
}

impl BatchWrite {
    fn change(&self) -> Change<'_> {
        let (condition, effect) = match &self.op {
            BatchOp::Put { value, write } => {
                (write.condition, Effect::Put { value, expires: write.expires })
            }
            BatchOp::Delete { condition } => (*condition, Effect::Delete),
            BatchOp::Keep { condition } => (*condition, Effect::Keep),
        };
        Change { space: self.space, key: HashedKey::new(&self.key), condition, effect }
    }
}

impl Store {
    /// Returns the most bytes of any batch: those of its values, and for each member 32 bytes and
    /// the key, and 8 if it expires, rounded up to 8. One of no more fits any empty extent,
    /// whatever the sizes of its members. The longest value of a batch need not be counted, if the
    /// batch fits an empty extent with it: see [`Self::takes_batch`].
    pub fn batch_bytes_max(&self) -> u64 {
        // Pages may stay half empty, so the records take at most half of the extent, and their
        // headers a quarter of it once more in its summary.
        let extent = match self.log.shape.frames {
            // A frame's headers take a unit at least, and two values that do not fit one frame fill
            // more than half of what they could.
            Some(_) => self.log.shape.extent_bytes() / 8,
            None => {
                let pages = u64::from(self.log.shape.pages_per_extent).saturating_sub(12);
                pages * u64::from(self.log.layout.bare_room()) / 4
            }
        };
        match self.config.ack {
            Ack::Program => extent,
            Ack::Buffer { bytes } => extent.min(bytes),
        }
    }

    /// Returns whether a batch is not too long.
    pub fn takes_batch(&self, writes: &[BatchWrite]) -> bool {
        let changes = writes.iter().map(BatchWrite::change);
        self.takes(writes.len(), Size::new(self.log.layout, changes))
    }

    fn takes(&self, members: usize, size: Size) -> bool {
        let max = self.batch_bytes_max();
        let is_short = size.bytes() <= max
            || size.bytes_but_longest() <= max && self.log.fits_empty_extent(size);
        is_short && members <= self.batch_records_max() as usize
    }

    /// Returns the most members of a batch.
    pub fn batch_records_max(&self) -> u32 {
        RECORDS_MAX.min(self.index.permit_max())
    }

    /// Does all of `writes`, or none of them: each may be in another key space. A batch of one
    /// member is a [`Self::put`] or a [`Self::delete`], but deleting a missing key is no error. A
    /// batch that writes nothing checks whether all its conditions are met at one instant.
    ///
    /// Durable on return, in the mode that [`Ack`] names, and all at once. [`Error::BatchTooLong`]
    /// and [`Error::BatchRepeatsKey`] are errors of the batch itself. If several conditions are not
    /// met, the error is that of the first one in the order of `writes`. An error has changed
    /// nothing.
    pub async fn write_batch(
        self: &Arc<Self>,
        writes: Vec<BatchWrite>,
        announced: Announced,
    ) -> Result<(), Error> {
        let max = self.value_bytes_max();
        let mut members: Vec<_> = writes.iter().map(|it| Member::from(it.change())).collect();
        if members.iter().any(|member| member.change.value_len() > max) {
            return Err(Error::ValueTooLong { max });
        }
        let size = if members.len() > 1 { Some(self.check_batch(&writes)?) } else { None };
        for write in &writes {
            self.table(write.space)?;
        }
        match (&mut members[..], size) {
            ([], _) => Ok(()),
            (members, Some(size)) => {
                self.write(WriteSet::together(members, size), announced).await.map(drop)
            }
            ([member, ..], None) => self.write(WriteSet::one(member), announced).await.map(drop),
        }
    }

    fn check_batch(&self, writes: &[BatchWrite]) -> Result<Size, Error> {
        let size = Size::new(self.log.layout, writes.iter().map(BatchWrite::change));
        if !self.takes(writes.len(), size) {
            let (max_bytes, max_records) = (self.batch_bytes_max(), self.batch_records_max());
            return Err(Error::BatchTooLong { max_bytes, max_records });
        }
        let mut names: Vec<_> = writes.iter().map(|it| (it.space, &it.key)).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::BatchRepeatsKey);
        }
        Ok(size)
    }
}
