//! The buffer, when power is lost.

use crate::page_ftl::PageFtl;
use crate::saved::Saved;
use clock::{Rank, Stage};

impl PageFtl {
    /// Closes the hosts' pages and waits until each has landed or cannot. Called at a loss of
    /// power, with the array on its capacitors. The caller starts no more writes.
    pub async fn save_open_pages(&self) -> Saved {
        let pages = {
            let mut state = self.state();
            self.close_host_page(&mut state);
            state.host_pages
        };
        while self.is_saving() {
            clock::park(Rank::Free, Stage::Batch).await;
        }
        let state = self.state();
        let stranded = state.stranded.len() as u64 + state.rescuing_pages;
        let lost_pages = state.lost_host_pages + stranded;
        Saved { saved_pages: pages.saturating_sub(lost_pages), lost_pages }
    }

    /// True when pages of hosts are in flight; the last one wakes the current task.
    fn is_saving(&self) -> bool {
        let mut state = self.state();
        if state.host_pages > 0 {
            state.saver = Some(clock::current());
        }
        state.host_pages > 0
    }
}
