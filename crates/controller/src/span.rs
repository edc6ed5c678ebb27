use base::Buf;
use spec::{Command, Status};

/// Most bytes that a command moves over the link: 2 MiB, as long as the longest value. A drive says
/// so in the field MDTS (Base 2.1, Identify Controller data structure).
pub(crate) const TRANSFER_BYTES_MAX: u32 = base::limits::VALUE_BYTES_MAX;

/// A run of logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Span {
    /// The blocks that a command names in the usual place.
    #[inline]
    pub(crate) fn of(command: &Command) -> Self {
        Self { first: command.lba(), count: command.blocks().into() }
    }

    /// The same, if a namespace of `blocks` logical blocks has them all.
    #[inline]
    pub(crate) fn within(self, blocks: u64) -> Result<Self, Status> {
        let fits = self.count <= blocks && self.first <= blocks - self.count;
        if fits { Ok(self) } else { Err(Status::LBA_OUT_OF_RANGE) }
    }

    /// Whether a block is in both.
    #[inline]
    pub(crate) fn overlaps(self, other: Self) -> bool {
        let end = |span: Self| span.first.saturating_add(span.count);
        self.first < end(other) && other.first < end(self)
    }

    /// How many bytes they are, if a command may move as many.
    #[inline]
    pub(crate) fn transfer(self, block_bytes: u32) -> Result<u32, Status> {
        match u32::try_from(self.count * u64::from(block_bytes)) {
            Ok(bytes) if bytes <= TRANSFER_BYTES_MAX => Ok(bytes),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// How many bytes they are, if a command may move as many and its `data` has them.
    #[inline]
    pub(crate) fn fetch(self, block_bytes: u32, data: &Buf) -> Result<u32, Status> {
        let bytes = self.transfer(block_bytes)?;
        if data.len() == bytes { Ok(bytes) } else { Err(Status::INVALID_FIELD) }
    }

    /// The same blocks in runs of at most `most`, in order.
    pub(crate) fn parts(self, most: u64) -> impl Iterator<Item = Self> {
        let end = self.first + self.count;
        let firsts = (self.first..end).step_by(usize::try_from(most).unwrap_or(usize::MAX));
        firsts.map(move |first| Self { first, count: most.min(end - first) })
    }

    /// How many they are. Of a command it is never more than a `u32` counts.
    #[inline]
    pub(crate) fn short(self) -> u32 {
        u32::try_from(self.count).expect("a command names fewer than 2^32 blocks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_within_what_has_all_its_blocks() {
        let within = |first, count, blocks| Span { first, count }.within(blocks).is_ok();
        assert!(within(0, 8, 8) && within(7, 1, 8) && within(8, 0, 8));
        assert!(!within(0, 9, 8) && !within(7, 2, 8) && !within(8, 1, 8));
        assert!(!within(u64::MAX, 2, u64::MAX) && !within(u64::MAX, 65_536, 8));
    }

    #[test]
    fn spans_overlap_that_share_a_block() {
        let overlap = |a: (u64, u64), b: (u64, u64)| {
            let [a, b] = [a, b].map(|(first, count)| Span { first, count });
            assert_eq!(a.overlaps(b), b.overlaps(a));
            a.overlaps(b)
        };
        assert!(overlap((3, 2), (4, 1)) && overlap((3, 2), (0, 9)) && overlap((3, 2), (3, 2)));
        assert!(!overlap((3, 2), (5, 1)) && !overlap((3, 2), (0, 3)));
    }

    #[test]
    fn the_parts_of_a_span_are_the_span() {
        let parts = |first, count, most| -> Vec<(u64, u64)> {
            Span { first, count }.parts(most).map(|part| (part.first, part.count)).collect()
        };
        assert_eq!(parts(5, 10, 4), [(5, 4), (9, 4), (13, 2)]);
        assert_eq!(parts(5, 4, 4), [(5, 4)]);
        assert_eq!(parts(5, 0, 4), []);
    }

    #[test]
    fn a_transfer_has_at_most_2_mib() {
        let transfer = |count, block_bytes| Span { first: 0, count }.transfer(block_bytes);
        assert_eq!(transfer(512, 4_096), Ok(2 << 20));
        assert_eq!(transfer(513, 4_096), Err(Status::INVALID_FIELD));
        assert_eq!(transfer(65_536, 65_536), Err(Status::INVALID_FIELD));
    }
}
