//! A page of short values in one piece of memory: each is where its place on the page says.
//!
//! ```text
//! | spare bytes' length | length of the first segment, and that it is flat | spare | data |
//! ```
//! Headers are in the spare bytes and in the front, if there is one, so that they stand together.
//! The first segment is the front. Without one it is a value, or all of them.

use crate::blocks::{Segments, cut_with};
use crate::packed::{self, HEAD_BYTES, spare};
use base::{Buf, Slice};
use std::sync::Arc;

const FLAT: u32 = 1 << 30;

/// Returns the lengths at the beginning of a page whose first segment has `first_len` bytes.
fn head(spare: &[u8], first_len: usize) -> [u8; HEAD_BYTES] {
    let len = |len: usize| u32::try_from(len).expect("a page is far smaller than 1 GiB");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&len(spare.len()).to_le_bytes());
    head[4..].copy_from_slice(&(len(first_len) | FLAT).to_le_bytes());
    head
}

/// Makes a page of a front (or none) and values, one behind the other.
pub(crate) fn of(spare: &[u8], front: &[u8], values: &[u8]) -> Arc<[u8]> {
    let first = if front.is_empty() { values } else { front };
    [&head(spare, first.len()), spare, front, values].concat().into()
}

/// `None` if there is no data, or a phantom among them.
pub(crate) fn flatten(spare: &[u8], data: &[Buf]) -> Option<Arc<[u8]>> {
    let first = data.first()?.bytes()?;
    let data_bytes = data.iter().map(Buf::len).sum::<u32>() as usize;
    let mut page = Vec::with_capacity(HEAD_BYTES + spare.len() + data_bytes);
    page.extend_from_slice(&head(spare, first.len()));
    page.extend_from_slice(spare);
    for segment in data {
        page.extend_from_slice(segment.bytes()?);
    }
    Some(page.into())
}

/// Whether a page in one piece of memory is one of these.
#[inline]
pub(crate) fn is_flat(bytes: &[u8]) -> bool {
    packed::head(bytes).1 & FLAT != 0
}

#[inline]
fn front_len(bytes: &[u8]) -> u32 {
    packed::head(bytes).1 & !FLAT
}

#[inline]
fn data_start(bytes: &[u8]) -> usize {
    HEAD_BYTES + spare(bytes).len()
}

#[inline]
pub(crate) fn front(bytes: &[u8]) -> &[u8] {
    &bytes[data_start(bytes)..][..front_len(bytes) as usize]
}

pub(crate) fn data_bytes(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len() - data_start(bytes)).expect("a page is far smaller than 2 GiB")
}

/// The first segment, and the others as one.
pub(crate) fn segments(bytes: &Arc<[u8]>) -> Segments {
    cut(bytes, 0, data_bytes(bytes)).expect("all is there")
}

/// `len` data bytes from `start`.
#[inline]
pub(crate) fn one(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Slice<'_>> {
    Slice::new(bytes, data_start(bytes) + start as usize, len)
}

