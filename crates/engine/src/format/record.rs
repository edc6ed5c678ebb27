//! The header of a record: who wrote what, when, and how to know that it is whole.
//!
//! ```text
//!  0       4        8                16          20           24      26 27 28 29 30       32
//! +-------+--------+----------------+-----------+------------+-------+--+--+--+--+--------+-----
//! |crc hdr|crc valu|epoch16 count48 |value bytes|generation  |space  |fm|ki|fl|kl|val offs|key..
//! +-------+--------+----------------+-----------+------------+-------+--+--+--+--+--------+-----
//! ```
//! Little endian. The first checksum covers all that follows it to the end of the key. Headers are
//! padded to 8 bytes, so that an address can count in units of 8. The value's offset counts from
//! the first byte of the page's values. When a flag says so, the date of expiry stands before the
//! key, in 8 bytes.

use crate::key_space::TableId;
use base::Key;
use base::checksum::crc32c;
use clock::UnixMillis;
use serde::{Deserialize, Serialize};

/// Bytes before the date of expiry and the key.
const FIXED_BYTES: usize = 32;
/// Bytes of a date of expiry.
const EXPIRY_BYTES: usize = 8;
const FORMAT: u8 = 1;

/// The record expires.
const EXPIRES: u8 = 1;
/// The record with the number before is of the same batch.
const HAS_BEFORE: u8 = 2;
/// So is the one with the number after.
const HAS_AFTER: u8 = 4;

/// A header starts at a multiple of this many bytes.
pub(crate) const HEADER_ALIGN: usize = 8;

/// A place in the order of everything that was written: the mount's number in the upper 16 bits, a
/// count in the lower 48.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    pub(crate) const COUNT_BITS: u32 = 48;

    /// Which mount has given it out, from the first of the store.
    pub(crate) const fn mount(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    /// The first number of the first mount.
    pub(crate) const fn first() -> Self {
        Self(1 << Self::COUNT_BITS)
    }

    /// The first number of the mount after the one that gave out `self`, if there may be one more.
    pub(crate) fn next_mount(self) -> Option<Self> {
        let mount = self.mount() + 1;
        (mount < 1 << 16).then_some(Self(mount << Self::COUNT_BITS))
    }
}

/// What a record says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Value = 1,
    /// The key does not exist.
    Tombstone = 2,
    /// The key has a value that the medium could not return when it was to be moved.
    Lost = 3,
    /// A page of the index's table.
    Table = 4,
}

impl Kind {
    /// True for the kinds of record that make their key exist.
    pub(crate) const fn is_value(self) -> bool {
        matches!(self, Self::Value | Self::Lost)
    }
}

/// Whether a record's neighbours, by their numbers, are of the same batch. A record on its own, and
/// a copy of any, has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InBatch {
    pub(crate) has_before: bool,
    pub(crate) has_after: bool,
}

/// A decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header<'a> {
    /// 0 until `Log::append` sets it. A copy keeps the number of its record.
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) table: TableId,
    pub(crate) value_len: u32,
    pub(crate) value_crc: u32,
    /// From the first byte of the page's values.
    pub(crate) value_offset: u16,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) batch: InBatch,
    pub(crate) key: &'a [u8],
}

/// Bytes of the header of a record with a key of `key_len` bytes, padding included.
#[inline]
pub(crate) const fn header_len(key_len: usize, expires: Option<UnixMillis>) -> usize {
    (key_start(expires) + key_len + HEADER_ALIGN - 1) & !(HEADER_ALIGN - 1)
}

/// Returns the place of the key in its header.
#[inline]
const fn key_start(expires: Option<UnixMillis>) -> usize {
    if expires.is_some() { FIXED_BYTES + EXPIRY_BYTES } else { FIXED_BYTES }
}

