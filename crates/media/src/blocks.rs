use crate::error::Error;
use crate::traffic::Traffic;
use base::Buf;
use clock::{Class, LocalFuture};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Data as it is scattered in memory: buffers one after the other, which no block's bounds need to
/// respect. The lengths add up to whole logical blocks.
pub type Segments = SmallVec<[Buf; 4]>;

/// The sizes of a medium of blocks. They never change while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlocksShape {
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Logical blocks.
    pub blocks: u64,
    /// Pages that can be read or written side by side: how much work keeps the medium busy.
    pub parallelism: u32,
}

/// What will be done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It will be read.
    Read,
    /// It will be written.
    Write,
}

/// Logical blocks that are read and written in any order, as a disk has them.
///
/// Naming a block that there is not is the caller's mistake and panics. Of writes to one block that
/// are under way together any may be the last one.
pub trait Blocks: Send + Sync {
    /// The sizes of the medium.
    fn shape(&self) -> BlocksShape;

    /// Announces an access that begins at block `first`: what is known of the block may be
    /// prefetched into the processor's caches.
    fn expect(&self, _first: u64, _access: Access) {}

    /// The content of `count` blocks from `first`. A block that was never written, or trimmed since
    /// then, is zeros.
    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>>;

    /// Returns whether [`Self::read_at_once`] is worth a try.
    fn reads_at_once(&self) -> bool {
        false
    }

    /// Performs `reads`, each of a number of blocks from a first one on, without a task. Adds to
    /// `contents` what [`Self::read`] would return for each. `None`: the content has to be waited
    /// for, or cannot be read as it was written, and [`Self::read`] says more.
    fn read_at_once(&self, reads: &[(u64, u32)], contents: &mut Vec<Option<Segments>>) {
        contents.extend(reads.iter().map(|_| None));
    }

    /// Writes `data` from block `first` on. Whether it outlives a loss of power at once, or after
    /// the next [`Self::flush`], is up to the medium.
    fn write(&self, first: u64, data: Segments, class: Class)
    -> LocalFuture<'_, Result<(), Error>>;

    /// Gives up the content of `count` blocks from `first`.
    fn trim(&self, first: u64, count: u64, class: Class) -> LocalFuture<'_, Result<(), Error>>;

    /// Returns when all that was written before outlives a loss of power.
    fn flush(&self) -> LocalFuture<'_, Result<(), Error>>;

    /// What was read and written since it was opened, if that is counted here: on a disk.
    fn traffic(&self) -> Option<Traffic> {
        None
    }
}

/// The segments of `len` bytes from `start` of what `segments` hold one after the other; `None`
/// when they hold less.
#[inline]
pub fn cut(segments: &[Buf], start: u32, len: u32) -> Option<Segments> {
    let end = start.checked_add(len)?;
    if let Some(first) = segments.first()
        && len > 0
        && end <= first.len()
    {
        return Some(smallvec![first.slice(start..end)]);
    }
    let lens = segments.iter().map(Buf::len);
    cut_with(lens, start, len, |number, range| segments[number].slice(range))
}

/// Returns the same as [`cut`], of segments that the caller needs for nothing else.
pub fn cut_out(mut segments: Segments, start: u32, len: u32) -> Option<Segments> {
    let end = start.checked_add(len)?;
    if let [one] = &mut segments[..]
        && len > 0
        && end <= one.len()
    {
        one.narrow(start..end);
        return Some(segments);
    }
    cut(&segments, start, len)
}

/// The same of segments of these lengths, of which `part` makes parts.
#[inline]
pub(crate) fn cut_with(
    lens: impl Iterator<Item = u32>,
    start: u32,
    len: u32,
    part: impl Fn(usize, Range<u32>) -> Buf,
) -> Option<Segments> {
    let end = start.checked_add(len)?;
    let mut parts = Segments::new();
    let mut at = 0;
    for (number, len) in lens.enumerate() {
        let next = at + len;
        if next > start && at < end {
            parts.push(part(number, start.max(at) - at..end.min(next) - at));
        }
        at = next;
        if at >= end {
            break;
        }
    }
    (at >= end).then_some(parts)
}

/// The same, if it is in one segment.
#[inline]
pub(crate) fn one_with(
    lens: impl Iterator<Item = u32>,
    start: u32,
    len: u32,
    part: impl FnOnce(usize, Range<u32>) -> Buf,
) -> Option<Buf> {
    let end = start.checked_add(len)?;
    let mut at = 0;
    for (number, len) in lens.enumerate() {
        let next = at + len;
        if start < next {
            return (at <= start && end <= next).then(|| part(number, start - at..end - at));
        }
        at = next;
    }
    None
}
