//! An archive: a file of pairs from one server, to be stored on another.
//! `docs/internals/archive.md` describes it byte by byte.
//!
//! 1. [`record`] has its records: parts of keys' values, and cursors at which a listing can be
//!    continued.
//! 2. [`writer`] packs records into blocks with checksums. [`reader`] unpacks them and reports
//!    damaged or missing blocks.
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

/// Start of an archive.
const MAGIC: [u8; 8] = *b"KVARCHIV";

/// Start of the footer of a complete archive; the number and the offset of the last block follow.
/// No block starts with these bytes: its length would be too large.
const END_MAGIC: [u8; 8] = *b"KVARCEND";

/// The version of the format.
const VERSION: u32 = 1;

/// Bytes of the header: magic, version, checksum.
const HEADER_BYTES: usize = 16;

/// Bytes of a block's header: length and checksum of its records.
const BLOCK_HEAD_BYTES: usize = 8;

/// Bytes of the footer: magic, number and offset of the last block, checksum.
const FOOTER_BYTES: usize = 28;

/// A block is closed when its records have this many bytes; one record can be longer.
const BLOCK_BYTES: usize = 1 << 20;

/// Most bytes of a block's records: those of an open block, and a field and its value from Redis,
/// each of up to 512 MiB.
const BLOCK_BYTES_MAX: u32 = 1_026 << 20;

/// Returns the checksum of block number `number` with these records.
fn checksum(number: u64, records: &[u8]) -> u32 {
    base::checksum::crc32c_append(base::checksum::crc32c(&number.to_le_bytes()), records)
}
