//! The buffer, when power is lost.

use crate::page_ftl::PageFtl;
use crate::saved::Saved;
use clock::{Rank, Stage};

impl PageFtl {
    /// Closes what hosts have open and waits until every page of theirs has landed, or cannot:
    /// called when power is lost, with the array on its capacitors. Nothing may be written from
    /// here on.
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

    /// True when pages of hosts are on their way: then the current task is woken when they are not.
    fn is_saving(&self) -> bool {
        let mut state = self.state();
        if state.host_pages > 0 {
            state.saver = Some(clock::current());
        }
        state.host_pages > 0
    }
}
