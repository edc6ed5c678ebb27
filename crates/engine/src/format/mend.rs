//! Pages of which a bit is flipped: mended by the checksums of what they say.

use crate::format::layout::{Layout, PROLOGUE_BYTES, Prologue};
use crate::format::page_view::PageView;
use crate::format::record::{Header, header_len};
use base::limits::KEY_BYTES_MAX;
use clock::UnixMillis;
use media::Page;

/// The page with its prologue and its headers whole; `None` when one of them has more than a bit
/// flipped.
pub(crate) fn repaired(layout: Layout, page: &Page) -> Option<Page> {
    let mut spare = page.spare().to_vec();
    let mut front = page.front().map(<[u8]>::to_vec);
    let home = if layout.spare_bytes == 0 { front.as_mut()? } else { &mut spare };
    let prologue = mend(home.get_mut(..PROLOGUE_BYTES)?, Prologue::decode)?;
    let (spare_first, front_first) = layout.first_offsets();
    let spare_end = prologue.spare_len as usize;
    if spare_end > 0 {
        mend_headers(spare.get_mut(spare_first..spare_end)?)?;
    }
    let front_end = prologue.front_len as usize;
    if front_end > 0 {
        let first = front_first - layout.spare_bytes as usize;
        mend_headers(front.as_mut()?.get_mut(first..front_end)?)?;
    }
    let data = page.segments().into_iter();
    Some(match front.filter(|_| front_end > 0) {
        Some(front) => Page::with_front(&spare, &front, data.skip(1)),
        None => Page::new(&spare, data),
    })
}

/// The page as it is, or repaired if it can be and must.
pub(crate) fn readable(layout: Layout, page: &Page) -> Option<Page> {
    let whole = PageView::new(layout, page).is_some_and(|view| view.has_all_headers(layout));
    if whole { Some(page.clone()) } else { repaired(layout, page) }
}

fn mend_headers(mut bytes: &mut [u8]) -> Option<()> {
    while !bytes.is_empty() {
        let reach = bytes.len().min(header_len(KEY_BYTES_MAX, Some(UnixMillis::MAX)));
        let len = mend(&mut bytes[..reach], |bytes| Header::decode(bytes).map(|h| h.len()))?;
        bytes = bytes.get_mut(len..)?;
    }
    Some(())
}

/// Turns over the bit of `bytes` that makes `decode` succeed, if it does not already.
fn mend<T>(bytes: &mut [u8], decode: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    if let Some(whole) = decode(bytes) {
        return Some(whole);
    }
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Some(whole) = decode(bytes) {
            return Some(whole);
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;
    use crate::format::page_builder::PageBuilder;
    use crate::format::record::{InBatch, Kind, Sequence};
    use crate::format::summary::Summary;
    use crate::key_space::TableId;
    use base::Buf;
    use media::Shape;

    /// A page with headers in the spare area, if there is one, and at the front.
    fn page(layout: Layout) -> Page {
        let mut builder = PageBuilder::new(layout);
        for key in [&b"a"[..], b"a longer key of some bytes", b"third", b"the fourth of them"] {
            let header = Header {
                sequence: Sequence(77),
                kind: Kind::Value,
                table: TableId { space: KeySpaceId(1), generation: 3 },
                value_len: 10,
                value_crc: 5,
                value_offset: 0,
                expires: None,
                batch: InBatch::default(),
                key,
            };
            builder.push(&mut header.clone(), &Buf::phantom(10, 9));
        }
        builder.close(5, &mut Summary::default(), &mut Vec::new(), |page| page)
    }

    fn keys(layout: Layout, page: &Page) -> Vec<Vec<u8>> {
        let view = PageView::new(layout, page).expect("a whole prologue");
        view.headers(layout).map(|(_, header)| header.key.to_vec()).collect()
    }

    #[test]
    fn any_one_flipped_bit_of_prologue_and_headers_is_mended() {
        for spare_bytes in [0, 128, 1_000] {
            let shape = Shape {
                page_bytes: 4_096,
                spare_bytes,
                pages_per_extent: 8,
                extents: 8,
                parallelism: 1,
                frames: None,
            };
            let layout = Layout::new(&shape);
            let whole = page(layout);
            let expected = keys(layout, &whole);
            assert_eq!(expected.len(), 4);
            // The parts of a page take turns: two values are one segment each, after the front.
            let parts = whole.segments().len() as u64 + u64::from(!whole.spare().is_empty());
            for which in 0..parts * 8 * 300 {
                let damaged = whole.with_flipped_bit(which);
                let mended = readable(layout, &damaged).expect("one bit can be mended");
                assert_eq!(keys(layout, &mended), expected, "spare {spare_bytes}, {which}");
            }
        }
    }

    #[test]
    fn a_header_with_two_flipped_bits_is_given_up() {
        let shape = Shape {
            page_bytes: 4_096,
            spare_bytes: 1_000,
            pages_per_extent: 8,
            extents: 8,
            parallelism: 1,
            frames: None,
        };
        let layout = Layout::new(&shape);
        let whole = page(layout);
        let parts = whole.segments().len() as u64 + 1;
        let bit = |bit: u64| parts - 1 + parts * bit;
        let damaged = whole.with_flipped_bit(bit(24 * 8 + 70)).with_flipped_bit(bit(24 * 8 + 90));
        assert!(readable(layout, &damaged).is_none());
    }
}
