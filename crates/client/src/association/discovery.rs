use super::{Association, ask, name_of};
use crate::error::Error;
use base::Buf;
use net::Stream;
use spec::{Command, DiscoveryEntry, DiscoveryHeader, LogPage};
use zerocopy::FromBytes;

/// Entries read at a time.
const BATCH: u64 = 64;

/// The most entries that are read.
const ENTRIES_MAX: u64 = 4096;

/// Bytes of the header, and of each entry (Base 2.1, Discovery log page).
const ENTRY_BYTES: u32 = 1024;

impl<S: Stream> Association<S> {
    /// Returns the entries of a discovery subsystem: the subsystems that this host can connect to,
    /// and their addresses. Rereads a log that changes in between, a bounded number of times.
    pub async fn discover(&self) -> Result<Vec<DiscoveryEntry>, Error> {
        const TRIES: usize = 8;
        let mut entries = Vec::new();
        for _ in 0..TRIES {
            let before = self.header().await?;
            entries = self.entries(before.records.get().min(ENTRIES_MAX)).await?;
            if self.header().await?.generation == before.generation {
                break;
            }
        }
        Ok(entries)
    }

    async fn header(&self) -> Result<DiscoveryHeader, Error> {
        let command = Command::get_log_page(LogPage::DISCOVERY, 0, ENTRY_BYTES);
        super::read(&self.admin, command.with_retained_event(), ENTRY_BYTES).await
    }

    async fn entries(&self, count: u64) -> Result<Vec<DiscoveryEntry>, Error> {
        let mut entries = Vec::new();
        let mut read = 0;
        while read < count {
            let wanted = BATCH.min(count - read);
            let bytes = u32::try_from(wanted).expect("64 at most") * ENTRY_BYTES;
            let offset = (read + 1) * u64::from(ENTRY_BYTES);
            let command =
                Command::get_log_page(LogPage::DISCOVERY, 0, bytes).with_log_page_offset(offset);
            let reply = ask(&self.admin, command, Buf::phantom(0, 0), bytes).await?;
            let data = reply.data.bytes().unwrap_or_default();
            let batch = <[DiscoveryEntry]>::ref_from_bytes(data);
            let batch = batch.ok().filter(|batch| batch.len() as u64 == wanted);
            entries.extend_from_slice(batch.ok_or_else(|| Error::Short(name_of(&command)))?);
            read += wanted;
        }
        Ok(entries)
    }
}
