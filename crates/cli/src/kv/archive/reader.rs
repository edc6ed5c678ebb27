use super::record::Record;
use super::totals::Totals;
use super::{
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, END_MAGIC, FOOTER_BYTES, HEADER_BYTES, MAGIC, VERSION,
    checksum,
};
use base::checksum::crc32c;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Why the reader stops in an archive.
#[derive(Debug, thiserror::Error)]
pub(in crate::kv) enum ArchiveError {
    /// The file is not an archive.
    #[error("it is not an archive of kvasir kv export")]
    Foreign,
    /// The version is unknown.
    #[error("it is an archive of version {0}, but this program reads version {VERSION}")]
    Newer(u32),
    /// The file ends in the middle of a block.
    #[error("it ends in the middle: its export was interrupted")]
    Unfinished,
    /// A block differs from the written one.
    #[error("it is damaged at byte {at}")]
    Damaged {
        /// Offset of the block.
        at: u64,
    },
    /// All blocks are intact, and the footer is damaged.
    #[error("its end, at byte {at}, is damaged")]
    DamagedEnd {
        /// Offset of the footer.
        at: u64,
    },
    /// Bytes follow the footer.
    #[error("it is complete up to byte {len}, but more bytes follow")]
    Longer {
        /// Bytes of the archive without them.
        len: u64,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
}

/// Reads the blocks of an archive in order.
#[derive(Debug)]
pub(in crate::kv) struct Reader {
    file: File,
    /// Number of the next block.
    number: u64,
    /// Offset of the next block.
    at: u64,
    records: Vec<u8>,
    /// Whether the file ends with a footer, so that no export still writes to it.
    has_footer: bool,
    /// Whether the previous block was the last.
    is_over: bool,
}

impl Reader {
    /// Opens an archive, complete or not.
    pub(in crate::kv) fn open(mut file: File) -> Result<Self, ArchiveError> {
        file.rewind()?;
        let mut header = [0; HEADER_BYTES];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ArchiveError::Foreign);
            }
            read => read?,
        }
        let (magic, version) = (&header[..8], word(&header[8..12]));
        if magic != MAGIC || word(&header[12..]) != crc32c(&header[..12]) {
            return Err(ArchiveError::Foreign);
        }
        if version != VERSION {
            return Err(ArchiveError::Newer(version));
        }
        let mut reader = Self {
            file,
            number: 0,
            at: HEADER_BYTES as u64,
            records: Vec::new(),
            has_footer: false,
            is_over: false,
        };
        reader.has_footer = reader.footer()?.is_some();
        reader.restart()?;
        Ok(reader)
    }

    /// The same at block `number`, at byte offset `at`.
    pub(in crate::kv) fn go_on(&mut self, number: u64, at: u64) -> Result<(), ArchiveError> {
        self.file.seek(SeekFrom::Start(at))?;
        (self.number, self.at, self.is_over) = (number, at, false);
        Ok(())
    }

    /// The same at its first block.
    pub(in crate::kv) fn restart(&mut self) -> Result<(), ArchiveError> {
        self.go_on(0, HEADER_BYTES as u64)
    }

    /// Returns the number and the offset of the next block.
    pub(in crate::kv) fn place(&self) -> (u64, u64) {
        (self.number, self.at)
    }

    /// True if the file ends with a footer; blocks before it may be damaged.
    pub(in crate::kv) fn has_footer(&self) -> bool {
        self.has_footer
    }

    /// Returns the totals of a complete archive. Then the next block is the first one.
    pub(in crate::kv) fn totals(&mut self) -> Result<Totals, ArchiveError> {
        if let Some((number, at)) = self.footer()? {
            self.go_on(number, at)?;
            if let Ok(Some(totals)) = self.last() {
                self.restart()?;
                return Ok(totals);
            }
        }
        Err(self.why_not_whole()?)
    }

    /// Returns number and offset of the last block, if the file ends with a footer.
    fn footer(&mut self) -> Result<Option<(u64, u64)>, ArchiveError> {
        let len = self.file.metadata()?.len();
        match len.checked_sub(FOOTER_BYTES as u64) {
            Some(at) if at >= HEADER_BYTES as u64 => self.footer_at(at),
            _ => Ok(None),
        }
    }

    /// The same for a footer at byte offset `at`.
    fn footer_at(&mut self, at: u64) -> Result<Option<(u64, u64)>, ArchiveError> {
        self.file.seek(SeekFrom::Start(at))?;
        let mut footer = [0; FOOTER_BYTES];
        let is_footer = self.fill(&mut footer)?
            && footer[..8] == END_MAGIC
            && word(&footer[24..]) == crc32c(&footer[..24]);
        Ok(is_footer.then(|| (long(&footer[8..16]), long(&footer[16..24]))))
    }

    /// Returns the totals, if the next block is the last one and the footer follows it.
    fn last(&mut self) -> Result<Option<Totals>, ArchiveError> {
        let totals = match self.next()?.as_deref() {
            Some([Record::End(totals)]) => *totals,
            _ => return Ok(None),
        };
        Ok(self.next()?.is_none().then_some(totals))
    }

    /// Returns the error in the file, which this reads from the start.
    fn why_not_whole(&mut self) -> Result<ArchiveError, ArchiveError> {
        self.restart()?;
        let has_footer = self.has_footer;
        loop {
            match self.next() {
                Ok(Some(_)) => {}
                // The footer names another offset than that of its last block.
                Ok(None) => return Ok(ArchiveError::DamagedEnd { at: self.place().1 }),
                // The export was interrupted while it wrote this block.
                Err(ArchiveError::Damaged { .. }) if !has_footer => {
                    return Ok(ArchiveError::Unfinished);
                }
                Err(error) => return Ok(error),
            }
        }
    }

    /// Returns the records of the next block, or none at the end of a complete archive.
    pub(in crate::kv) fn next(&mut self) -> Result<Option<Vec<Record<'_>>>, ArchiveError> {
        let at = self.at;
        if self.is_over {
            return self.end().map(|()| None);
        }
        let mut head = [0; BLOCK_HEAD_BYTES];
        if !self.fill(&mut head)? {
            return Err(self.short());
        }
        if head == END_MAGIC {
            return self.end().map(|()| None);
        }
        let (len, crc) = (word(&head[..4]), word(&head[4..]));
        if len == 0 || len > BLOCK_BYTES_MAX {
            return Err(ArchiveError::Damaged { at });
        }
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        // Reads only the bytes that exist: a damaged length may be larger.
        (&self.file).take(len.into()).read_to_end(&mut records)?;
        self.records = records;
        if self.records.len() < len as usize {
            return Err(self.short());
        }
        if checksum(self.number, &self.records) != crc {
            return Err(ArchiveError::Damaged { at });
        }
        self.number += 1;
        self.at += BLOCK_HEAD_BYTES as u64 + u64::from(len);
        let (mut rest, mut records) = (&self.records[..], Vec::new());
        while !rest.is_empty() {
            let taken = postcard::take_from_bytes(rest);
            let (record, after) = taken.map_err(|_| ArchiveError::Damaged { at })?;
            records.push(record);
            rest = after;
        }
        self.is_over = matches!(records[..], [Record::End(_)]);
        Ok(Some(records))
    }

    /// Only a footer may follow the last block.
    fn end(&mut self) -> Result<(), ArchiveError> {
        let at = self.at;
        let (len, whole) = (self.file.metadata()?.len(), at + FOOTER_BYTES as u64);
        if len < whole {
            return Err(self.short());
        }
        if self.footer_at(at)?.is_none() {
            return Err(ArchiveError::DamagedEnd { at });
        }
        if len > whole { Err(ArchiveError::Longer { len: whole }) } else { Ok(()) }
    }

    /// The file is shorter than its next block.
    fn short(&self) -> ArchiveError {
        if self.has_footer {
            ArchiveError::Damaged { at: self.at }
        } else {
            ArchiveError::Unfinished
        }
    }

    /// Fills `into`. Returns false if the file has too few bytes.
    fn fill(&mut self, into: &mut [u8]) -> Result<bool, ArchiveError> {
        match self.file.read_exact(into) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => Ok(read.map(|()| true)?),
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

fn long(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}
