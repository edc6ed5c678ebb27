use crate::lane::{Lanes, Locked};
use clock::{Held, Rank, Stage};
use smallvec::SmallVec;

/// The latches of one or several keys, held until this drops.
#[derive(Debug)]
pub(crate) struct Latch<'a> {
    lanes: &'a Lanes,
    /// In rising order, each once.
    hashes: SmallVec<[u64; 1]>,
    _rank: Held,
}

/// Returns the order in which latches are taken: rising, each once.
fn in_order(hashes: impl Iterator<Item = u64>) -> SmallVec<[u64; 1]> {
    let mut hashes: SmallVec<[u64; 1]> = hashes.collect();
    if hashes.len() > 1 {
        hashes.sort_unstable();
        hashes.dedup();
    }
    hashes
}

impl<'a> Latch<'a> {
    /// Takes latches that are free, of keys in lanes that are locked.
    pub(crate) fn of_free(
        lanes: &'a Lanes,
        locked: &mut Locked<'_>,
        hashes: impl Iterator<Item = u64>,
    ) -> Self {
        let hashes = in_order(hashes);
        hashes.iter().for_each(|hash| locked.of(*hash).latches.take(*hash));
        Self { lanes, hashes, _rank: Held::new(Rank::Latch) }
    }

    /// Waits for the latches, for each in FIFO order. A task that holds one latch only waits for
    /// one of a greater hash, so no two tasks wait for each other. Therefore the latches count as
    /// held only when the task has all of them.
    pub(crate) async fn wait(lanes: &'a Lanes, hashes: impl Iterator<Item = u64>) -> Self {
        let hashes = in_order(hashes);
        for hash in &hashes {
            let is_taken = lanes.lock(*hash).of(*hash).latches.take_or_queue(*hash);
            if !is_taken {
                clock::park(Rank::Latch, Stage::Latch).await;
            }
        }
        Self { lanes, hashes, _rank: Held::new(Rank::Latch) }
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.hashes.iter().for_each(|hash| self.lanes.lock(*hash).of(*hash).latches.release(*hash));
    }
}
