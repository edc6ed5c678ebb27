use crate::format::layout::Layout;
use crate::log::Log;
use crate::store::Store;
use crate::write::pending::{Pending, durable};
use base::limits::VALUE_BYTES_MAX;
use media::{Shape, Stream};
use std::sync::Arc;

/// Returns the most pages that hosts' stores have in memory at one instant, when they are answered
/// from a buffer of `buffer_bytes` and no program fails. That many must be programmed for all of
/// them to outlive a loss of power.
///
/// Let `f` pages be in flight, and `v` bytes be stored. The store waits as long as `f > 0` and `f +
/// 1` pages and `v` bytes are more than the buffer. Then,
///
/// - the page that is open is closed: `f + 1` pages;
/// - a value fills `v / r` pages more, rounded up, where `r` bytes go on a page beside its
///   prologue. If `f > 0` these and the `f + 1` are no more than the buffer's bytes in pages of
///   `r`, and one for rounding. If `f = 0`, `v` may be the longest value;
/// - the records of a batch need not fill their pages, but any two pages on end hold more than `r`
///   bytes: twice as many, and one. If `f > 0` a batch has no more bytes than the buffer. If
///   `f = 0` its longest value may come on top: it fits an extent then, with its summary, which is
///   one of the two below;
/// - the page that is open then is one more;
/// - the extent may have ended before the record, and the next one ends when the page that is open
///   is closed before anything else is stored. Either has a summary, of less than an extent.
pub fn buffered_pages_max(shape: &Shape, buffer_bytes: u64) -> u64 {
    let room = u64::from(Layout::new(shape).bare_room());
    let value = u64::from(VALUE_BYTES_MAX).div_ceil(room);
    let records = value.max(2 * buffer_bytes.div_ceil(room)) + 4;
    records + 2 * u64::from(shape.pages_per_extent)
}

impl Store {
    /// Programs the acknowledged host pages that are in memory only. Called when power is lost,
    /// with the medium on its capacitors. Cleaning's pages need no program: their originals are on
    /// the medium.
    ///
    /// Returns how many pages could not be programmed: their records are lost. After this call no
    /// store is answered from a buffer.
    pub async fn save_host_pages(&self) -> u64 {
        self.log.whole().writers_mut().for_each(|writer| writer.buffer.is_saving = true);
        let mut lost = 0;
        for page in self.log.close_host_pages() {
            lost += u64::from(durable(&[page]).await.is_err());
        }
        lost
    }
}

impl Log {
    /// Programs the open host page, and returns all host pages that have not landed.
    pub(crate) fn close_host_pages(self: &Arc<Self>) -> Vec<Arc<Pending>> {
        let mut state = self.whole();
        self.pad_hosts(&mut state);
        let mut of_hosts = Vec::new();
        for (number, pending) in state.closed_in_order() {
            let extent = number.id(self.shape.pages_per_extent).extent;
            if state.extents.get(extent).label.stream == Stream::Host {
                of_hosts.push(pending);
            }
        }
        of_hosts
    }
}