pub(crate) fn cut(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Segments> {
    let front_len = front_len(bytes);
    let lens = [front_len, data_bytes(bytes) - front_len];
    cut_with(lens.into_iter(), start, len, |number, range| {
        let start = range.start + if number == 0 { 0 } else { front_len };
        one(bytes, start, range.end - range.start).expect("it is there").to_buf()
    })
}

#[cfg(test)]
mod tests {
    use crate::Page;
    use base::Buf;

    const SPARE: &[u8] = b"the spare bytes";

    fn scattered(values: &[Buf]) -> Page {
        Page::with_front(SPARE, b"at the front", values.iter().cloned())
    }

    fn without_front(values: &[Buf]) -> Page {
        Page::new(SPARE, values.iter().cloned())
    }

    fn bytes(segments: &[Buf]) -> Vec<u8> {
        segments.iter().flat_map(|segment| segment.bytes().unwrap_or_default().to_vec()).collect()
    }

    #[test]
    fn a_flat_page_holds_what_a_scattered_one_holds() {
        let one = |n: u8| Buf::copy_from(&vec![n; n.into()]);
        for values in [0, 1, 2, 40] {
            let values: Vec<_> = (1..=values).map(one).collect();
            holds_the_same(&scattered(&values));
            if let [_, ..] = values[..] {
                holds_the_same(&without_front(&values));
            }
        }
    }

    fn holds_the_same(apart: &Page) {
        let flat = apart.clone().gathered();
        assert_eq!((flat.spare(), flat.front()), (SPARE, apart.front()));
        assert_eq!(flat.data_bytes(), apart.data_bytes());
        assert_eq!(bytes(&flat.segments()), bytes(&apart.segments()));
        let all = flat.data_bytes();
        for start in 0..all.min(40) {
            for len in 0..all.min(40) + 2 - start {
                let cut = |page: &Page| page.segments_at(start, len).map(|cut| bytes(&cut));
                assert_eq!(cut(&flat), cut(apart), "{start}, {len}");
                let joined = |page: &Page| page.data_at(start, len).map(|part| bytes(&[part]));
                assert_eq!(joined(&flat), joined(apart), "{start}, {len}");
                let value =
                    |page: &Page| page.value_at(start, len).map(|it| (it.len(), it.crc32c()));
                assert_eq!(value(&flat), value(apart), "{start}, {len}");
            }
        }
        let front_len = apart.front().map_or(0, <[u8]>::len).min(9);
        for start in 0..SPARE.len() + front_len {
            let headers = |page: &Page| bytes(&page.headers(start, front_len).collect::<Vec<_>>());
            assert_eq!(headers(&flat), headers(apart), "{start}");
        }
    }

    /// Parts of memory are named by 16 bits, and some of a page of 64 KiB lies behind that.
    #[test]
    fn a_flat_page_may_be_longer_than_its_parts_have_places() {
        let value = |n: u32| Buf::copy_from(&[n.to_le_bytes(); 100].concat());
        let values: Vec<_> = (0..170).map(value).collect();
        let flat = scattered(&values).gathered();
        for (start, n) in (12..).step_by(400).zip(0..170) {
            let read = flat.data_at(start, 400).unwrap();
            assert_eq!(read.bytes(), value(n).bytes(), "{n}");
        }
    }

    #[test]
    fn values_of_a_flat_page_are_had_without_a_copy() {
        let page = scattered(&[Buf::copy_from(b"one"), Buf::copy_from(b"two")]).gathered();
        let place = |start| page.data_at(start, 3).unwrap().bytes().unwrap().as_ptr();
        assert_eq!(place(15), place(12).wrapping_add(3));
        assert_eq!(page.front().unwrap().as_ptr(), place(12).wrapping_sub(12));
    }

    /// Whether what is first in `values` can be let go of by itself on a page of theirs.
    fn is_released(page: fn(&[Buf]) -> Page, values: &[Buf], start: u32) -> bool {
        let mut page = page(values).gathered();
        page.release(start, values[0].len());
        page.data_at(start, values[0].len()).unwrap().bytes().is_none()
    }

    #[test]
    fn only_short_values_lie_in_one_piece() {
        let [short, long] = [512, 513].map(|len| Buf::copy_from(&vec![1; len]));
        assert!(!is_released(scattered, std::slice::from_ref(&short), 12));
        assert!(!is_released(without_front, std::slice::from_ref(&short), 0));
        assert!(is_released(scattered, std::slice::from_ref(&long), 12));
        assert!(is_released(without_front, std::slice::from_ref(&long), 0));
        assert!(is_released(without_front, &[long.clone(), short.clone()], 0));
        let phantom = scattered(&[short, Buf::phantom(100, 7)]).gathered();
        assert_eq!(phantom.data_at(524, 100).unwrap().checksum(), 7);
    }

    #[test]
    fn a_short_value_beside_long_ones_keeps_no_page_of_others() {
        let page = scattered(&vec![Buf::copy_from(&[3; 100]); 50]).gathered();
        let short = page.data_at(12, 100).unwrap();
        assert!(short.held_bytes() > 5_000);
        let mixed = scattered(&[short, Buf::copy_from(&[1; 4_096])]).gathered();
        let short = mixed.data_at(12, 100).unwrap();
        assert_eq!((short.bytes(), short.held_bytes()), (Some(&[3; 100][..]), 100));
    }
}
