use crate::log::Log;
use crate::pending::{Pending, durable};
use crate::store::Store;
use media::Stream;
use std::sync::Arc;

impl Store {
    /// Called when power is lost, with the medium on its capacitors: programs what hosts were told
    /// to be stored and is in memory only. What cleaning has in memory has its original still.
    ///
    /// Returns how many pages could not be programmed: what they held is lost.
    pub async fn save_host_pages(&self) -> u64 {
        let mut lost = 0;
        for page in self.log.close_host_pages() {
            lost += u64::from(durable(&[page]).await.is_err());
        }
        lost
    }
}

impl Log {
    /// Programs the page that hosts fill, and returns all of hosts that have not landed.
    pub(crate) fn close_host_pages(self: &Arc<Self>) -> Vec<Arc<Pending>> {
        let mut state = self.state();
        self.pad(&mut state, Stream::Host);
        let state = &mut *state;
        let mut pages: Vec<_> = state.pending.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        let closed = pages.into_iter().filter(|(_, pending)| pending.page().is_some());
        let mut of_hosts = Vec::new();
        for (number, pending) in closed {
            let extent = number.id(self.shape.pages_per_extent).extent;
            if state.extents.get(extent).label.stream == Stream::Host {
                of_hosts.push(pending.clone());
            }
        }
        of_hosts
    }
}
