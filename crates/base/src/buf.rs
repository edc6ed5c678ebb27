use crate::checksum::{crc32c, hash64};
use crate::limits::BUF_ALIGN;
use prefetch_index::prefetch_index;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use triomphe::UniqueArc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// A reference-counted, sliceable run of value bytes, or a phantom of one.
///
/// A phantom has a length and a tag but no bytes: it stands for a value whose content is known from
/// its tag (a generated one), was reduced to its checksum, or was let go of. Everything below a
/// door moves buffers by reference; nothing copies them.
#[derive(Clone)]
pub struct Buf(Repr);

/// All lengths have the same place, so that reading one takes no branch.
#[derive(Clone)]
#[repr(u8)]
enum Repr {
    Bytes {
        len: u32,
        block: Shared,
        start: u32,
    },
    /// A part of bytes in one piece with their reference count.
    Small {
        start: u16,
        len: u32,
        bytes: Arc<[u8]>,
    },
    Phantom {
        len: u32,
        tag: u64,
    },
}

/// Memory in the unit that direct I/O wants, so that the block's start is aligned without `unsafe`.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Frame([u8; BUF_ALIGN]);

struct Block {
    frames: Box<[Frame]>,
    pool: Weak<Free>,
}

impl Block {
    /// Returns a zeroed block.
    fn new(frames: usize, pool: Weak<Free>) -> UniqueArc<Self> {
        let frames = <[Frame]>::new_box_zeroed_with_elems(frames)
            .expect("the allocator aborts before it runs out");
        UniqueArc::new(Self { frames, pool })
    }
}

/// A handle of a block whose bytes no longer change. The last one gives the block back to its pool,
/// with its reference count, so that neither is allocated again.
#[derive(Clone)]
struct Shared(Option<triomphe::Arc<Block>>);

impl Shared {
    #[inline]
    fn block(&self) -> &triomphe::Arc<Block> {
        self.0.as_ref().expect("a handle has its block until it is dropped")
    }

    fn is_same(&self, other: &Self) -> bool {
        triomphe::Arc::ptr_eq(self.block(), other.block())
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self.block().frames.as_bytes()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // If two reactors drop the last two handles at once, the allocator gets the block.
        self.0.take().map(triomphe::Arc::try_unique).into_iter().flatten().for_each(give_back);
    }
}

/// Gives a block back to its pool, if it has one.
fn give_back(block: UniqueArc<Block>) {
    if let Some(pool) = block.pool.upgrade() {
        pool.keep(block);
    }
}

/// Bytes of the counts that stand before the bytes of an `Arc<[u8]>`.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Bytes that [`Buf::prefetch`] asks for at most.
const PREFETCHED_BYTES: usize = 256;

/// Bytes of a line of the processor's caches.
const LINE_BYTES: usize = 64;

impl Buf {
    /// A value of `len` bytes of which only `tag` is kept.
    #[inline]
    pub const fn phantom(len: u32, tag: u64) -> Self {
        Self(Repr::Phantom { len, tag })
    }

    /// The part of `bytes` at `range`. Without a copy, if it lies within their first 64 KiB.
    #[inline]
    pub fn part_of(bytes: &Arc<[u8]>, range: Range<usize>) -> Self {
        match (u16::try_from(range.start), u16::try_from(range.len())) {
            (Ok(start), Ok(len)) => {
                assert!(range.end <= bytes.len(), "{range:?} of {} bytes", bytes.len());
                Self(Repr::Small { bytes: bytes.clone(), start, len: len.into() })
            }
            _ => Self::copy_from(&bytes[range]),
        }
    }

    /// A copy of `bytes` outside any pool. Only one of 64 KiB and more is aligned.
    pub fn copy_from(bytes: &[u8]) -> Self {
        if let Ok(len) = u16::try_from(bytes.len()) {
            return Self(Repr::Small { bytes: Arc::from(bytes), start: 0, len: len.into() });
        }
        let mut buf = BufMut::unpooled(bytes.len());
        buf.as_mut().copy_from_slice(bytes);
        buf.freeze()
    }

    /// Length in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "an empty value is as good as any other")]
    pub const fn len(&self) -> u32 {
        match &self.0 {
            Repr::Bytes { len, .. } | Repr::Small { len, .. } | Repr::Phantom { len, .. } => *len,
        }
    }

