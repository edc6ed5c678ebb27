use super::record::{Entry, Record};
use super::totals::Totals;
use super::{BLOCK_BYTES, END_MAGIC, HEADER_BYTES, MAGIC, VERSION, checksum};
use std::fs::File;
use std::io::{self, Write};

/// Writes an archive.
#[derive(Debug)]
pub(in crate::kv) struct Writer {
    file: File,
    /// Records of the open block.
    records: Vec<u8>,
    /// Number of the next block.
    number: u64,
    /// Offset of the next block.
    at: u64,
    totals: Totals,
}

impl Writer {
    /// Starts an archive in `file`, which is empty.
    pub(in crate::kv) fn begin(mut file: File, source: &Record<'_>) -> io::Result<Self> {
        let mut header = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        header.extend(base::checksum::crc32c(&header).to_le_bytes());
        file.write_all(&header)?;
        let mut writer = Self::go_on(file, 0, HEADER_BYTES as u64, Totals::default());
        writer.push(source)?;
        Ok(writer)
    }

    /// Continues an archive in `file`, at whose end block `number` begins.
    pub(in crate::kv) fn go_on(file: File, number: u64, at: u64, totals: Totals) -> Self {
        Self { file, records: Vec::new(), number, at, totals }
    }

    /// Returns the totals of all entries written.
    pub(in crate::kv) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Writes the value of a key, or a part of it.
    pub(in crate::kv) fn entry(&mut self, entry: Entry<'_>) -> io::Result<()> {
        self.totals.add(&entry);
        self.push(&Record::Entry(entry))?;
        if self.records.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    /// Passes all records so far to the kernel, so that they survive the end of this process.
    pub(in crate::kv) fn cursor(&mut self, cursor: u64) -> io::Result<()> {
        self.push(&Record::Cursor(cursor))?;
        self.close_block()
    }

    /// Ends the archive. Returns when it is on the disk.
    pub(in crate::kv) fn end(mut self) -> io::Result<Totals> {
        self.close_block()?;
        let (number, at) = (self.number, self.at);
        self.push(&Record::End(self.totals))?;
        self.close_block()?;
        let mut footer = [&END_MAGIC[..], &number.to_le_bytes(), &at.to_le_bytes()].concat();
        footer.extend(base::checksum::crc32c(&footer).to_le_bytes());
        self.file.write_all(&footer)?;
        self.file.sync_all()?;
        Ok(self.totals)
    }

    fn push(&mut self, record: &Record<'_>) -> io::Result<()> {
        let records = std::mem::take(&mut self.records);
        self.records = postcard::to_extend(record, records).map_err(io::Error::other)?;
        Ok(())
    }

    fn close_block(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let len = u32::try_from(self.records.len()).map_err(io::Error::other)?;
        let crc = checksum(self.number, &self.records);
        let head = [len.to_le_bytes(), crc.to_le_bytes()].concat();
        self.file.write_all(&head)?;
        self.file.write_all(&self.records)?;
        self.at += (head.len() + self.records.len()) as u64;
        self.number += 1;
        self.records.clear();
        Ok(())
    }
}
