use super::record::Record;
use super::totals::Totals;
use super::{
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, END_MAGIC, FOOTER_BYTES, HEADER_BYTES, MAGIC, VERSION,
    checksum,
};
use base::checksum::crc32c;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Why there is no reading on in an archive.
#[derive(Debug, thiserror::Error)]
pub(in crate::kv) enum ArchiveError {
    /// It is none.
    #[error("it is no archive of kvasir kv export")]
    Foreign,
    /// Its version is not known.
    #[error("it is an archive of version {0}, and this program knows version {VERSION}")]
    Newer(u32),
    /// It ends in the middle.
    #[error("it ends in the middle: its export did not come to its end")]
    Unfinished,
    /// A block is not what was written.
    #[error("it is damaged at byte {at}")]
    Damaged {
        /// Where the block begins.
        at: u64,
    },
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
}

/// The reading end of an archive: its blocks, one after the other.
#[derive(Debug)]
pub(in crate::kv) struct Reader {
    file: File,
    /// The next block.
    number: u64,
    /// Where that begins.
    at: u64,
    records: Vec<u8>,
}

impl Reader {
    /// An archive, whether it is whole or not.
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
        Ok(Self { file, number: 0, at: HEADER_BYTES as u64, records: Vec::new() })
    }

    /// The same at block `number`, which begins at byte `at`.
    pub(in crate::kv) fn go_on(&mut self, number: u64, at: u64) -> Result<(), ArchiveError> {
        self.file.seek(SeekFrom::Start(at))?;
        (self.number, self.at) = (number, at);
        Ok(())
    }

    /// The same at its first block.
    pub(in crate::kv) fn restart(&mut self) -> Result<(), ArchiveError> {
        self.go_on(0, HEADER_BYTES as u64)
    }

    /// The number of the next block, and where it begins.
    pub(in crate::kv) fn place(&self) -> (u64, u64) {
        (self.number, self.at)
    }

    /// What a whole archive ends with. The next block is the same as before.
    pub(in crate::kv) fn totals(&mut self) -> Result<Totals, ArchiveError> {
        let (number, at) = self.place();
        let len = self.file.seek(SeekFrom::End(0))?;
        let footer_at = len.checked_sub(FOOTER_BYTES as u64).filter(|footer_at| *footer_at >= at);
        let footer_at = footer_at.ok_or(ArchiveError::Unfinished)?;
        self.file.seek(SeekFrom::Start(footer_at))?;
        let mut footer = [0; FOOTER_BYTES];
        self.file.read_exact(&mut footer)?;
        let is_footer = footer[..8] == END_MAGIC && word(&footer[24..]) == crc32c(&footer[..24]);
        if !is_footer {
            return Err(ArchiveError::Unfinished);
        }
        let end_at = long(&footer[16..24]);
        self.go_on(long(&footer[8..16]), end_at)?;
        let totals = match self.next()?.as_deref() {
            Some([Record::End(totals)]) => *totals,
            _ => return Err(ArchiveError::Damaged { at: end_at }),
        };
        self.go_on(number, at)?;
        Ok(totals)
    }

    /// The records of the next block; none at the end of a whole archive.
    pub(in crate::kv) fn next(&mut self) -> Result<Option<Vec<Record<'_>>>, ArchiveError> {
        let at = self.at;
        let mut head = [0; BLOCK_HEAD_BYTES];
        if !self.fill(&mut head)? {
            return Err(ArchiveError::Unfinished);
        }
        if head == END_MAGIC {
            return Ok(None);
        }
        let (len, crc) = (word(&head[..4]), word(&head[4..]));
        if len == 0 || len > BLOCK_BYTES_MAX {
            return Err(ArchiveError::Damaged { at });
        }
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        // As much as is there, and not as much as a damaged length says.
        (&self.file).take(len.into()).read_to_end(&mut records)?;
        self.records = records;
        if self.records.len() < len as usize {
            return Err(ArchiveError::Unfinished);
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
        Ok(Some(records))
    }

    /// Reads as many bytes as `into` has; false: so many are not there.
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
