//! A page of bytes in one piece of memory: of many short values, each is where its place on the
//! page says.
//!
//! ```text
//! | data | spare | length of the first segment | spare bytes' length |
//! ```
//! The data come first since a part of so much memory is had without a copy only if it begins
//! within 64 KiB.

use crate::blocks::{Segments, cut_with};
use base::Buf;
use std::io::Write;
use std::iter::repeat_n;
use std::sync::Arc;

const TAIL_BYTES: usize = 8;

const DATA_BYTES_MAX: u32 = 64 << 10;

/// `None` if there is a phantom among `data`, nothing at all, or more than 64 KiB.
pub(crate) fn flatten(spare: &[u8], data: &[Buf]) -> Option<Arc<[u8]>> {
    let front_len = data.first()?.len();
    let data_bytes = data.iter().map(Buf::len).sum::<u32>();
    if data_bytes > DATA_BYTES_MAX {
        return None;
    }
    let spare_len = u32::try_from(spare.len()).ok()?;
    let len = data_bytes as usize + spare.len() + TAIL_BYTES;
    let mut page: Arc<[u8]> = repeat_n(0, len).collect();
    let mut rest = Arc::get_mut(&mut page).expect("nobody else has it yet");
    let mut put = |bytes: &[u8]| rest.write_all(bytes).expect("there is room");
    for segment in data {
        put(segment.bytes()?);
    }
    put(spare);
    put(&front_len.to_le_bytes());
    put(&spare_len.to_le_bytes());
    Some(page)
}

/// What a page is.
struct Parts<'a> {
    data: &'a [u8],
    front_len: u32,
    spare: &'a [u8],
}

#[inline]
fn parts(bytes: &[u8]) -> Parts<'_> {
    let (bytes, spare_len) = bytes.split_last_chunk().expect("it has a tail");
    let (bytes, front_len) = bytes.split_last_chunk().expect("of two lengths");
    let (data, spare) = bytes.split_at(bytes.len() - u32::from_le_bytes(*spare_len) as usize);
    Parts { data, front_len: u32::from_le_bytes(*front_len), spare }
}

#[inline]
pub(crate) fn spare(bytes: &[u8]) -> &[u8] {
    parts(bytes).spare
}

#[inline]
pub(crate) fn front(bytes: &[u8]) -> &[u8] {
    let Parts { data, front_len, .. } = parts(bytes);
    &data[..front_len as usize]
}

pub(crate) fn data_bytes(bytes: &[u8]) -> u32 {
    u32::try_from(parts(bytes).data.len()).expect("it is at most 64 KiB")
}

/// The first segment, and the others as one.
pub(crate) fn segments(bytes: &Arc<[u8]>) -> Segments {
    cut(bytes, 0, data_bytes(bytes)).expect("all is there")
}

/// `len` data bytes from `start`.
#[inline]
pub(crate) fn one(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Buf> {
    let range = start as usize..start as usize + len as usize;
    (range.end <= parts(bytes).data.len()).then(|| Buf::part_of(bytes, range))
}

pub(crate) fn cut(bytes: &Arc<[u8]>, start: u32, len: u32) -> Option<Segments> {
    let front_len = parts(bytes).front_len;
    let lens = [front_len, data_bytes(bytes) - front_len];
    cut_with(lens.into_iter(), start, len, |number, range| {
        let start = range.start + if number == 0 { 0 } else { front_len };
        one(bytes, start, range.end - range.start).expect("it is there")
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

    fn bytes(segments: &[Buf]) -> Vec<u8> {
        segments.iter().flat_map(|segment| segment.bytes().unwrap_or_default().to_vec()).collect()
    }

    #[test]
    fn a_flat_page_holds_what_a_scattered_one_holds() {
        for values in [0, 1, 2, 40] {
            let values: Vec<_> =
                (1..=values).map(|n| Buf::copy_from(&vec![n; n as usize])).collect();
            let (apart, flat) = (scattered(&values), scattered(&values).flattened());
            assert_eq!(flat.spare(), SPARE);
            assert_eq!(flat.front().unwrap(), b"at the front");
            assert_eq!(flat.data_bytes(), apart.data_bytes());
            assert_eq!(bytes(&flat.segments()), bytes(&apart.segments()));
            let all = flat.data_bytes();
            for start in 0..all.min(40) {
                for len in 0..all.min(40) + 2 - start {
                    let cut = |page: &Page| page.segments_at(start, len).map(|cut| bytes(&cut));
                    assert_eq!(cut(&flat), cut(&apart), "{start}, {len}");
                    let joined = |page: &Page| page.data_at(start, len).map(|part| bytes(&[part]));
                    assert_eq!(joined(&flat), joined(&apart), "{start}, {len}");
                }
            }
            for start in 0..18 {
                let headers = |page: &Page| bytes(&page.headers(start, 9));
                assert_eq!(headers(&flat), headers(&apart), "{start}");
            }
        }
    }

    #[test]
    fn values_of_a_flat_page_are_had_without_a_copy() {
        let page = scattered(&[Buf::copy_from(b"one"), Buf::copy_from(b"two")]).flattened();
        let place = |start| page.data_at(start, 3).unwrap().bytes().unwrap().as_ptr();
        assert_eq!(place(15), place(12).wrapping_add(3));
        assert_eq!(page.front().unwrap().as_ptr(), place(12).wrapping_sub(12));
    }

    #[test]
    fn only_short_bytes_are_made_flat() {
        for value in [Buf::copy_from(&[1; 512]), Buf::phantom(100, 7)] {
            let mut page = scattered(&[Buf::copy_from(b"one"), value.clone()]).flattened();
            page.release(15, value.len());
            let is_left = page.data_at(15, value.len()).unwrap().bytes().is_some();
            assert!(!is_left, "it is a phantom, or was let go of by itself");
        }
    }
}
