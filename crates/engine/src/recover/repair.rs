//! Mends damaged headers: one flipped bit from the header's own checksum, more from the summary of
//! the extent.
//!
//! The checksum of a header finds the bit: CRC-32C tells any two patterns of up to five flipped
//! bits apart up to 5,243 bits (Koopman, 2002), and a header has at most 2,360, so of all bits
//! exactly one makes the checksum right. Where an extent has no summary yet this keeps a record
//! from being lost, and with it the order of its key's records.

use crate::format::address::Address;
use crate::format::mend::repaired;
use crate::recover::listing::Record;
use crate::store::Store;
use clock::Class;
use media::Page;
use std::sync::Arc;

impl Store {
    /// Returns the record at `address`, whose header is damaged on its `page`, or whose page could
    /// not be read.
    pub(crate) async fn mended_record(
        self: &Arc<Self>,
        address: Address,
        page: Option<&Page>,
    ) -> Option<Record> {
        let extent = self.log.page_id(address).extent;
        let mended = page.and_then(|page| repaired(self.log.layout, page));
        let records = match mended {
            Some(page) => self.records_of_page(self.log.page_id(address), &page)?,
            None => match self.open_summary_of(extent) {
                Some(records) => records,
                None => self.summary_of(extent, Class::HostRead).await?,
            },
        };
        records.into_iter().find(|record| record.address == address)
    }
}
