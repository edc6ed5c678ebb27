//! An extent's summary: the headers of all its records, on its last pages, under one checksum.
//!
//! ```text
//! | length | crc32c | entry | entry | ...
//! entry:  | page | spare bytes | front bytes | continuation | headers, as on the page |
//! ```

use crate::layout::{Layout, PROLOGUE_LEN, PageKind, Prologue};
use crate::record::Header;
use base::Buf;
use base::checksum::crc32c;
use media::Page;

/// Bytes of the length and the checksum.
pub(crate) const SUMMARY_HEAD_BYTES: usize = 8;
/// Bytes of an entry beside the headers.
pub(crate) const SUMMARY_ENTRY_BYTES: usize = 16;

pub(crate) fn len32(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a page is far smaller than 4 GiB")
}

/// Seals a summary with its checksum and cuts it into pages. Each says in its prologue which of
/// them it is. An empty summary has none.
pub(crate) fn summary_pages(layout: Layout, summary: &mut [u8]) -> Vec<Page> {
    if summary.len() <= SUMMARY_HEAD_BYTES {
        return Vec::new();
    }
    let (head, body) = summary.split_at_mut(SUMMARY_HEAD_BYTES);
    head[..4].copy_from_slice(&len32(body).to_le_bytes());
    head[4..].copy_from_slice(&crc32c(body).to_le_bytes());
    let chunks = summary.chunks(layout.bare_room() as usize).zip(0..);
    let page = |(chunk, number): (&[u8], u32)| {
        let spare_len = if layout.spare_bytes == 0 { 0 } else { PROLOGUE_LEN };
        let prologue = Prologue {
            kind: PageKind::Summary,
            spare_len,
            front_len: layout.bare_front(),
            continuation: number,
        };
        let prologue = prologue.encode();
        if layout.spare_bytes == 0 {
            let mut data = prologue.to_vec();
            data.extend_from_slice(chunk);
            Page::new(&[], [Buf::copy_from(&data)])
        } else {
            Page::new(&prologue, [Buf::copy_from(chunk)])
        }
    };
    chunks.map(page).collect()
}

/// Pages that a summary of `bytes` bytes takes.
pub(crate) const fn summary_page_count(layout: Layout, bytes: usize) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "a summary is smaller than its extent")]
    let bytes = bytes as u32;
    bytes.div_ceil(layout.bare_room())
}

/// A record as an extent's summary, or its page, tells of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) page: u32,
    /// Of the header in the page.
    pub(crate) offset: usize,
    /// Of the first value in the page's data.
    pub(crate) values_start: u32,
    pub(crate) header: Header<'a>,
}

/// Calls `visit` for every record of a summary. False when the summary is not whole.
pub(crate) fn read_summary(
    layout: Layout,
    summary: &[u8],
    mut visit: impl FnMut(Listed<'_>),
) -> bool {
    let Some((head, body)) = summary.split_at_checked(SUMMARY_HEAD_BYTES) else { return false };
    let word = |bytes: &[u8], at: usize| {
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    };
    let Some(mut rest) = body.get(..word(head, 0) as usize) else { return false };
    if word(head, 4) != crc32c(rest) {
        return false;
    }
    let (spare_first, front_first) = layout.first_offsets();
    while let Some((entry, headers)) = rest.split_at_checked(SUMMARY_ENTRY_BYTES) {
        let (page, spare_len, front_len) = (word(entry, 0), word(entry, 4), word(entry, 8));
        let values_start = layout.bare_front() + front_len + word(entry, 12);
        let (spare, after) = headers.split_at(spare_len as usize);
        let (front, after) = after.split_at(front_len as usize);
        for (mut bytes, mut offset) in [(spare, spare_first), (front, front_first)] {
            while let Some(header) = Header::decode(bytes) {
                visit(Listed { page, offset, values_start, header });
                bytes = &bytes[header.len()..];
                offset += header.len();
            }
        }
        rest = after;
    }
    true
}