    /// Bytes of memory that this keeps in use, those around its own among them. 0 for a phantom.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            Repr::Bytes { block, .. } => block.bytes().len(),
            Repr::Small { bytes, .. } => bytes.len(),
            Repr::Phantom { .. } => 0,
        }
    }

    /// The bytes, unless this is a phantom.
    #[inline]
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Bytes { block, start, len } => {
                Some(&block.bytes()[*start as usize..][..*len as usize])
            }
            Repr::Small { bytes, start, len } => {
                Some(&bytes[usize::from(*start)..][..*len as usize])
            }
            Repr::Phantom { .. } => None,
        }
    }

    /// Copies `parts`, one after the other, over its content. Returns false and changes nothing if
    /// another handle exists, if this is a part of its allocation, if the lengths differ, or if a
    /// part is a phantom.
    pub fn overwrite(&mut self, parts: &[Self]) -> bool {
        let Repr::Small { bytes, len, .. } = &mut self.0 else { return false };
        let new: usize = parts.iter().map(|part| part.len() as usize).sum();
        let is_whole = bytes.len() == new && *len as usize == new;
        if !is_whole || parts.iter().any(|part| part.bytes().is_none()) {
            return false;
        }
        let Some(bytes) = Arc::get_mut(bytes) else { return false };
        copy_into(bytes, parts);
        true
    }

    /// Asks the processor for what will be touched when this is handed on and its bytes are read.
    #[inline]
    pub fn prefetch(&self) {
        match &self.0 {
            Repr::Bytes { block, .. } => prefetch_index(std::slice::from_ref(&**block.block()), 0),
            Repr::Small { bytes, start, len } => {
                prefetch_index(bytes, 0_usize.wrapping_sub(COUNTS_BYTES));
                let len = (*len as usize).min(PREFETCHED_BYTES);
                for line in (0..len).step_by(LINE_BYTES) {
                    prefetch_index(bytes, usize::from(*start) + line);
                }
            }
            Repr::Phantom { .. } => {}
        }
    }

    /// The tag of a phantom; XXH3 of the bytes otherwise.
    pub fn checksum(&self) -> u64 {
        match &self.0 {
            Repr::Phantom { tag, .. } => *tag,
            _ => hash64(self.bytes().unwrap_or_default()),
        }
    }

    /// CRC-32C of the bytes; of the tag, little endian, for a phantom.
    #[inline]
    pub fn crc32c(&self) -> u32 {
        match &self.0 {
            Repr::Phantom { tag, .. } => crc32c(&tag.to_le_bytes()),
            _ => crc32c(self.bytes().unwrap_or_default()),
        }
    }

    /// The part at `range`, without a copy. Each part of a phantom carries the whole one's tag.
    #[must_use]
    pub fn slice(&self, range: Range<u32>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "slice {range:?} of a buffer of {} bytes",
            self.len()
        );
        let len = range.end - range.start;
        match &self.0 {
            Repr::Bytes { block, start, .. } => {
                Self(Repr::Bytes { block: block.clone(), start: start + range.start, len })
            }
            Repr::Small { bytes, start, .. } => {
                let start = usize::from(*start) + range.start as usize;
                Self::part_of(bytes, start..start + len as usize)
            }
            Repr::Phantom { tag, .. } => Self::phantom(len, *tag),
        }
    }

    /// Makes this the part at `range` of what it was.
    #[inline]
    pub fn narrow(&mut self, range: Range<u32>) {
        if range == (0..self.len()) {
            return;
        }
        match &mut self.0 {
            Repr::Bytes { start, len, .. } if range.start <= range.end && range.end <= *len => {
                *start += range.start;
                *len = range.end - range.start;
            }
            _ => *self = self.slice(range),
        }
    }

    /// The parts one after the other. Neighbours in one block, and parts of one phantom, join
    /// without a copy; real bytes from different blocks are copied.
    ///
    /// Returns `None` when phantoms of different tags meet, or a phantom meets bytes: that is no
    /// value anyone stored.
    pub fn join(parts: &[Self]) -> Option<Self> {
        let mut others = parts.iter().filter(|part| part.len() > 0);
        let Some(first) = others.next() else { return Some(Self::phantom(0, 0)) };
        others.try_fold(first.clone(), |whole, next| whole.append(next)).or_else(|| copied(parts))
    }

    /// Returns both as one, if that needs no copy.
    fn append(&self, next: &Self) -> Option<Self> {
        match (&self.0, &next.0) {
            (Repr::Phantom { len, tag }, Repr::Phantom { len: more, tag: same }) if tag == same => {
                Some(Self::phantom(len + more, *tag))
            }
            (
                Repr::Bytes { block, start, len },
                Repr::Bytes { block: other, start: after, len: more },
            ) if block.is_same(other) && start + len == *after => {
                Some(Self(Repr::Bytes { block: block.clone(), start: *start, len: len + more }))
            }
            (
                Repr::Small { bytes, start, len },
                Repr::Small { bytes: other, start: after, len: more },
            ) if Arc::ptr_eq(bytes, other) && u32::from(*start) + len == u32::from(*after) => {
                let (start, end) = (usize::from(*start), usize::from(*after) + *more as usize);
                Some(Self::part_of(bytes, start..end))
            }
            _ => None,
        }
    }

    /// A copy with one bit turned over: bit `bit` of the bytes, or of the tag of a phantom. What a
    /// fault plan does to a medium; the original is untouched.
    #[must_use]
    pub fn with_flipped_bit(&self, bit: u64) -> Self {
        match &self.0 {
            Repr::Phantom { len, tag } => Self::phantom(*len, tag ^ (1 << (bit % 64))),
            _ => {
                let mut bytes = self.bytes().unwrap_or_default().to_vec();
                let bits = bytes.len() as u64 * 8;
                assert!(bits > 0, "an empty buffer has no bit to flip");
                let at = usize::try_from((bit % bits) / 8).expect("within the buffer");
                bytes[at] ^= 1 << (bit % 8);
                Self::copy_from(&bytes)
            }
        }
    }
}