impl<'a> Header<'a> {
    /// Appends the header's bytes to `out`. The checksum is 0 unless it `is_checked`.
    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>, is_checked: bool) {
        let start = out.len();
        let key_len = u8::try_from(self.key.len()).expect("a key has at most 255 bytes");
        let mut fixed = [0; FIXED_BYTES];
        fixed[4..8].copy_from_slice(&self.value_crc.to_le_bytes());
        fixed[8..16].copy_from_slice(&self.sequence.0.to_le_bytes());
        fixed[16..20].copy_from_slice(&self.value_len.to_le_bytes());
        fixed[20..24].copy_from_slice(&self.table.generation.to_le_bytes());
        fixed[24..26].copy_from_slice(&self.table.space.0.to_le_bytes());
        fixed[26..30].copy_from_slice(&[FORMAT, self.kind as u8, self.flags(), key_len]);
        fixed[30..32].copy_from_slice(&self.value_offset.to_le_bytes());
        out.extend_from_slice(&fixed);
        if let Some(UnixMillis(date)) = self.expires {
            out.extend_from_slice(&date.to_le_bytes());
        }
        out.extend_from_slice(self.key);
        if is_checked {
            let crc = crc32c(&out[start + 4..]);
            out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
        }
        out.resize(start + self.len(), 0);
    }

    /// The header at the start of `bytes`; `None` when it is not whole.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk()?;
        let expiry = if fixed[28] & EXPIRES == 0 { 0 } else { EXPIRY_BYTES };
        let checked = bytes.get(4..FIXED_BYTES + expiry + usize::from(fixed[29]))?;
        let is_whole = fixed[..4] == crc32c(checked).to_le_bytes();
        if is_whole { Self::decode_vouched(bytes) } else { None }
    }

    /// The same, but checks no checksum: of bytes that cannot have changed.
    #[inline]
    pub(crate) fn decode_vouched(bytes: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; FIXED_BYTES] = bytes.first_chunk()?;
        let flags = fixed[28];
        let expiry = if flags & EXPIRES == 0 { 0 } else { EXPIRY_BYTES };
        let end = FIXED_BYTES + expiry + usize::from(fixed[29]);
        let (expiry, key) = bytes.get(FIXED_BYTES..end)?.split_at(expiry);
        if fixed[26] != FORMAT {
            return None;
        }
        let kind = match fixed[27] {
            1 => Kind::Value,
            2 => Kind::Tombstone,
            3 => Kind::Lost,
            4 => Kind::Table,
            _ => return None,
        };
        if flags & !(EXPIRES | HAS_BEFORE | HAS_AFTER) != 0 {
            return None;
        }
        let date = expiry.first_chunk().map(|date| UnixMillis(u64::from_le_bytes(*date)));
        let batch =
            InBatch { has_before: flags & HAS_BEFORE != 0, has_after: flags & HAS_AFTER != 0 };
        Some(Self {
            sequence: Sequence(u64::from_le_bytes(field(fixed, 8))),
            kind,
            table: TableId {
                space: crate::KeySpaceId(u16::from_le_bytes(field(fixed, 24))),
                generation: u32::from_le_bytes(field(fixed, 20)),
            },
            value_len: u32::from_le_bytes(field(fixed, 16)),
            value_crc: u32::from_le_bytes(field(fixed, 4)),
            value_offset: u16::from_le_bytes(field(fixed, 30)),
            expires: date,
            batch,
            key,
        })
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.expires.is_some(), EXPIRES)
            | flag(self.batch.has_before, HAS_BEFORE)
            | flag(self.batch.has_after, HAS_AFTER)
    }

    /// Returns the header with other bytes of the same key, which may outlive its own.
    #[inline]
    pub(crate) const fn with_key<'k>(&self, key: &'k [u8]) -> Header<'k> {
        let Self { sequence, kind, table, value_len, value_crc, value_offset, .. } = *self;
        let (expires, batch) = (self.expires, self.batch);
        Header { sequence, kind, table, value_len, value_crc, value_offset, expires, batch, key }
    }

    /// Bytes that the header takes, padding included.
    pub(crate) const fn len(&self) -> usize {
        header_len(self.key.len(), self.expires)
    }
}

#[inline]
fn field<const N: usize>(fixed: &[u8; FIXED_BYTES], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&fixed[at..at + N]);
    bytes
}

/// A header without its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderFields {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) value_len: u32,
    pub(crate) expires: Option<UnixMillis>,
    /// Bytes that the header takes, padding included.
    pub(crate) len: usize,
}

impl HeaderFields {
    #[inline]
    pub(crate) fn of(header: &Header<'_>) -> Self {
        let Header { sequence, kind, value_len, expires, .. } = *header;
        Self { sequence, kind, value_len, expires, len: header.len() }
    }
}

/// A header with a key of its own.
#[derive(Clone, Debug)]
pub(crate) struct OwnedHeader {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) table: TableId,
    pub(crate) value_len: u32,
    pub(crate) value_crc: u32,
    pub(crate) expires: Option<UnixMillis>,
    pub(crate) batch: InBatch,
    pub(crate) key: Key,
}

impl OwnedHeader {
    pub(crate) fn new(header: &Header<'_>) -> Self {
        Self {
            sequence: header.sequence,
            kind: header.kind,
            table: header.table,
            value_len: header.value_len,
            value_crc: header.value_crc,
            expires: header.expires,
            batch: header.batch,
            key: Key::new(header.key).expect("a stored key has 1 to 255 bytes"),
        }
    }

