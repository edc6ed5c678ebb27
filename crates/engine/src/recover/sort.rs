//! Records of extents, sorted by shares of the lanes: so several reactors can enter them into the
//! index at once.

use crate::clean::turn::Turn;
use crate::error::Error;
use crate::format::record::Kind;
use crate::recover::enter::{LaneShare, PIECE};
use crate::recover::listing::{Listing, Record, Replay};
use crate::recover::open::{Scan, Seen};
use crate::sabotage::Sabotage;
use crate::store::Store;
use base::limits::LANES;
use clock::Stage;
use std::mem::take;
use std::sync::Arc;

/// Shares of the lanes for each reactor that enters records: one that is late at its first share
/// leaves more of them to others.
const SHARES_EACH: usize = 4;

/// The records of an extent that were written, from its first page to look at on.
#[derive(Default)]
pub(super) struct Sorted {
    /// What they are, without what was known before.
    pub(super) scan: Scan,
    /// By share of the lanes: its records, in the order of writing.
    pub(super) shares: Vec<Vec<Record>>,
}

impl Store {
    /// Enters the records of extents. All reactors do a part: first each reads some of the extents
    /// and sorts their records, then each enters the records of some lanes.
    pub(super) async fn replay_among_all(
        self: &Arc<Self>,
        replays: &[Replay],
        seen: &mut Seen,
        scan: &mut Scan,
    ) -> Result<(), Error> {
        let shares = (SHARES_EACH * self.pool.tasks()).next_power_of_two().min(LANES);
        let mut by_share: Vec<Vec<Record>> = vec![Vec::new(); shares];
        let sort = move |store: Arc<Self>, replay, listing| async move {
            store.sort(replay, listing, shares).await
        };
        for sorted in self.list_then(replays, seen, sort).await? {
            scan.add(sorted.scan);
            for (all, records) in by_share.iter_mut().zip(sorted.shares) {
                all.extend(records);
            }
        }
        let by_checkpoint = scan.is_after_checkpoint;
        let pieces = LaneShare::all(shares).zip(by_share).map(|(share, records)| {
            let store = self.clone();
            move || async move { store.take_records(share, records, by_checkpoint).await }
        });
        self.pool.run(Stage::Queue, pieces.collect()).await?.into_iter().collect()
    }

    /// Notes what an extent has, and sorts its records by so many `shares` of the lanes. Gives way
    /// to other tasks between records.
    pub(super) async fn sort(
        self: &Arc<Self>,
        replay: Replay,
        listing: Listing,
        shares: usize,
    ) -> Sorted {
        let Replay { extent, from } = replay;
        let Listing { records, mut lost } = listing;
        lost.retain(|at| at.page >= from);
        self.tables.while_opening(|entered| entered.begin(extent, &lost));
        let mut sorted = Sorted { shares: vec![Vec::new(); shares], ..Sorted::default() };
        sorted.scan.lost_pages = lost.len() as u64;
        let mut first_date = None;
        let mut records = self.written_records(extent, records).await;
        records.retain(|record| {
            self.log.page_id(record.address).page >= from
                && !(record.header.kind == Kind::Tombstone && Sabotage::NoTombstones.is_on())
        });
        for piece in records.chunks(PIECE) {
            for record in piece {
                sorted.scan.note(record);
                let dates = [first_date, record.header.expires];
                first_date = dates.into_iter().flatten().min();
            }
            clock::give_way().await;
        }
        {
            let mut state = self.log.whole();
            let extent = state.extents.get(extent);
            sorted.scan.summaries = extent.summary().is_some().into();
            extent.note_expiry(first_date);
        }
        if let [all] = &mut sorted.shares[..] {
            *all = take(&mut records);
        }
        let mut turn = Turn::default();
        for record in records {
            turn.took(1).await;
            let share = LaneShare::number_of(record.header.key.hash(), shares);
            sorted.shares[share].push(record);
        }
        sorted
    }
}
