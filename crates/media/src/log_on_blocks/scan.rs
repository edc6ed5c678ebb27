use super::header::{Header, PageHeader};
use super::{Extent, InUse, LogOnBlocks, content};
use crate::extent::{ExtentId, Label, PageId};
use clock::Class;
use std::collections::BTreeSet;

/// What the blocks tell of one extent.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// How often it was opened; 0 for one that never held anything.
    opening: u32,
    in_use: Option<(Label, Vec<bool>)>,
}

/// The class of the work of a start: whoever needs the drive waits for it.
const CLASS: Class = Class::HostRead;

impl LogOnBlocks {
    /// Looks which pages an extent holds.
    pub(super) async fn scan(&self, extent: ExtentId) -> Found {
        let first = PageId { extent, page: 0 };
        let of_first = self.blocks.read(self.first_block(first), 1, CLASS).await;
        let is_lost = of_first.is_err();
        let header = of_first.ok().and_then(|block| self.header_of(&block));
        if let Some(Header { opening, page: None, .. }) = header {
            return Found { opening, in_use: None };
        }
        if header.is_none() && !is_lost {
            return Found::default();
        }
        let mut headers = vec![header];
        for page in 1..self.shape.pages_per_extent {
            headers.push(self.header(PageId { extent, page }, CLASS).await);
        }
        // Without the first page the others tell: a reset gives them up.
        let known = headers.iter().flatten().filter(|header| header.extent == extent);
        let Some(opening) = header.or(known.max_by_key(|known| known.opening).copied()) else {
            return Found::default();
        };
        let opening = opening.opening;
        let pages: Vec<Option<PageHeader>> = (0..)
            .zip(&headers)
            .map(|(page, header)| {
                header.as_ref()?.page_at(PageId { extent, page }, opening).copied()
            })
            .collect();
        let is_whole = self.are_whole(extent, &pages).await;
        let label = pages.iter().flatten().next().map(|page| page.label);
        // Nothing follows a first page that never landed.
        let is_there = is_whole[0] || is_lost && is_whole.contains(&true);
        Found { opening, in_use: label.filter(|_| is_there).map(|label| (label, is_whole)) }
    }

    /// Which of the pages are there with all their blocks. Those below which all had landed when a
    /// later one was written are; of the others a loss of power may have cut off some.
    async fn are_whole(&self, extent: ExtentId, pages: &[Option<PageHeader>]) -> Vec<bool> {
        let landed = pages.iter().flatten().map(|page| page.landed).max().unwrap_or(0);
        let mut are_whole = Vec::new();
        for (number, page) in (0..).zip(pages) {
            are_whole.push(match page {
                None => false,
                Some(_) if number < landed => true,
                Some(header) => {
                    let blocks = self.blocks_of(PageId { extent, page: number }, CLASS).await;
                    let page = blocks
                        .ok()
                        .and_then(|blocks| content::decode(header, &blocks, self.block_bytes));
                    page.is_some_and(|page| {
                        let data = page.segments();
                        content::checksum(page.spare(), &data, self.block_bytes) == header.checksum
                    })
                }
            });
        }
        are_whole
    }
}

impl From<Found> for Extent {
    fn from(found: Found) -> Self {
        let in_use = found.in_use.map(|(label, is_whole)| {
            let pages = is_whole.iter().rposition(|is_whole| *is_whole).map_or(0, |last| last + 1);
            let holes = (0..).zip(&is_whole[..pages]).filter(|(_, is_whole)| !**is_whole);
            InUse {
                label,
                pages: u32::try_from(pages).expect("pages are counted in 32 bits"),
                holes: holes.map(|(page, _)| page).collect(),
                under_way: BTreeSet::new(),
            }
        });
        Self { opening: found.opening, in_use }
    }
}
