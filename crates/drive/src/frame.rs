use crate::layout::{HEAD_BYTES, Layout, NOTE_BYTES, SPARE_BYTES};
use crate::origin::{Kind, ORIGIN_BYTES, Origin, word};
use base::Buf;
use base::checksum::{crc32c, crc32c_append, crc32c_flipped_bit};
use media::{Label, Page, Stream};

/// What stands before the spare bytes of a page:
///
/// | bytes | what |
/// |---|---|
/// | 0..36 | as all, kind 1; the checksum covers the spare bytes too |
/// | 36..40 | number of the page |
/// | 40..44 | landed: all pages below this one outlived any loss of power when this was written |
/// | 44..48 | bytes of data |
/// | 48..50 | spare bytes |
/// | 50 | stream of the label |
/// | 51 | units of padding right before the frame |
/// | 52..56 | CRC-32C of the data |
/// | 56..64 | epoch of the label |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) origin: Origin,
    pub(crate) label: Label,
    pub(crate) page: u32,
    pub(crate) landed: u32,
    pub(crate) padding: u8,
    pub(crate) spare_len: u32,
    pub(crate) data_len: u32,
    pub(crate) data_crc: u32,
}

const HEAD_LEN: usize = HEAD_BYTES as usize;

impl Head {
    fn encode(&self, bytes: &mut [u8]) {
        self.origin.encode(Kind::Frame, bytes);
        let spare_len = u16::try_from(self.spare_len).expect("it fits a unit");
        bytes[ORIGIN_BYTES..40].copy_from_slice(&self.page.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.landed.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.data_len.to_le_bytes());
        bytes[48..50].copy_from_slice(&spare_len.to_le_bytes());
        bytes[50] = self.label.stream as u8;
        bytes[51] = self.padding;
        bytes[52..56].copy_from_slice(&self.data_crc.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.label.epoch.to_le_bytes());
    }

    /// Bytes of the head that begins here with its spare bytes, if it looks like one.
    pub(crate) fn len_of(bytes: &[u8]) -> Option<u32> {
        Origin::decode(Kind::Frame, bytes)?;
        let bytes = bytes.first_chunk::<HEAD_LEN>()?;
        let spare_len = u32::from(u16::from_le_bytes([bytes[48], bytes[49]]));
        (spare_len <= SPARE_BYTES).then_some(HEAD_BYTES + spare_len)
    }

