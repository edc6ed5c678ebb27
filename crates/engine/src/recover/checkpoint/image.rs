//! The image of a checkpoint: all that it keeps beside the index's table, and its encoding. Numbers
//! are little endian.

use crate::extent::Live;
use crate::format::address::Address;
use crate::key_space::{KeySpaceId, TableId};
use crate::lifetime::Lifetime;
use base::Key;
use clock::UnixMillis;
use media::{ExtentId, Label, Stream, Traffic};

/// Version of the format: 4 added long keys, 5 the lifetime. A store that does not know the version
/// is opened by a scan.
const FORMAT: u32 = 5;

/// A store at one instant, but for the entries of its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) extents: Vec<ExtentImage>,
    /// Extents that were being erased: nothing in them is needed.
    pub(crate) erasing: Vec<(ExtentId, Label)>,
    /// Extents of the table pages that the checkpoint leads to.
    pub(crate) tables: Vec<(ExtentId, Label)>,
    /// Tombstones that were in the index.
    pub(crate) deleting: Vec<(TableId, Key, Address)>,
    /// Tombstones of keys of which the cleaner may have copied an older record since.
    pub(crate) deleted: Vec<(TableId, Key, Address)>,
    /// Key spaces that have records.
    pub(crate) spaces: Vec<KeySpaceId>,
    /// The index's root: [`Saved::root`](crate::index::Saved::root).
    pub(crate) index: Vec<u8>,
    /// The extent at which scrubbing resumes, and the number of complete passes.
    pub(crate) scrubbed: (u32, u64),
    pub(crate) lifetime: Lifetime,
}

/// An extent of records at that instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtentImage {
    pub(crate) id: ExtentId,
    pub(crate) label: Label,
    /// The checkpoint knows all that is on the pages before this one.
    pub(crate) pages: u32,
    pub(crate) summary: Option<u32>,
    pub(crate) holes: Vec<u32>,
    pub(crate) values: Vec<(TableId, Live)>,
    pub(crate) tombstones: Live,
    pub(crate) needless: Vec<Address>,
    pub(crate) needless_bytes: u64,
    pub(crate) expires_first: Option<UnixMillis>,
    /// Of a record and its copies those to which the index does not point.
    pub(crate) left: Vec<Address>,
}

impl Image {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::new());
        out.u32(FORMAT);
        out.list(&self.extents, Out::extent);
        out.list(&self.erasing, |out, (id, label)| out.opening(*id, *label));
        out.list(&self.tables, |out, (id, label)| out.opening(*id, *label));
        out.list(&self.deleting, Out::tombstone);
        out.list(&self.deleted, Out::tombstone);
        out.list(&self.spaces, |out, space| out.u32(space.0.into()));
        out.bytes(&self.index);
        out.u32(self.scrubbed.0);
        out.u64(self.scrubbed.1);
        out.traffic(self.lifetime.hosts);
        out.traffic(self.lifetime.medium);
        out.0
    }

    /// `None` when it is not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = In(bytes);
        if from.u32()? != FORMAT {
            return None;
        }
        let image = Self {
            extents: from.list(In::extent)?,
            erasing: from.list(In::opening)?,
            tables: from.list(In::opening)?,
            deleting: from.list(In::tombstone)?,
            deleted: from.list(In::tombstone)?,
            spaces: from.list(|from| Some(KeySpaceId(u16::try_from(from.u32()?).ok()?)))?,
            index: from.bytes()?.to_vec(),
            scrubbed: (from.u32()?, from.u64()?),
            lifetime: Lifetime { hosts: from.traffic()?, medium: from.traffic()? },
        };
        from.0.is_empty().then_some(image)
    }
}

struct Out(Vec<u8>);

impl Out {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn len(&mut self, len: usize) {
        self.u32(u32::try_from(len).expect("a root is far smaller than 4 GiB"));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, list: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.len(list.len());
        for item in list {
            put(self, item);
        }
    }

    fn table(&mut self, table: TableId) {
        self.u32(table.space.0.into());
        self.u32(table.generation);
    }

    fn live(&mut self, live: Live) {
        self.u64(live.records);
        self.u64(live.bytes);
        self.u64(live.long_keys);
    }

    fn traffic(&mut self, traffic: Traffic) {
        self.u64(traffic.read_bytes);
        self.u64(traffic.written_bytes);
    }

    fn opening(&mut self, id: ExtentId, label: Label) {
        self.u32(id.0);
        self.u32(label.stream as u32);
        self.u64(label.epoch);
    }

    fn tombstone(&mut self, (table, key, address): &(TableId, Key, Address)) {
        self.table(*table);
        self.bytes(key.as_bytes());
        self.u64(address.to_bits());
    }

