//! A page whose data are phantoms, but for what may stand at its front, in one piece of memory.
//!
//! ```text
//! | spare bytes' length | segments, and if the first is real | spare | front | lengths | tags |
//! ```
//! A real first segment, which is the front, has a length and no tag.

use crate::blocks::{Segments, cut_with, one_with};
use base::Buf;
use prefetch_index::prefetch_index;
use smallvec::SmallVec;
use std::sync::Arc;

pub(crate) const HEAD_BYTES: usize = 8;
const FRONT: u32 = 1 << 31;

/// Bytes of the reference counts, which lie before the page.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// What is fetched ahead: the page of a few values, and of one of many the first headers.
const PREFETCHED_BYTES: usize = 384;

/// What a page is but for its spare bytes.
struct Data<'a> {
    front: Option<&'a [u8]>,
    lens: &'a [[u8; 4]],
    tags: &'a [[u8; 8]],
}

/// Returns the two numbers at the beginning of a page in one piece of memory.
#[inline]
pub(crate) fn head(bytes: &[u8]) -> (u32, u32) {
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk().expect("the page begins with it");
    let word = |at: usize| u32::from_le_bytes(*head[at..].first_chunk().expect("it has two"));
    (word(0), word(4))
}

#[inline]
fn data(bytes: &[u8]) -> Data<'_> {
    let (spare_len, count) = head(bytes);
    let has_front = count & FRONT != 0;
    let count = (count & !FRONT) as usize;
    let tags_len = (count - usize::from(has_front)) * 8;
    let rest = &bytes[HEAD_BYTES + spare_len as usize..];
    let (rest, tags) = rest.split_at(rest.len() - tags_len);
    let (front, lens) = rest.split_at(rest.len() - count * 4);
    let front = has_front.then_some(front);
    Data { front, lens: lens.as_chunks().0, tags: tags.as_chunks().0 }
}

impl Data<'_> {
    #[inline]
    fn lens(&self) -> impl Iterator<Item = u32> {
        self.lens.iter().map(|len| u32::from_le_bytes(*len))
    }

    /// Segment `number` of the page that `bytes` are.
    #[inline]
    fn segment(&self, bytes: &Arc<[u8]>, number: usize) -> Buf {
        let Some(tag) = number.checked_sub(usize::from(self.front.is_some())) else {
            let start = HEAD_BYTES + spare(bytes).len();
            return Buf::part_of(bytes, start..start + self.front.map_or(0, <[u8]>::len));
        };
        let len = u32::from_le_bytes(self.lens[number]);
        Buf::phantom(len, u64::from_le_bytes(self.tags[tag]))
    }
}

