//! Pages on their way to a disk, which queues them and lands those of an extent in order: one task
//! for each extent handles all that have landed.

use crate::clean::turn::Turn;
use crate::extent::class_of;
use crate::log::{Log, Program, QueuedPage, State};
use clock::{Rank, Stage};
use media::{ExtentId, OnDisk, PageId};
use std::sync::Arc;

impl Log {
    /// Puts a closed page into the disk's queue.
    pub(crate) fn land_by_queue(
        self: &Arc<Self>,
        state: &mut State,
        queue: &dyn OnDisk,
        program: Program,
    ) {
        let Program { at: PageId { extent, page }, stream, pending, page: content } = program;
        let end = queue.queue(PageId { extent, page }, content, class_of(stream));
        let queued = QueuedPage { page, end, pending };
        if state.unlanded.landers.push(extent, stream, queued) {
            clock::spawn(self.clone().land_pages(extent));
        }
    }

    /// Handles the pages of an extent as they land, until none is left.
    async fn land_pages(self: Arc<Self>, extent: ExtentId) {
        clock::name_task("page program");
        let queue = self.media.as_disk().expect("it has pages of this log");
        let mut turn = Turn::default();
        while let Some(end) = self.next_end(extent) {
            turn.took(1, false).await;
            let mut result = end.map(|end| queue.outcome_or_wait(extent, end));
            if let (Ok(end), Ok(None)) = (end, result) {
                clock::park(Rank::Array, Stage::Array).await;
                result = Ok(queue.outcome_or_wait(extent, end));
            }
            let result = result.and_then(|it| it.expect("it is woken at the end"));
            let (stream, QueuedPage { page, pending, .. }) =
                self.state().unlanded.landers.take(extent);
            self.landed(PageId { extent, page }, stream, result);
            pending.land_here(result);
        }
    }

    /// Returns where the next page ends. A function, so that the lock is released before the loop's
    /// body.
    fn next_end(&self, extent: ExtentId) -> Option<Result<u32, media::Error>> {
        self.state().unlanded.landers.next_end(extent)
    }
}