/// Returns a copy of all parts, one after the other; `None` if one of them is a phantom.
fn copied(parts: &[Buf]) -> Option<Buf> {
    let parts = || parts.iter().filter(|part| part.len() > 0);
    if parts().any(|part| part.bytes().is_none()) {
        return None;
    }
    let len = parts().map(|part| part.len() as usize).sum();
    if u16::try_from(len).is_ok() {
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        copy_into(Arc::get_mut(&mut bytes).expect("it is new"), parts());
        return Some(Buf(Repr::Small { bytes, start: 0, len: buf_len(len) }));
    }
    let mut whole = BufMut::unpooled(len);
    copy_into(whole.as_mut(), parts());
    Some(whole.freeze())
}

/// Fills `whole` with the bytes of parts, none of which is a phantom.
fn copy_into<'a>(whole: &mut [u8], parts: impl IntoIterator<Item = &'a Buf>) {
    let mut at = 0;
    for part in parts.into_iter().filter_map(Buf::bytes) {
        whole[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Phantom { len, tag } => write!(f, "Buf(phantom of {len} bytes, {tag:016x})"),
            _ => write!(f, "Buf({} bytes)", self.len()),
        }
    }
}

/// A buffer that its only owner still fills.
pub struct BufMut {
    /// `None` once it was frozen.
    block: Option<UniqueArc<Block>>,
    len: u32,
}

impl BufMut {
    /// `len` zeroed bytes outside any pool.
    pub fn unpooled(len: usize) -> Self {
        Self { block: Some(Block::new(len.div_ceil(BUF_ALIGN), Weak::new())), len: buf_len(len) }
    }

    /// Ends the filling. The returned buffer is shared and immutable.
    pub fn freeze(mut self) -> Buf {
        let block = Shared(self.block.take().map(UniqueArc::shareable));
        Buf(Repr::Bytes { block, start: 0, len: self.len })
    }
}

impl AsMut<[u8]> for BufMut {
    fn as_mut(&mut self) -> &mut [u8] {
        let block = self.block.as_mut().expect("a buffer has its block until it is frozen");
        &mut block.frames.as_mut_bytes()[..self.len as usize]
    }
}

impl Drop for BufMut {
    fn drop(&mut self) {
        self.block.take().into_iter().for_each(give_back);
    }
}

impl fmt::Debug for BufMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufMut({} bytes)", self.len)
    }
}

fn buf_len(len: usize) -> u32 {
    u32::try_from(len).expect("a buffer is far smaller than 4 GiB")
}

/// Hands out buffers and takes their memory back when the last reference is dropped.
#[derive(Clone, Debug)]
pub struct BufPool(Arc<Free>);

struct Free {
    /// A list for each [`Size`].
    classes: Vec<Mutex<Vec<UniqueArc<Block>>>>,
    /// Bytes that each list keeps at most; the rest goes back to the allocator.
    class_bytes_max: usize,
}

impl Free {
    /// Keeps a block for reuse, unless its list has enough.
    fn keep(&self, block: UniqueArc<Block>) {
        let frames = block.frames.len();
        let Some(class) = self.classes.get(Size::of(frames).class) else { return };
        let mut list = class.lock().unwrap_or_else(PoisonError::into_inner);
        if (list.len() + 1) * frames * BUF_ALIGN <= self.class_bytes_max {
            list.push(block);
        }
    }
}