    /// The head of `bytes`, which end with its spare bytes, if it is whole.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let spare_len = Self::len_of(bytes)? - HEAD_BYTES;
        let checked = bytes.get(4..HEAD_LEN + spare_len as usize)?;
        let whole = bytes.first_chunk::<HEAD_LEN>()?;
        if word(whole, 0) != crc32c(checked) {
            return None;
        }
        let stream = Stream::from_number(whole[50])?;
        let epoch = u64::from(word(whole, 56)) | u64::from(word(whole, 60)) << 32;
        Some(Self {
            origin: Origin::decode(Kind::Frame, whole)?,
            label: Label { stream, epoch },
            page: word(whole, ORIGIN_BYTES),
            landed: word(whole, 40),
            padding: whole[51],
            spare_len,
            data_len: word(whole, 44),
            data_crc: word(whole, 52),
        })
    }

    /// The head of `bytes`, which have as much as may be of it, and its spare bytes, if one bit was
    /// turned over and `is_right` of what it was before.
    pub(crate) fn repair(
        bytes: &[u8],
        is_right: impl Fn(&Self) -> bool,
    ) -> Option<(Self, Vec<u8>)> {
        let decode = |bytes: &[u8]| {
            let head = Self::decode(bytes).filter(&is_right)?;
            let spare = bytes.get(HEAD_LEN..HEAD_LEN + head.spare_len as usize)?;
            Some((head, spare.to_vec()))
        };
        let mut bytes = bytes.to_vec();
        for bit in 0..(8 * HEAD_LEN).min(8 * bytes.len()) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Some(whole) = decode(&bytes) {
                return Some(whole);
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let len = Self::len_of(&bytes)? as usize;
        let checked = bytes.get(4..len)?;
        let difference = word(&bytes, 0) ^ crc32c(checked);
        let bit = crc32c_flipped_bit(difference, checked.len() as u64)?;
        let bit = 8 * len - 1 - usize::try_from(bit).expect("there are few");
        bytes[bit / 8] ^= 1 << (bit % 8);
        decode(&bytes)
    }

    /// Units of the whole frame.
    pub(crate) fn units(&self, layout: &Layout) -> u32 {
        layout.frames().units(self.spare_len, self.data_len)
    }

    /// Where what lies before the frame ends, its padding left out.
    pub(crate) const fn end_before(&self) -> u32 {
        self.page.saturating_sub(self.padding as u32)
    }

    /// Fills `head` with this one of `page`, whose lengths and checksum are set from it, and with
    /// its spare bytes.
    fn fill(mut self, page: &Page, head: &mut [u8], data_crc: u32) {
        let spare = page.spare();
        self.spare_len = u32::try_from(spare.len()).expect("it fits a unit");
        (self.data_len, self.data_crc) = (page.data_bytes(), data_crc);
        let (used, padding) = head.split_at_mut(HEAD_LEN + spare.len());
        self.encode(used);
        used[HEAD_LEN..].copy_from_slice(spare);
        padding.fill(0);
        let crc = crc32c(&used[4..]);
        used[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Data below this is copied behind the head: a disk takes no parts of a sector, so it would copy
/// most of them anyway.
const COPIED_BYTES: u32 = NOTE_BYTES;

/// How the frame of a page is written: what is its own, one after the other, and in a gap of that
/// its data by reference, unless that was copied. In bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Zeros before it.
    before: u32,
    /// Head and spare bytes, to the end of a unit.
    head: u32,
    /// Data that is copied behind the head, to the end of a unit.
    copied: u32,
    /// Zeros behind data that is not copied, to the end of a unit.
    padding: u32,
}

impl Written {
    /// The frame of `page`, with `before` units of padding before it.
    pub(crate) fn of(layout: &Layout, before: u32, page: &Page) -> Self {
        let (spare_len, data_len) = (page.spare().len(), page.data_bytes());
        let spare_len = u32::try_from(spare_len).expect("it fits a unit");
        let before = layout.units_bytes(before);
        let head = layout.units_bytes(layout.frames().head_units(spare_len));
        let whole = layout.units_bytes(layout.frames().units_of(data_len));
        let are_bytes = |data: &[Buf]| data.iter().all(|part| part.bytes().is_some());
        if data_len < COPIED_BYTES && page.with_segments(are_bytes) {
            return Self { before, head, copied: whole, padding: 0 };
        }
        Self { before, head, copied: 0, padding: whole - data_len }
    }

    /// All that is the frame's own.
    pub(crate) const fn own(&self) -> u32 {
        self.before + self.head + self.copied + self.padding
    }

    /// Where among that its data comes by reference.
    pub(crate) fn gap(&self) -> Option<u32> {
        (self.copied == 0).then_some(self.before + self.head)
    }

    /// Fills all that is the frame's own: it has the head of `page`.
    pub(crate) fn fill(&self, head: Head, page: &Page, own: &mut [u8]) {
        let (before, frame) = own.split_at_mut(self.before as usize);
        before.fill(0);
        let (front, rest) = frame.split_at_mut(self.head as usize);
        if self.copied == 0 {
            rest.fill(0);
            let data_crc = page.crc().unwrap_or_else(|| page.with_segments(crc_of));
            return head.fill(page, front, data_crc);
        }
        let mut end = 0;
        page.with_segments(|data| {
            for bytes in data.iter().filter_map(Buf::bytes) {
                rest[end..end + bytes.len()].copy_from_slice(bytes);
                end += bytes.len();
            }
        });
        rest[end..].fill(0);
        head.fill(page, front, crc32c(&rest[..end]));
    }
}

fn crc_of(data: &[Buf]) -> u32 {
    let mut crc = DataCrc::default();
    for segment in data {
        crc.add(segment);
    }
    crc.value()
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Whole,
    /// The disk cannot read it, or one bit of its head or spare bytes is wrong and its data is
    /// whole. An interrupted write leaves no such thing.
    Damaged,
    /// It is not whole, or there was none. One wrong bit of data proves no damage: a sector that an
    /// interrupted write did not reach may differ in one bit from what it was to hold.
    Torn,
}

/// The checksum of data that comes in pieces, however it is cut: CRC-32C of the bytes, where for a
/// phantom stand its length and its tag.
#[derive(Debug, Default)]
pub(crate) struct DataCrc {
    crc: u32,
    phantom: Option<Buf>,
}

impl DataCrc {
    pub(crate) fn add(&mut self, piece: &Buf) {
        if piece.len() == 0 {
            return;
        }
        if let Some(bytes) = piece.bytes() {
            self.end_phantom();
            self.append(bytes);
            return;
        }
        let longer = self.phantom.as_ref().and_then(|p| Buf::join(&[p.clone(), piece.clone()]));
        if longer.is_none() {
            self.end_phantom();
        }
        self.phantom = Some(longer.unwrap_or_else(|| piece.clone()));
    }

    fn end_phantom(&mut self) {
        if let Some(phantom) = self.phantom.take() {
            self.append(&phantom.len().to_le_bytes());
            self.append(&phantom.checksum().to_le_bytes());
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        self.crc = crc32c_append(self.crc, bytes);
    }

    pub(crate) fn value(mut self) -> u32 {
        self.end_phantom();
        self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Opening;
    use base::BufMut;
    use media::{ExtentId, Segments, cut};

    const HEAD: Head = Head {
        origin: Origin {
            secret: [0xC3; 16],
            extent: ExtentId(0x0102_0304),
            opening: Opening { mount: 0x1112_1314, count: 0x2122_2324 },
        },
        label: Label { stream: Stream::Index, epoch: 0x5152_5354_5556_5758 },
        page: 0x3132_3334,
        landed: 0x4142_4344,
        padding: 7,
        spare_len: 0,
        data_len: 0,
        data_crc: 0,
    };

    fn layout(unit_bytes: u32) -> Layout {
        let extent_bytes = 64 << 10;
        Layout { block_bytes: 512, unit_bytes, extent_bytes, extents: 1, size_bytes: 1 << 20 }
    }

    fn segments(unit_bytes: u32, page: &Page) -> Segments {
        let written = Written::of(&layout(unit_bytes), 0, page);
        let mut own = BufMut::unpooled(written.own() as usize);
        own.as_mut().fill(0xEE);
        written.fill(HEAD, page, own.as_mut());
        let own = own.freeze();
        let Some(gap) = written.gap() else { return Segments::from_iter([own]) };
        let [head, padding] = [own.slice(0..gap), own.slice(gap..own.len())];
        let data = page.segments();
        [head].into_iter().chain(data).chain([padding]).filter(|part| part.len() > 0).collect()
    }

    fn frame(unit_bytes: u32, page: &Page) -> Vec<u8> {
        let frames = segments(unit_bytes, page);
        frames.iter().flat_map(|part| part.bytes().unwrap().to_vec()).collect()
    }

    #[test]
    fn a_frame_lies_as_its_table_says() {
        let data = [Buf::copy_from(b"12345"), Buf::copy_from(b"6789")];
        for unit_bytes in [512, 4_096] {
            let found = frame(unit_bytes, &Page::new(b"spare", data.clone()));
            let mut rest = vec![0x56, 0x44, 1, 1];
            rest.extend([0xC3; 16]);
            rest.extend([4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21]);
            rest.extend([0x34, 0x33, 0x32, 0x31, 0x44, 0x43, 0x42, 0x41, 9, 0, 0, 0, 5, 0, 2, 7]);
            // The check value of CRC-32C, of the digits from 1 to 9.
            rest.extend([0x83, 0x92, 0x06, 0xE3]);
            rest.extend([0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51]);
            rest.extend(b"spare");
            let mut expected = crc32c(&rest).to_le_bytes().to_vec();
            expected.extend(rest);
            expected.resize(unit_bytes as usize, 0);
            expected.extend(b"123456789");
            expected.resize(2 * unit_bytes as usize, 0);
            assert_eq!(found, expected);
            let (spare_len, data_len, data_crc) = (5, 9, 0xE306_9283);
            let head = Head { spare_len, data_len, data_crc, ..HEAD };
            assert_eq!(Head::decode(&found), Some(head));
            assert_eq!(head.units(&layout(unit_bytes)), 2);
        }
    }

    #[test]
    fn a_flipped_bit_of_head_or_spare_bytes_is_seen() {
        let whole = frame(512, &Page::new(&[7; 600], [Buf::copy_from(b"data")]));
        assert_eq!(whole.len(), 1_536);
        for bit in 0..8 * 664 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::decode(&bytes), None, "bit {bit}");
        }
        let head = Head::decode(&whole).unwrap();
        for bit in 0..8 * 664 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let repaired = Head::repair(&bytes, |found| *found == head);
            assert_eq!(repaired, Some((head, vec![7; 600])), "bit {bit}");
            bytes[(bit / 8 + 1) % 664] ^= 1;
            assert_eq!(Head::repair(&bytes, |found| *found == head), None, "bit {bit} and more");
        }
        for len in 0..664 {
            assert_eq!(Head::decode(&whole[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn long_values_are_written_by_reference_and_short_ones_behind_their_head() {
        let value = Buf::copy_from(&[5; 5_000]);
        let frames = segments(512, &Page::new(b"", [value.clone()]));
        assert_eq!(frames.iter().map(Buf::len).collect::<Vec<_>>(), [512, 5_000, 120]);
        assert_eq!(frames[1].bytes().unwrap().as_ptr(), value.bytes().unwrap().as_ptr());
        let frames = segments(512, &Page::new(b"", [value.slice(0..1_000), value.slice(0..9)]));
        assert_eq!(frames.iter().map(Buf::len).collect::<Vec<_>>(), [512 + 1_024]);
        let phantoms = Page::new(b"", [value.slice(0..9), Buf::phantom(40, 7)]);
        let lens: Vec<_> = segments(512, &phantoms).iter().map(Buf::len).collect();
        assert_eq!(lens, [512, 9, 40, 463]);
    }

    #[test]
    fn a_checksum_that_is_known_is_the_one_of_the_data() {
        let value = Buf::copy_from(&[5; 5_000]);
        let frame_of = |page| frame(512, &page);
        let known = frame_of(Page::with_crc(None, b"spare", value.clone(), value.crc32c()));
        assert_eq!(known, frame_of(Page::new(b"spare", [value])));
    }

    #[test]
    #[should_panic(expected = "00000007 is the CRC of the data")]
    fn a_wrong_checksum_of_data_is_noticed() {
        Page::with_crc(None, b"spare", Buf::copy_from(&[5; 5_000]), 7);
    }

    #[test]
    fn the_checksum_of_data_knows_content_and_not_how_it_is_cut() {
        let bytes: Vec<u8> = (0..100).collect();
        let data = [
            Buf::copy_from(&bytes),
            Buf::phantom(70, 5),
            Buf::phantom(30, 6),
            Buf::copy_from(b"x"),
            Buf::phantom(1, 0),
        ];
        let crc = |data: &[Buf]| {
            let mut crc = DataCrc::default();
            for piece in data {
                crc.add(piece);
            }
            crc.value()
        };
        let whole = crc(&data);
        for len in 1..80 {
            let starts = (0..202).step_by(len as usize);
            let pieces = starts.flat_map(|start| cut(&data, start, len.min(202 - start)).unwrap());
            assert_eq!(crc(&pieces.collect::<Vec<_>>()), whole);
        }
        for segment in 0..data.len() {
            let mut damaged = data.clone();
            damaged[segment] = data[segment].with_flipped_bit(7);
            assert_ne!(crc(&damaged), whole);
        }
        assert_ne!(crc(&data[..4]), whole);
    }
}
