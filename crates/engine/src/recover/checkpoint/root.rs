//! The root of a checkpoint, one table page, and how it is found again.
//!
//! Every table page says in its key where the newest root lay when it was written, complete or on
//! its way. Pages of the stream are in the order of (epoch of their extent, page). So the last page
//! that can be read names the newest root, or one that a loss of power cut off; then the pages
//! before that one name the root before it.

use crate::format::address::Address;
use crate::index::tables::{Named, Tables};
use crate::log::Log;
use base::checksum::crc32c;
use media::{ExtentInfo, PageId, Stream};
use std::cmp::Reverse;

const FORMAT: u32 = 1;
const HEAD_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 6;

/// Pages without a name that are passed over before a scan of the log is the better way.
const UNREADABLE_MAX: u32 = 64;

/// Where the pieces of a checkpoint's image lie, and how to know that they are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    len: u32,
    crc: u32,
    pub(crate) pieces: Vec<Address>,
}

impl Root {
    pub(super) fn new(image: &[u8], pieces: Vec<Address>) -> Self {
        let len = u32::try_from(image.len()).expect("an image is far smaller than 4 GiB");
        Self { len, crc: crc32c(image), pieces }
    }

    pub(super) fn is_of(&self, image: &[u8]) -> bool {
        image.len() == self.len as usize && crc32c(image) == self.crc
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let pieces = u32::try_from(self.pieces.len()).expect("pieces are counted in 32 bits");
        let head = [FORMAT, self.len, self.crc, pieces].map(u32::to_le_bytes);
        let mut bytes = head.as_flattened().to_vec();
        for piece in &self.pieces {
            bytes.extend_from_slice(&piece.to_bits().to_le_bytes()[..ADDRESS_BYTES]);
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, pieces) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let expected = (word(12) as usize).checked_mul(ADDRESS_BYTES)?;
        if word(0) != FORMAT || pieces.len() != expected {
            return None;
        }
        let piece = |bytes: &[u8]| {
            let mut bits = [0; 8];
            bits[..ADDRESS_BYTES].copy_from_slice(bytes);
            Address::from_bits(u64::from_le_bytes(bits))
        };
        let pieces = pieces.chunks(ADDRESS_BYTES).map(piece).collect();
        Some(Self { len: word(4), crc: word(8), pieces })
    }
}

/// A place before which pages have not been looked at.
struct Walk<'a> {
    log: &'a Log,
    extents: Vec<&'a ExtentInfo>,
    /// The extent in `extents`, the last page of it that was looked at, and those before that.
    at: usize,
    page: u32,
    before: Vec<u32>,
}

impl<'a> Walk<'a> {
    async fn new(log: &'a Log, found: &'a [ExtentInfo]) -> Self {
        let tables = found.iter().filter(|info| info.label.stream == Stream::Index);
        let mut extents: Vec<&ExtentInfo> = tables.collect();
        extents.sort_unstable_by_key(|info| Reverse(info.label.epoch));
        let mut walk = Self { log, extents, at: 0, page: 0, before: Vec::new() };
        walk.enter(0).await;
        walk
    }

    /// Goes to the end of an extent.
    async fn enter(&mut self, at: usize) {
        self.at = at;
        let Some(info) = self.extents.get(at) else { return };
        self.page = info.pages;
        self.before = self.log.written_pages(info.id).await;
    }

    /// Returns the page before, that is not a hole.
    async fn next(&mut self) -> Option<PageId> {
        loop {
            let info = *self.extents.get(self.at)?;
            if let Some(page) = self.before.pop() {
                self.page = page;
                return Some(PageId { extent: info.id, page });
            }
            self.enter(self.at + 1).await;
        }
    }

    /// Continues before `page`; false when that is not before the current place.
    async fn go_before(&mut self, page: PageId) -> bool {
        let at = self.extents.iter().position(|info| info.id == page.extent);
        let Some(at) = at.filter(|at| page.page < self.extents[*at].pages) else { return false };
        let is_before = at > self.at || (at == self.at && page.page <= self.page);
        if is_before {
            if at > self.at {
                self.enter(at).await;
            }
            self.page = page.page;
            self.before.retain(|before| *before < page.page);
        }
        is_before
    }
}

impl Tables {
    /// Returns the root of the newest complete checkpoint on a medium with these extents, and where
    /// it lies, if one can be found. The stream is idle.
    pub(super) async fn newest_root(&self, found: &[ExtentInfo]) -> Option<(Address, Root)> {
        let mut walk = Walk::new(&self.log, found).await;
        let mut unreadable = 0;
        while unreadable < UNREADABLE_MAX {
            let at = walk.next().await?;
            let before = match self.named_on(at).await {
                // No page before this one knows of any.
                Named::Root(None) => return None,
                Named::Root(Some(root)) => {
                    let is_there = self.is_in(found, root);
                    let bytes = if is_there { self.read_root(root).await } else { None };
                    if let Some(bytes) = bytes {
                        return Some((root, Root::decode(bytes.bytes()?)?));
                    }
                    self.log.page_id(root)
                }
                Named::Summary(page) => PageId { page, ..at },
                Named::Nothing => at,
            };
            unreadable += u32::from(!walk.go_before(before).await || before == at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_reads_back_as_it_was_written() {
        let pieces = vec![Address::MIN, Address::MAX, Address::from_bits(0x0102_0304_0506)];
        let root = Root::new(b"an image", pieces);
        let bytes = root.encode();
        assert_eq!(Root::decode(&bytes), Some(root.clone()));
        assert!(root.is_of(b"an image") && !root.is_of(b"an imagf") && !root.is_of(b"an"));
        assert!((0..bytes.len()).all(|len| Root::decode(&bytes[..len]).is_none()));
    }
}
