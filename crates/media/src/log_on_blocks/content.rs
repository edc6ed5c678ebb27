use super::header::{HEADERS_BYTES, Header, PageHeader};
use crate::blocks::{Segments, cut};
use crate::page::Page;
use base::checksum::crc32c;
use base::{Buf, BufMut};

/// The blocks of a page: `header`, whose lengths and checksum are set from the page, and its data,
/// up to a whole block.
pub(super) fn encode(mut header: Header, page: &Page, block_bytes: u32) -> Segments {
    let data = page.segments();
    if let Some(of_page) = &mut header.page {
        of_page.data_len = page.data_bytes();
        of_page.first_len = data.iter().map(Buf::len).find(|len| *len > 0).unwrap_or(0);
        of_page.spare_len = u16::try_from(page.spare().len()).expect("less than a block");
        of_page.checksum = checksum(page.spare(), &data, block_bytes);
    }
    let mut block = BufMut::unpooled(block_bytes as usize);
    header.encode(block.as_mut());
    block.as_mut()[HEADERS_BYTES..][..page.spare().len()].copy_from_slice(page.spare());
    let mut blocks = Segments::new();
    blocks.push(block.freeze());
    blocks.extend(data.into_iter().filter(|segment| segment.len() > 0));
    let padding = page.data_bytes().next_multiple_of(block_bytes) - page.data_bytes();
    if padding > 0 {
        blocks.push(BufMut::unpooled(padding as usize).freeze());
    }
    blocks
}

/// The page that `blocks` hold with the header `of_page`. The first segment comes back in one
/// piece, for a log may keep something there that it reads as one; others may be cut.
pub(super) fn decode(of_page: &PageHeader, blocks: &[Buf], block_bytes: u32) -> Option<Page> {
    let spare = Buf::join(&cut(blocks, 0, block_bytes)?)?;
    let spare = spare.bytes()?.get(HEADERS_BYTES..)?.get(..of_page.spare_len.into())?;
    let first = match of_page.first_len {
        0 => None,
        len => Some(Buf::join(&cut(blocks, block_bytes, len)?)?),
    };
    let start = block_bytes.checked_add(of_page.first_len)?;
    let rest = cut(blocks, start, of_page.data_len.checked_sub(of_page.first_len)?)?;
    Some(Page::new(spare, first.into_iter().chain(rest)))
}

/// A checksum that does not depend on how the data is cut, but on where phantoms begin and end:
/// CRC-32C of the spare bytes' CRC-32C, and then of length and CRC-32C of each run in each block,
/// where a run is as much of one phantom, or of bytes, as lies together.
pub(super) fn checksum(spare: &[u8], data: &[Buf], block_bytes: u32) -> u32 {
    let data_len: u32 = data.iter().map(Buf::len).sum();
    let mut words = crc32c(spare).to_le_bytes().to_vec();
    let mut add = |run: &Buf| {
        words.extend_from_slice(&run.len().to_le_bytes());
        words.extend_from_slice(&run.crc32c().to_le_bytes());
    };
    for start in (0..data_len).step_by(block_bytes as usize) {
        let block = cut(data, start, block_bytes.min(data_len - start));
        let mut run: Option<Buf> = None;
        for piece in block.expect("the data is as long as its segments") {
            run = Some(match run {
                None => piece,
                Some(before) => match Buf::join(&[before.clone(), piece.clone()]) {
                    Some(longer) => longer,
                    None => {
                        add(&before);
                        piece
                    }
                },
            });
        }
        add(&run.expect("a block has data"));
    }
    crc32c(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `data` in pieces of `len` bytes.
    fn pieces(data: &[Buf], len: u32) -> Vec<Buf> {
        let all: u32 = data.iter().map(Buf::len).sum();
        let starts = (0..all).step_by(len as usize);
        starts.flat_map(|start| cut(data, start, len.min(all - start)).unwrap()).collect()
    }

    #[test]
    fn the_checksum_knows_content_and_not_how_it_is_cut() {
        let bytes: Vec<u8> = (0..100).collect();
        let data = [
            Buf::copy_from(&bytes),
            Buf::phantom(70, 5),
            Buf::phantom(30, 6),
            Buf::copy_from(b"x"),
        ];
        let sum = checksum(b"spare", &data, 64);
        for len in 1..80 {
            assert_eq!(checksum(b"spare", &pieces(&data, len), 64), sum);
        }
        assert_ne!(checksum(b"share", &data, 64), sum);
        assert_ne!(checksum(b"spare", &data[..3], 64), sum);
        for segment in 0..data.len() {
            let mut damaged = data.clone();
            damaged[segment] = data[segment].with_flipped_bit(7);
            assert_ne!(checksum(b"spare", &damaged, 64), sum);
        }
    }
}
