use super::header::{Header, PageHeader};
use super::{Extent, InUse, LogOnBlocks, content};
use crate::error::Error;
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
    pub(super) async fn scan(&self, extent: ExtentId) -> Result<Found, Error> {
        let first = PageId { extent, page: 0 };
        let Some(header) = self.header(first, CLASS).await? else { return Ok(Found::default()) };
        let Header { opening, .. } = header;
        let Some(of_first) = header.page_at(first, opening) else {
            return Ok(Found { opening, in_use: None });
        };
        let mut pages = vec![Some(*of_first)];
        for page in 1..self.shape.pages_per_extent {
            let at = PageId { extent, page };
            let header = self.header(at, CLASS).await?;
            pages.push(header.and_then(|header| header.page_at(at, opening).copied()));
        }
        let is_whole = self.are_whole(extent, &pages).await?;
        // Nothing follows a first page that never landed.
        let in_use = is_whole[0].then_some((of_first.label, is_whole));
        Ok(Found { opening, in_use })
    }

    /// Which of the pages are there with all their blocks. Those below which all had landed when a
    /// later one was written are; of the others a loss of power may have cut off some.
    async fn are_whole(
        &self,
        extent: ExtentId,
        pages: &[Option<PageHeader>],
    ) -> Result<Vec<bool>, Error> {
        let landed = pages.iter().flatten().map(|page| page.landed).max().unwrap_or(0);
        let mut are_whole = Vec::new();
        for (number, page) in (0..).zip(pages) {
            are_whole.push(match page {
                None => false,
                Some(_) if number < landed => true,
                Some(header) => {
                    let blocks = self.blocks_of(PageId { extent, page: number }, CLASS).await?;
                    let page = content::decode(header, &blocks, self.block_bytes);
                    page.is_some_and(|page| {
                        let data = page.data();
                        content::checksum(page.spare(), data, self.block_bytes) == header.checksum
                    })
                }
            });
        }
        Ok(are_whole)
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
