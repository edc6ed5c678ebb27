//! A file of pairs on their way from one server to another, as `docs/internals/archive.md`
//! describes it byte by byte.
//!
//! 1. [`record`] is what it is made of: parts of what keys hold, and places where a listing can be
//!    gone on with.
//! 2. [`writer`] puts records into blocks with checksums, [`reader`] takes them out and says what
//!    is damaged or missing.
//! 3. [`totals`] are counts, and a checksum that does not depend on the order of keys.

mod reader;
mod record;
mod totals;
mod writer;

#[cfg(test)]
mod tests;

pub(super) use reader::{ArchiveError, Reader};
pub(super) use record::{Bytes, Content, Entry, Record};
pub(super) use totals::Totals;
pub(super) use writer::Writer;

/// What an archive begins with.
const MAGIC: [u8; 8] = *b"KVARCHIV";

/// What a whole archive ends with, ahead of which block is its last and where that begins. No block
/// begins with it: it would be too long.
const END_MAGIC: [u8; 8] = *b"KVARCEND";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes of the header: magic, version, checksum.
const HEADER_BYTES: usize = 16;

/// Bytes before a block's records: their length, and their checksum.
const BLOCK_HEAD_BYTES: usize = 8;

/// Bytes behind the last block: magic, its number, where it begins, checksum.
const FOOTER_BYTES: usize = 28;

/// A block is closed when it has so many bytes of records; one record can be longer.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes of records of a block at most: one that is open, and a field and a value of Redis, each of
/// which has up to 512 MiB.
const BLOCK_BYTES_MAX: u32 = 1_026 << 20;

/// The checksum of block number `number` of these records.
fn checksum(number: u64, records: &[u8]) -> u32 {
    base::checksum::crc32c_append(base::checksum::crc32c(&number.to_le_bytes()), records)
}
