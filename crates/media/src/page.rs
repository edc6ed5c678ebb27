use crate::blocks::{Segments, cut};
use base::Buf;
use prefetch_index::prefetch_index;
use smallvec::SmallVec;

/// Spare bytes kept in the page itself: the headers of four records with keys of 16 bytes, which is
/// what a page of 16 KiB holds of the most usual values.
const SPARE_INLINE: usize = 216;

/// Data segments kept in the page itself.
const DATA_INLINE: usize = 4;

/// The content of a page: immutable once built, shared by reference from the log to the cells.
///
/// Headers and segments lie in one piece with it where they are few, so that reading a page is one
/// miss of the cache and not three.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Page {
    /// Where the page begins in memory, for [`Self::prefetch`].
    start: [u64; 0],
    spare: SmallVec<[u8; SPARE_INLINE]>,
    data: SmallVec<[Buf; DATA_INLINE]>,
}

impl Page {
    /// A page of these spare bytes and this data, in segments from its first byte. What is left of
    /// the page is padding.
    pub fn new(spare: &[u8], data: impl IntoIterator<Item = Buf>) -> Self {
        Self { start: [], spare: SmallVec::from_slice(spare), data: data.into_iter().collect() }
    }

    /// Record headers and keys; at most `Shape::spare_bytes`.
    #[inline]
    pub fn spare(&self) -> &[u8] {
        &self.spare
    }

    /// The segments of the data.
    #[inline]
    pub fn data(&self) -> &[Buf] {
        &self.data
    }

    /// Asks the processor for the page's memory ahead of its use.
    #[inline]
    pub fn prefetch(&self) {
        const LINE_WORDS: usize = 64 / size_of::<u64>();
        // The array by reference: by value it would be a copy, which lies elsewhere.
        let start: &[u64] = &self.start;
        for line in 0..size_of::<Self>().div_ceil(64) {
            prefetch_index(start, line * LINE_WORDS);
        }
    }

    /// The same of its segments up to number `last`, which lie elsewhere if they are many.
    #[inline]
    pub fn prefetch_segments(&self, last: usize) {
        // Each line of the cache begins within two segments of the line before.
        for segment in (0..=last).step_by(2) {
            prefetch_index(&self.data[..], segment);
        }
    }

    /// A copy with one bit turned over. `which` chooses a filled data segment or the spare bytes,
    /// in turn, and then the bit in it: what a fault does to a page.
    #[must_use]
    pub fn with_flipped_bit(&self, which: u64) -> Self {
        let mut page = self.clone();
        let mut filled: Vec<&mut Buf> =
            page.data.iter_mut().filter(|segment| segment.len() > 0).collect();
        let parts = filled.len() as u64 + u64::from(!page.spare.is_empty());
        assert!(parts > 0, "an empty page has no bit to flip");
        let part = usize::try_from(which % parts).expect("there are few parts");
        let bit = which / parts;
        match filled.get_mut(part) {
            Some(segment) => **segment = segment.with_flipped_bit(bit),
            None => {
                let at = bit % (page.spare.len() as u64 * 8);
                let byte = usize::try_from(at / 8).expect("within the spare bytes");
                page.spare[byte] ^= 1 << (at % 8);
            }
        }
        page
    }

    /// Bytes of data, without padding.
    pub fn data_bytes(&self) -> u32 {
        self.data.iter().map(Buf::len).sum()
    }

    /// The segments of `len` data bytes from `start`, each cut to the range; `None` when the page
    /// is shorter. A range that is one segment, which is the common case, comes back without a
    /// copy.
    pub fn data_at(&self, start: u32, len: u32) -> Option<Buf> {
        if len == 0 {
            return Some(Buf::phantom(0, 0));
        }
        let end = start.checked_add(len)?;
        let mut parts = Vec::new();
        let mut at = 0;
        for segment in &self.data {
            let next = at + segment.len();
            if at <= start && end <= next {
                return Some(segment.slice(start - at..end - at));
            }
            if next > start && at < end {
                parts.push(segment.slice(start.max(at) - at..end.min(next) - at));
            }
            at = next;
        }
        if at < end { None } else { Buf::join(&parts) }
    }

    /// As [`Self::data_at`], scattered as the page has it: nothing is joined.
    #[inline]
    pub fn segments_at(&self, start: u32, len: u32) -> Option<Segments> {
        cut(&self.data, start, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let data = [Buf::copy_from(b"abc"), Buf::copy_from(b"defg")];
        Page::new(&[], data)
    }

    #[test]
    fn data_is_found_within_and_across_segments() {
        let bytes = |start, len| page().data_at(start, len).map(|b| b.bytes().unwrap().to_vec());
        assert_eq!(bytes(0, 3).unwrap(), b"abc");
        assert_eq!(bytes(4, 2).unwrap(), b"ef");
        assert_eq!(bytes(2, 3).unwrap(), b"cde");
        let scattered = page().segments_at(2, 3).unwrap();
        let scattered: Vec<_> = scattered.iter().map(|part| part.bytes().unwrap()).collect();
        assert_eq!(scattered, [b"c".as_slice(), b"de"]);
        assert!(page().segments_at(6, 2).is_none());
        assert_eq!(page().data_at(7, 0).unwrap().checksum(), 0, "nothing of any segment");
        assert!(bytes(5, 3).is_none(), "past the end");
    }
}
