use media::ExtentId;

/// One opening of an extent: of which mount it was, and how often the extent was opened then. Later
/// ones are greater, and no two of an extent are equal: a mount is on the blocks before anything
/// that was written in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Opening {
    pub(crate) mount: u32,
    pub(crate) count: u32,
}

/// Where something belongs that lies on the blocks: to which drive, extent and opening of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) secret: [u8; 16],
    pub(crate) extent: ExtentId,
    pub(crate) opening: Opening,
}

/// What kind of thing that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Frame = 1,
    Mark = 2,
    Footer = 3,
}

/// Bytes of an origin, its magic and the checksum before it.
pub(crate) const ORIGIN_BYTES: usize = 36;

const MAGIC: [u8; 2] = 0x4456_u16.to_le_bytes();
const FORMAT: u8 = 1;

impl Origin {
    /// All frames, marks and footers begin like this:
    ///
    /// | bytes | what |
    /// |---|---|
    /// | 0..4 | CRC-32C of what follows |
    /// | 4..6 | magic, `0x4456` |
    /// | 6 | format, 1 |
    /// | 7 | kind: 1 frame, 2 mark, 3 footer |
    /// | 8..24 | secret of the drive |
    /// | 24..28 | extent |
    /// | 28..32 | mount of the opening |
    /// | 32..36 | how often the extent was opened |
    pub(crate) fn encode(&self, kind: Kind, bytes: &mut [u8]) {
        bytes[4..6].copy_from_slice(&MAGIC);
        bytes[6] = FORMAT;
        bytes[7] = kind as u8;
        bytes[8..24].copy_from_slice(&self.secret);
        bytes[24..28].copy_from_slice(&self.extent.0.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.opening.mount.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.opening.count.to_le_bytes());
    }

    /// The origin of a thing of this kind, whose checksum is checked by the caller.
    pub(crate) fn decode(kind: Kind, bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<ORIGIN_BYTES>()?;
        if bytes[4..6] != MAGIC || bytes[6] != FORMAT || bytes[7] != kind as u8 {
            return None;
        }
        let secret = std::array::from_fn(|at| bytes[8 + at]);
        let opening = Opening { mount: word(bytes, 28), count: word(bytes, 32) };
        Some(Self { secret, extent: ExtentId(word(bytes, 24)), opening })
    }
}

/// The little endian number at `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
