//! The records that were found in victims, by their pages.

use crate::clean::turn::Turn;
use crate::log::Log;
use crate::recover::listing::Record;
use std::collections::VecDeque;

/// Where pages are frames: the bytes that a task reads together.
const CHUNK_BYTES: u32 = 256 << 10;

/// What was found in a victim.
pub(super) struct Found {
    /// The epoch of the oldest other extent. Other victims count: they may be reset later.
    pub(super) oldest: u64,
    /// Its records by their pages, of those that no task has taken to copy.
    pub(super) pages: VecDeque<Vec<Record>>,
    /// Number of its pages that cannot be read.
    pub(super) lost_pages: u64,
}

/// What a task copies next.
pub(super) struct Chunk {
    /// See [`Found::oldest`].
    pub(super) oldest: u64,
    /// Records of one victim, by their pages.
    pub(super) pages: Vec<Vec<Record>>,
}

/// Takes the records of the pages that a task copies next: of one page, or of those that a disk
/// reads together. `None` when none are left.
pub(super) fn take_chunk(log: &Log, found: &mut VecDeque<Found>) -> Option<Chunk> {
    while found.pop_front_if(|victim| victim.pages.is_empty()).is_some() {}
    let Found { oldest, pages, .. } = found.front_mut()?;
    let number = |page: &Vec<Record>| log.page_id(page[0].address).page;
    let first = pages.front().map(number)?;
    let units = log.layout.frames.map_or(1, |frames| CHUNK_BYTES / frames.unit_bytes);
    let chunk = || pages.pop_front_if(|page| number(page) < first + units);
    Some(Chunk { oldest: *oldest, pages: std::iter::from_fn(chunk).collect() })
}

/// Returns records of an extent, which are in order, by their pages.
pub(super) async fn by_pages(records: Vec<Record>) -> VecDeque<Vec<Record>> {
    let mut pages: VecDeque<Vec<Record>> = VecDeque::new();
    let mut turn = Turn::default();
    for record in records {
        match pages.back_mut() {
            Some(page) if page[0].address.page() == record.address.page() => page.push(record),
            _ => pages.push_back(vec![record]),
        }
        turn.took(1).await;
    }
    pages
}
