use crate::layout::NOTE_BYTES;
use crate::origin::{Kind, ORIGIN_BYTES, Opening, Origin, word};
use base::checksum::crc32c;
use base::{Buf, BufMut};
use media::{ExtentId, Label, Stream};

/// Bytes of a mark and of a footer; the rest of their 4 KiB is zero.
const LEN: usize = 64;

/// What stands for no summary.
const NO_SUMMARY: u32 = u32::MAX;

/// Says in an extent's first 4 KiB, and in its last but one, that this opening of the extent and
/// all before it are no more: the extent is free until a page of a later one has landed.
///
/// | bytes | what |
/// |---|---|
/// | 0..36 | as all, kind 2 |
/// | 36..64 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) Origin);

/// Says in an extent's last 4 KiB that nothing more comes behind its pages, which all had landed.
///
/// | bytes | what |
/// |---|---|
/// | 0..36 | as all, kind 3 |
/// | 36..40 | units of all pages together |
/// | 40..44 | first page of the summary, or `0xFFFFFFFF` where there is none |
/// | 44..50 | zero |
/// | 50 | stream of the label |
/// | 51..56 | zero |
/// | 56..64 | epoch of the label |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) origin: Origin,
    pub(crate) label: Label,
    pub(crate) pages: u32,
    pub(crate) summary: Option<u32>,
}

fn seal(bytes: &mut [u8; LEN]) {
    let crc = crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
}

fn opened(bytes: &[u8]) -> Option<&[u8; LEN]> {
    let bytes = bytes.first_chunk::<LEN>()?;
    (word(bytes, 0) == crc32c(&bytes[4..])).then_some(bytes)
}

/// The 4 KiB that begin with `bytes`.
fn padded(bytes: &[u8; LEN]) -> Buf {
    let mut note = BufMut::unpooled(NOTE_BYTES as usize);
    note.as_mut()[..LEN].copy_from_slice(bytes);
    note.freeze()
}

impl Mark {
    pub(crate) fn encode(&self) -> Buf {
        let mut bytes = [0; LEN];
        self.0.encode(Kind::Mark, &mut bytes);
        seal(&mut bytes);
        padded(&bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        Origin::decode(Kind::Mark, opened(bytes)?).map(Self)
    }

    /// The opening that it ends, if it is that of this extent.
    pub(crate) fn ends(&self, secret: [u8; 16], extent: ExtentId) -> Option<Opening> {
        let Self(origin) = *self;
        (origin.secret == secret && origin.extent == extent).then_some(origin.opening)
    }
}

impl Footer {
    pub(crate) fn encode(&self) -> Buf {
        let mut bytes = [0; LEN];
        self.origin.encode(Kind::Footer, &mut bytes);
        bytes[ORIGIN_BYTES..40].copy_from_slice(&self.pages.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.summary.unwrap_or(NO_SUMMARY).to_le_bytes());
        bytes[50] = self.label.stream as u8;
        bytes[56..64].copy_from_slice(&self.label.epoch.to_le_bytes());
        seal(&mut bytes);
        padded(&bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = opened(bytes)?;
        let origin = Origin::decode(Kind::Footer, bytes)?;
        let stream = Stream::from_number(bytes[50])?;
        let epoch = u64::from(word(bytes, 56)) | u64::from(word(bytes, 60)) << 32;
        let summary = Some(word(bytes, 40)).filter(|page| *page != NO_SUMMARY);
        let label = Label { stream, epoch };
        Some(Self { origin, label, pages: word(bytes, ORIGIN_BYTES), summary })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Origin = Origin {
        secret: [0xC3; 16],
        extent: ExtentId(0x0102_0304),
        opening: Opening { mount: 0x1112_1314, count: 0x2122_2324 },
    };

    /// What all begin with, behind the checksum.
    fn start(kind: u8) -> Vec<u8> {
        let mut bytes = vec![0x56, 0x44, 1, kind];
        bytes.extend([0xC3; 16]);
        bytes.extend([4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21]);
        bytes
    }

    fn note(rest: Vec<u8>) -> Vec<u8> {
        let mut bytes = crc32c(&rest).to_le_bytes().to_vec();
        bytes.extend(rest);
        bytes.resize(4_096, 0);
        bytes
    }

    #[test]
    fn a_mark_lies_as_its_table_says() {
        let mut rest = start(2);
        rest.resize(60, 0);
        let mark = Mark(ORIGIN);
        assert_eq!(mark.encode().bytes().unwrap(), note(rest));
        assert_eq!(Mark::decode(mark.encode().bytes().unwrap()), Some(mark));
        assert_eq!(mark.ends([0xC3; 16], ORIGIN.extent), Some(ORIGIN.opening));
        assert_eq!(mark.ends([0xC4; 16], ORIGIN.extent), None);
        assert_eq!(mark.ends([0xC3; 16], ExtentId(3)), None);
    }

    #[test]
    fn a_footer_lies_as_its_table_says() {
        let label = Label { stream: Stream::Gc, epoch: 0x5152_5354_5556_5758 };
        for (summary, bytes) in [(Some(0x4142_4344), [0x44, 0x43, 0x42, 0x41]), (None, [0xFF; 4])] {
            let mut rest = start(3);
            rest.extend([0x34, 0x33, 0x32, 0x31]);
            rest.extend(bytes);
            rest.extend([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
            rest.extend([0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51]);
            let footer = Footer { origin: ORIGIN, label, pages: 0x3132_3334, summary };
            assert_eq!(footer.encode().bytes().unwrap(), note(rest));
            assert_eq!(Footer::decode(footer.encode().bytes().unwrap()), Some(footer));
            assert_eq!(Mark::decode(footer.encode().bytes().unwrap()), None, "it is another kind");
        }
    }

    #[test]
    fn no_flipped_bit_is_read() {
        let mark = Mark(ORIGIN).encode();
        for bit in 0..64 * 8 {
            assert_eq!(Mark::decode(mark.with_flipped_bit(bit).bytes().unwrap()), None);
        }
        for bit in 64 * 8..4_096 * 8 {
            assert!(Mark::decode(mark.with_flipped_bit(bit).bytes().unwrap()).is_some());
        }
    }
}
