//! Pages on their way to a disk, which queues them and lands those of an extent in order: one task
//! for each extent handles all that have landed.

use crate::extent::class_of;
use crate::log::{Log, Program, State};
use crate::write::pending::Pending;
use clock::{Rank, Stage};
use media::{ExtentId, OnDisk, PageId, Stream};
use std::collections::VecDeque;
use std::sync::Arc;

/// The pages of an extent that the disk has and that have not landed.
pub(crate) struct Lander {
    extent: ExtentId,
    stream: Stream,
    /// In the order of their numbers.
    pages: VecDeque<QueuedPage>,
}

struct QueuedPage {
    page: u32,
    /// The number after its last one, or why the disk did not take it.
    end: Result<u32, media::Error>,
    pending: Arc<Pending>,
}

impl State {
    fn lander(&mut self, extent: ExtentId) -> Option<&mut Lander> {
        self.landers.iter_mut().find(|lander| lander.extent == extent)
    }
}

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
        match state.lander(extent) {
            Some(lander) => lander.pages.push_back(queued),
            None => {
                let pages = VecDeque::from([queued]);
                state.landers.push(Lander { extent, stream, pages });
                clock::spawn(self.clone().land_pages(extent));
            }
        }
    }

    /// Handles the pages of an extent as they land, until none is left.
    async fn land_pages(self: Arc<Self>, extent: ExtentId) {
        clock::name_task("page program");
        let queue = self.media.as_disk().expect("it has pages of this log");
        while let Some(end) = self.next_end(extent) {
            let mut result = end.map(|end| queue.outcome(extent, end));
            if let (Ok(end), Ok(None)) = (end, result) {
                clock::park(Rank::Array, Stage::Array).await;
                result = Ok(queue.outcome(extent, end));
            }
            let result = result.and_then(|it| it.expect("it is woken at the end"));
            let (stream, QueuedPage { page, pending, .. }) = self.take_landed(extent);
            self.landed(PageId { extent, page }, stream, result);
            pending.land_here(result);
        }
    }

    /// Returns where the next page ends. Forgets the extent if there is none.
    fn next_end(&self, extent: ExtentId) -> Option<Result<u32, media::Error>> {
        let mut state = self.state();
        let lander = state.lander(extent).expect("it is there until its task ends");
        let end = lander.pages.front().map(|page| page.end);
        if end.is_none() {
            state.landers.retain(|lander| lander.extent != extent);
        }
        end
    }

    fn take_landed(&self, extent: ExtentId) -> (Stream, QueuedPage) {
        let mut state = self.state();
        let lander = state.lander(extent).expect("it is there until its task ends");
        (lander.stream, lander.pages.pop_front().expect("its end was known"))
    }
}