    fn extent(&mut self, extent: &ExtentImage) {
        self.opening(extent.id, extent.label);
        self.u32(extent.pages);
        self.u32(extent.summary.map_or(u32::MAX, |first| first));
        self.list(&extent.holes, |out, hole| out.u32(*hole));
        self.list(&extent.values, |out, (table, live)| {
            out.table(*table);
            out.live(*live);
        });
        self.live(extent.tombstones);
        self.list(&extent.needless, |out, address| out.u64(address.to_bits()));
        self.u64(extent.needless_bytes);
        self.u64(extent.expires_first.map_or(u64::MAX, |date| date.0));
        self.list(&extent.left, |out, address| out.u64(address.to_bits()));
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn list<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        (0..self.u32()?).map(|_| take(self)).collect()
    }

    fn address(&mut self) -> Option<Address> {
        let bits = self.u64()?;
        (bits >> Address::BITS == 0).then(|| Address::from_bits(bits))
    }

    fn table(&mut self) -> Option<TableId> {
        let space = KeySpaceId(u16::try_from(self.u32()?).ok()?);
        Some(TableId { space, generation: self.u32()? })
    }

    fn live(&mut self) -> Option<Live> {
        Some(Live { records: self.u64()?, bytes: self.u64()?, long_keys: self.u64()? })
    }

    fn traffic(&mut self) -> Option<Traffic> {
        Some(Traffic { read_bytes: self.u64()?, written_bytes: self.u64()? })
    }

    fn opening(&mut self) -> Option<(ExtentId, Label)> {
        let id = ExtentId(self.u32()?);
        let stream = Stream::from_number(u8::try_from(self.u32()?).ok()?)?;
        Some((id, Label { stream, epoch: self.u64()? }))
    }

    fn tombstone(&mut self) -> Option<(TableId, Key, Address)> {
        Some((self.table()?, Key::new(self.bytes()?).ok()?, self.address()?))
    }

    fn extent(&mut self) -> Option<ExtentImage> {
        let (id, label) = self.opening()?;
        Some(ExtentImage {
            id,
            label,
            pages: self.u32()?,
            summary: Some(self.u32()?).filter(|first| *first != u32::MAX),
            holes: self.list(Self::u32)?,
            values: self.list(|from| Some((from.table()?, from.live()?)))?,
            tombstones: self.live()?,
            needless: self.list(Self::address)?,
            needless_bytes: self.u64()?,
            expires_first: Some(self.u64()?).filter(|date| *date != u64::MAX).map(UnixMillis),
            left: self.list(Self::address)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let table = TableId { space: KeySpaceId(3), generation: 9 };
        let label = Label { stream: Stream::Gc, epoch: 77 };
        let address = Address::from_bits(0x1234_5678_9ABC);
        let extent = ExtentImage {
            id: ExtentId(5),
            label,
            pages: 100,
            summary: Some(98),
            holes: vec![1, 4],
            values: vec![(table, Live { records: 8, bytes: 80, long_keys: 5 })],
            tombstones: Live { records: 2, bytes: 12, long_keys: 0 },
            needless: vec![address],
            needless_bytes: 48,
            expires_first: Some(UnixMillis(123)),
            left: vec![address, Address::MIN],
        };
        let open = ExtentImage { summary: None, expires_first: None, ..extent.clone() };
        Image {
            extents: vec![extent, open],
            erasing: vec![(ExtentId(1), label)],
            tables: vec![(ExtentId(2), Label { stream: Stream::Index, epoch: 3 })],
            deleting: vec![(table, Key::new(b"gone").unwrap(), address)],
            deleted: vec![(table, Key::new(b"too").unwrap(), Address::MAX); 2],
            spaces: vec![KeySpaceId(3), KeySpaceId(u16::MAX)],
            index: vec![1, 2, 3],
            scrubbed: (0x0102_0304, 0x1112_1314_1516_1718),
            lifetime: Lifetime {
                hosts: Traffic { read_bytes: 1 << 40, written_bytes: 2 },
                medium: Traffic { read_bytes: 3, written_bytes: u64::MAX },
            },
        }
    }

    #[test]
    fn an_image_reads_back_as_it_was_written() {
        assert_eq!(Image::decode(&image().encode()), Some(image()));
        assert_eq!(Image::decode(&Image::default().encode()), Some(Image::default()));
    }

    #[test]
    fn an_image_of_another_format_is_none() {
        for format in [4_u32, 6] {
            let mut bytes = image().encode();
            bytes[..4].copy_from_slice(&format.to_le_bytes());
            assert_eq!(Image::decode(&bytes), None);
        }
    }

    #[test]
    fn a_piece_of_an_image_is_none() {
        let bytes = image().encode();
        assert!((0..bytes.len()).all(|len| Image::decode(&bytes[..len]).is_none()));
        assert_eq!(Image::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