impl fmt::Debug for Free {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Free(up to {} bytes of each size)", self.class_bytes_max)
    }
}

/// Frames of a pooled buffer: 1 to 4, and from there on four sizes for each doubling, so that a
/// buffer is less than a quarter longer than was asked for. What is stored keeps its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    frames: usize,
    /// The place of its list.
    class: usize,
}

impl Size {
    /// Up to 4 MiB, which is above the longest value.
    const CLASSES: usize = 36;

    /// The smallest of at least so many frames.
    fn of(frames: usize) -> Self {
        if frames <= 4 {
            let frames = frames.max(1);
            return Self { frames, class: frames - 1 };
        }
        let shift = (frames - 1).ilog2() - 2;
        let steps = ((frames - 1) >> shift) + 1;
        Self { frames: steps << shift, class: 4 * shift as usize + steps - 1 }
    }
}

impl BufPool {
    /// A pool that keeps up to `class_bytes_max` bytes of each buffer size for reuse.
    pub fn new(class_bytes_max: usize) -> Self {
        let classes = (0..Size::CLASSES).map(|_| Mutex::default()).collect();
        Self(Arc::new(Free { classes, class_bytes_max }))
    }

    /// A buffer of `len` bytes of unspecified content.
    pub fn take(&self, len: usize) -> BufMut {
        let size = Size::of(len.div_ceil(BUF_ALIGN));
        let class = self.0.classes.get(size.class);
        let class = class.map(|class| class.lock().unwrap_or_else(PoisonError::into_inner));
        let kept = class.and_then(|mut class| class.pop());
        let block = kept.unwrap_or_else(|| Block::new(size.frames, Arc::downgrade(&self.0)));
        BufMut { block: Some(block), len: buf_len(len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back_to_their_pool() {
        let pool = BufPool::new(1 << 20);
        let mut buf = pool.take(5_000);
        buf.as_mut().fill(9);
        let address = buf.as_mut().as_ptr() as usize;
        assert_eq!(address % BUF_ALIGN, 0);
        let buf = buf.freeze();
        let part = buf.slice(1..3);
        drop(buf);
        assert_ne!(pool.take(5_000).as_mut().as_ptr() as usize, address, "a slice still holds it");
        drop(part);
        let mut again = pool.take(5_000);
        assert_eq!(again.as_mut().as_ptr() as usize, address);
        assert!(again.as_mut().iter().all(|byte| *byte == 9), "a new buffer would have zeros");
    }

    #[test]
    fn a_buffer_that_was_not_frozen_comes_back_to_its_pool() {
        let pool = BufPool::new(1 << 20);
        pool.take(5_000).as_mut().fill(9);
        let mut again = pool.take(5_000);
        assert!(again.as_mut().iter().all(|byte| *byte == 9), "a new buffer would have zeros");
    }

    #[test]
    fn pooled_sizes_are_few_and_little_longer_than_asked_for() {
        let mut last = Size::of(0);
        for frames in 1..=1_024 {
            let size = Size::of(frames);
            assert!(
                size.frames >= frames && 4 * size.frames < 5 * frames + 4,
                "{frames}: {size:?}"
            );
            assert_eq!(Size::of(size.frames), size, "it comes back to its own list");
            let (is_same, is_next) = (size == last, size.class == last.class + 1);
            assert!(is_same || (is_next && size.frames > last.frames), "{frames}: {size:?}");
            last = size;
        }
        assert_eq!(last.class + 1, Size::CLASSES);
    }

    #[test]
    fn a_narrowed_buffer_is_its_slice() {
        let mut block = BufMut::unpooled(5_000);
        block.as_mut()[..3].copy_from_slice(b"abc");
        for whole in [block.freeze(), Buf::copy_from(b"abcdef"), Buf::phantom(6, 9)] {
            for range in [0..0, 0..6, 1..3, 2..6, 6..6] {
                let (part, mut narrowed) = (whole.slice(range.clone()), whole.clone());
                narrowed.narrow(range.clone());
                assert_eq!(narrowed.bytes(), part.bytes(), "{range:?}");
                assert_eq!((narrowed.len(), narrowed.crc32c()), (part.len(), part.crc32c()));
            }
        }
    }

    #[test]
    #[should_panic(expected = "slice 3..5001")]
    fn a_buffer_narrowed_out_of_range_panics() {
        BufMut::unpooled(5_000).freeze().narrow(3..5_001);
    }

    #[test]
    fn neighbours_join_without_a_copy() {
        let whole = Buf::copy_from(b"hello world");
        let parts = [whole.slice(0..4), whole.slice(4..4), whole.slice(4..11)];
        let joined = Buf::join(&parts).unwrap();
        assert_eq!(joined.bytes().unwrap(), b"hello world");
        assert_eq!(joined.bytes().unwrap().as_ptr(), whole.bytes().unwrap().as_ptr());
    }

    #[test]
    fn parts_of_shared_bytes_are_cut_and_joined_without_a_copy() {
        let bytes: Arc<[u8]> = (0..70_000_u32).map(|at| (at % 251) as u8).collect();
        let part = Buf::part_of(&bytes, 60_000..65_500);
        let tail = part.slice(5_000..5_500);
        assert_eq!(tail.bytes().unwrap().as_ptr(), bytes[65_000..].as_ptr());
        let joined = Buf::join(&[part.slice(0..5_000), tail]).unwrap();
        assert_eq!(joined.bytes().unwrap().as_ptr(), bytes[60_000..].as_ptr());
        let apart = Buf::join(&[part.slice(0..10), part.slice(20..30)]).unwrap();
        assert_eq!(
            apart.bytes().unwrap(),
            [&bytes[60_000..60_010], &bytes[60_020..60_030]].concat()
        );
        for range in [0..70_000, 65_530..65_540, 65_535..70_000, 65_536..65_537, 69_999..70_000] {
            let far = Buf::part_of(&bytes, range.clone());
            assert_eq!(far.bytes().unwrap(), &bytes[range.clone()], "{range:?}");
            let one_less = far.slice(0..far.len() - 1);
            assert_eq!(one_less.bytes().unwrap(), &bytes[range.start..range.end - 1]);
        }
        assert_eq!(size_of::<Buf>(), 24, "a list of buffers is walked on each read");
    }

    #[test]
    fn strangers_join_by_copy_and_different_phantoms_never() {
        let joined = Buf::join(&[Buf::copy_from(b"ab"), Buf::copy_from(b"cd")]).unwrap();
        assert_eq!(joined.bytes().unwrap(), b"abcd");
        assert!(Buf::join(&[Buf::phantom(1, 5), Buf::phantom(1, 6)]).is_none());
        assert!(Buf::join(&[Buf::phantom(1, 5), Buf::copy_from(b"x")]).is_none());
        assert_eq!(Buf::join(&[Buf::phantom(1, 5), Buf::phantom(2, 5)]).unwrap().len(), 3);
    }

    #[test]
    fn a_flipped_bit_changes_the_checksums_and_not_the_original() {
        for buf in [Buf::copy_from(b"payload"), Buf::phantom(7, 42)] {
            let flipped = buf.with_flipped_bit(13);
            assert_ne!(flipped.crc32c(), buf.crc32c());
            assert_ne!(flipped.checksum(), buf.checksum());
            assert_eq!(flipped.with_flipped_bit(13).checksum(), buf.checksum());
        }
    }

    #[test]
    #[should_panic(expected = "slice 3..9")]
    fn a_slice_out_of_range_panics() {
        let _ = Buf::phantom(8, 0).slice(3..9);
    }

    #[test]
    fn what_is_held_once_and_as_long_is_overwritten() {
        let (mut buf, new) = (Buf::copy_from(b"abcd"), Buf::copy_from(b"efgh"));
        let other = buf.clone();
        assert!(!buf.overwrite(std::slice::from_ref(&new)), "another handle exists");
        assert_eq!((buf.bytes(), other.bytes()), (Some(&b"abcd"[..]), Some(&b"abcd"[..])));
        drop(other);
        assert!(buf.overwrite(std::slice::from_ref(&new)));
        assert_eq!(buf.bytes(), new.bytes());
        assert!(!buf.overwrite(&[Buf::copy_from(b"ij")]), "it is shorter");
        assert!(buf.overwrite(&[Buf::copy_from(b"ij"), Buf::copy_from(b"kl")]));
        assert_eq!(buf.bytes(), Some(&b"ijkl"[..]));
        assert!(!buf.overwrite(&[Buf::copy_from(b"ab"), Buf::phantom(2, 7)]));
        assert!(!buf.slice(0..2).overwrite(&[Buf::copy_from(b"ij")]), "it is a part");
        assert!(!buf.overwrite(&[Buf::phantom(4, 7)]));
        assert!(!Buf::phantom(4, 7).overwrite(&[new]));
        assert_eq!(buf.bytes(), Some(&b"ijkl"[..]), "what is refused changes nothing");
    }
}