/// `data` are phantoms.
pub(crate) fn pack(spare: &[u8], front: Option<&[u8]>, data: &[Buf]) -> Arc<[u8]> {
    let len32 = |len: usize| u32::try_from(len).expect("a page is far smaller than 2 GiB");
    let count = len32(data.len() + usize::from(front.is_some()));
    let count = if front.is_some() { count | FRONT } else { count };
    let mut bytes = SmallVec::<[u8; 512]>::new();
    bytes.extend_from_slice(&len32(spare.len()).to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(spare);
    bytes.extend_from_slice(front.unwrap_or_default());
    let front_len = front.map(|front| len32(front.len()));
    for len in front_len.into_iter().chain(data.iter().map(Buf::len)) {
        bytes.extend_from_slice(&len.to_le_bytes());
    }
    for segment in data {
        bytes.extend_from_slice(&segment.checksum().to_le_bytes());
    }
    Arc::from(&bytes[..])
}

#[inline]
pub(crate) fn spare(bytes: &[u8]) -> &[u8] {
    &bytes[HEAD_BYTES..][..head(bytes).0 as usize]
}

#[inline]
pub(crate) fn front(bytes: &[u8]) -> Option<&[u8]> {
    data(bytes).front
}

pub(crate) fn data_bytes(bytes: &[u8]) -> u32 {
    data(bytes).lens().sum()
}

pub(crate) fn segments(bytes: &Arc<[u8]>) -> impl Iterator<Item = Buf> {
    let data = data(bytes);
    (0..data.lens.len()).map(move |number| data.segment(bytes, number))
}

#[inline]
pub(crate) fn one(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Buf> {
    let data = data(bytes);
    one_with(data.lens(), start, len, |number, range| data.segment(bytes, number).slice(range))
}

#[inline]
pub(crate) fn cut(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Segments> {
    let data = data(bytes);
    cut_with(data.lens(), start, len, |number, range| data.segment(bytes, number).slice(range))
}

/// From byte `start` on, the spare bytes and `front_len` bytes of the front after them.
pub(crate) fn headers(bytes: &Arc<[u8]>, start: usize, front_len: usize) -> Buf {
    let end = HEAD_BYTES + spare(bytes).len() + front_len;
    Buf::part_of(bytes, HEAD_BYTES + start..end)
}

#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    prefetch_index(bytes, 0_usize.wrapping_sub(COUNTS_BYTES));
    let last = bytes.len().min(PREFETCHED_BYTES) - 1;
    for line in (64 - COUNTS_BYTES..last).step_by(64) {
        prefetch_index(bytes, line);
    }
    prefetch_index(bytes, last);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Page;

    /// Pages that hold the same: one packed, one not.
    fn both(front: Option<&[u8]>, phantoms: u32) -> (Page, Page) {
        let spare = b"the spare bytes";
        let data = || (0..phantoms).map(|n| Buf::phantom(n % 5, u64::from(n) << 40));
        let packed = match front {
            Some(front) => Page::with_front(spare, front, data()),
            None => Page::new(spare, data()),
        };
        // A real segment, even one of no bytes, keeps a page from being packed.
        let apart = front.map(Buf::copy_from).into_iter().chain(data());
        (packed, Page::new(spare, apart.chain([Buf::copy_from(b"")])))
    }

    fn content(segments: &[Buf]) -> Vec<(u32, Option<Vec<u8>>, u64)> {
        let filled = segments.iter().filter(|segment| segment.len() > 0);
        let of = |buf: &Buf| (buf.len(), buf.bytes().map(<[u8]>::to_vec), buf.checksum());
        filled.map(of).collect()
    }

    #[test]
    fn a_packed_page_holds_what_one_that_is_not_holds() {
        for front in [None, Some(&b"at the front"[..])] {
            for phantoms in [0, 1, 2, 7, 300] {
                let (packed, apart) = both(front, phantoms);
                assert_eq!(packed.spare(), b"the spare bytes");
                assert_eq!(packed.front(), front);
                assert_eq!(packed.data_bytes(), apart.data_bytes());
                assert_eq!(content(&packed.segments()), content(&apart.segments()));
                let all = packed.data_bytes();
                for start in 0..all.min(40) {
                    for end in start..=all.min(40) + 1 {
                        let cut = |page: &Page| {
                            page.segments_at(start, end - start).map(|part| content(&part))
                        };
                        assert_eq!(cut(&packed), cut(&apart), "{start}..{end}");
                    }
                }
            }
        }
    }

    #[test]
    fn headers_are_the_spare_bytes_with_the_front_after_them() {
        let whole = b"the spare bytesat the front";
        for page in [both(Some(b"at the front"), 3).0, both(Some(b"at the front"), 3).1] {
            for start in 0..18 {
                for front_len in [4, 12] {
                    let parts = page.headers(start, front_len);
                    let bytes: Vec<u8> =
                        parts.flat_map(|part| part.bytes().unwrap().to_vec()).collect();
                    assert_eq!(bytes, &whole[start..15 + front_len], "{start} {front_len}");
                }
            }
        }
        let without = both(None, 3).0;
        let [headers]: [Buf; 1] = without.headers(4, 0).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(headers.bytes().unwrap(), b"spare bytes");
        assert_eq!(headers.bytes().unwrap().as_ptr(), without.spare()[4..].as_ptr());
    }
}
