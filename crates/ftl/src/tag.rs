use base::checksum::crc32c;
use media::{ExtentId, Label, Stream};

/// The content of a block's tag, in its first page.
///
/// On flash, little endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..4 | CRC-32C of the rest |
/// | 4 | format, 2 |
/// | 5 | stream of the label |
/// | 6..8 | position in the stripe |
/// | 8..16 | epoch of the label |
/// | 16..20 | extent |
/// | 20..22 | how often the block of this place was replaced |
/// | 22..24 | the block, within its die, at the stripe's first place when this was opened |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) label: Label,
    pub(crate) extent: ExtentId,
    pub(crate) position: u32,
    pub(crate) replaced: u16,
    pub(crate) first: u16,
}

const FORMAT: u8 = 2;

impl Tag {
    pub(crate) fn encode(&self) -> nand::Tag {
        let position = u16::try_from(self.position).expect("a stripe has at most 65,536 planes");
        let mut bytes = [0; nand::TAG_BYTES];
        bytes[4] = FORMAT;
        bytes[5] = self.label.stream as u8;
        bytes[6..8].copy_from_slice(&position.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.label.epoch.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.extent.0.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.replaced.to_le_bytes());
        bytes[22..].copy_from_slice(&self.first.to_le_bytes());
        let crc = crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a tag. `None` for bytes that are no tag, or a damaged one.
    pub(crate) fn decode(bytes: &nand::Tag) -> Option<Self> {
        let [c0, c1, c2, c3, format, stream, p0, p1, rest @ ..] = *bytes;
        if u32::from_le_bytes([c0, c1, c2, c3]) != crc32c(&bytes[4..]) || format != FORMAT {
            return None;
        }
        let stream = Stream::from_number(stream)?;
        let [e0, e1, e2, e3, e4, e5, e6, e7, x0, x1, x2, x3, r0, r1, f0, f1] = rest;
        let epoch = u64::from_le_bytes([e0, e1, e2, e3, e4, e5, e6, e7]);
        Some(Self {
            label: Label { stream, epoch },
            extent: ExtentId(u32::from_le_bytes([x0, x1, x2, x3])),
            position: u32::from(u16::from_le_bytes([p0, p1])),
            replaced: u16::from_le_bytes([r0, r1]),
            first: u16::from_le_bytes([f0, f1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag {
        label: Label { stream: Stream::Gc, epoch: 0x0102_0304_0506_0708 },
        extent: ExtentId(0x1112_1314),
        position: 0x2122,
        replaced: 0x3132,
        first: 0x4142,
    };

    #[test]
    fn a_tag_lies_on_flash_as_its_table_says() {
        let bytes = TAG.encode();
        assert_eq!(bytes[4..8], [2, 1, 0x22, 0x21]);
        assert_eq!(bytes[8..16], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(bytes[16..], [0x14, 0x13, 0x12, 0x11, 0x32, 0x31, 0x42, 0x41]);
        assert_eq!(bytes[..4], crc32c(&bytes[4..]).to_le_bytes());
        assert_eq!(Tag::decode(&bytes), Some(TAG));
    }

    #[test]
    fn no_flipped_bit_leaves_a_tag() {
        for bit in 0..nand::TAG_BYTES * 8 {
            let mut bytes = TAG.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Tag::decode(&bytes), None);
        }
        assert_eq!(Tag::decode(&[0; nand::TAG_BYTES]), None);
        assert_eq!(Tag::decode(&[0xFF; nand::TAG_BYTES]), None);
    }
}