    pub(crate) fn borrowed(&self) -> Header<'_> {
        let Self { sequence, kind, table, value_len, value_crc, expires, batch, .. } = *self;
        let key = self.key.as_bytes();
        Header { sequence, kind, table, value_len, value_crc, value_offset: 0, expires, batch, key }
    }

    /// Bytes that the header takes, padding included.
    pub(crate) fn len(&self) -> usize {
        header_len(self.key.as_bytes().len(), self.expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeySpaceId;

    fn header(key: &[u8]) -> Header<'_> {
        Header {
            sequence: Sequence(0x0003_0000_0000_002A),
            kind: Kind::Value,
            table: TableId { space: KeySpaceId(1), generation: 2 },
            value_len: 4096,
            value_crc: 0xDEAD_BEEF,
            value_offset: 12_288,
            expires: None,
            batch: InBatch::default(),
            key,
        }
    }

    #[test]
    fn headers_of_every_key_length_decode_to_what_was_encoded() {
        let key = [0xA5; 255];
        for len in 1..=255 {
            let mut bytes = Vec::new();
            header(&key[..len]).encode(&mut bytes, true);
            assert_eq!(bytes.len(), header_len(len, None));
            assert_eq!(bytes.len() % HEADER_ALIGN, 0);
            assert_eq!(Header::decode(&bytes), Some(header(&key[..len])));
        }
    }

    #[test]
    fn flags_and_a_date_decode_to_what_was_encoded() {
        let kinds = [Kind::Value, Kind::Tombstone, Kind::Lost, Kind::Table];
        for flags in 0..32 {
            let batch = InBatch { has_before: flags & 2 != 0, has_after: flags & 4 != 0 };
            let expires = (flags & 1 != 0).then_some(UnixMillis(1 << flags | 0xFF));
            let kind = kinds[flags >> 3];
            let with = Header { kind, expires, batch, ..header(b"a key") };
            let mut bytes = Vec::new();
            with.encode(&mut bytes, true);
            assert_eq!((bytes.len(), bytes[28]), (with.len(), u8::try_from(flags & 7).unwrap()));
            assert_eq!(Header::decode(&bytes), Some(with));
            // An unknown flag would change the meaning of the other bytes.
            bytes[28] |= 8;
            let end = 32 + 5 + if expires.is_some() { 8 } else { 0 };
            let crc = crc32c(&bytes[4..end]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Header::decode(&bytes), None);
        }
    }

    #[test]
    fn a_header_in_memory_has_no_checksum() {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        header(b"key").encode(&mut with, true);
        header(b"key").encode(&mut without, false);
        assert_eq!((without[..4] == [0; 4], without[4..] == with[4..]), (true, true));
        assert_eq!(Header::decode(&without), None);
        assert_eq!(Header::decode_vouched(&without), Some(header(b"key")));
    }

    #[test]
    fn a_date_stands_before_the_key() {
        let mut bytes = Vec::new();
        Header { expires: Some(UnixMillis(0x0102_0304)), ..header(b"key") }
            .encode(&mut bytes, true);
        assert_eq!(bytes[26..30], [1, 1, 1, 3]);
        assert_eq!(bytes[32..40], [4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(bytes[40..], [b'k', b'e', b'y', 0, 0, 0, 0, 0]);
        assert_eq!(bytes[0..4], crc32c(&bytes[4..43]).to_le_bytes());
    }

    #[test]
    fn the_layout_is_that_of_the_picture() {
        let mut bytes = Vec::new();
        header(b"key").encode(&mut bytes, true);
        assert_eq!(bytes[4..8], [0xEF, 0xBE, 0xAD, 0xDE]);
        assert_eq!(bytes[8..16], [0x2A, 0, 0, 0, 0, 0, 3, 0]);
        assert_eq!(bytes[16..32], [0, 16, 0, 0, 2, 0, 0, 0, 1, 0, 1, 1, 0, 3, 0, 48]);
        assert_eq!(bytes[32..], [b'k', b'e', b'y', 0, 0, 0, 0, 0]);
        assert_eq!(bytes[0..4], crc32c(&bytes[4..35]).to_le_bytes());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for expires in [None, Some(UnixMillis::MAX)] {
            let mut bytes = Vec::new();
            Header { expires, ..header(b"some key") }.encode(&mut bytes, true);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Header::decode(&bytes), None, "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let is_short = |len: usize| Header::decode(&bytes[..len]).is_none();
            assert!((0..bytes.len()).all(is_short), "cut short");
        }
    }

    #[test]
    fn a_later_mount_comes_after_everything_of_an_earlier_one() {
        let last = Sequence((7 << 48) | ((1 << 48) - 1));
        assert!(last.next_mount() > Some(last));
        assert_eq!(Sequence::default().next_mount(), Some(Sequence::first()));
        assert_eq!(Sequence(u64::MAX).next_mount(), None);
    }
}
