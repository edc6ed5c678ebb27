use crate::drive::Drive;
use crate::durability::Durability;
use crate::layout::{
    AROUND_BYTES, EXTENT_BYTES_MIN, Layout, NOTE_BYTES, SUPERBLOCK_START, extents_on, least_bytes,
    second_superblock, size_bytes, unit_bytes, usual_extent_bytes,
};
use crate::note::Mark;
use crate::open_error::OpenError;
use crate::origin::Opening;
use crate::superblock::{Copy, Superblock};
use crate::workers::each;
use base::Buf;
use clock::Class;
use media::{Blocks, Error, ExtentId, Segments};
use std::sync::Arc;

/// The largest extent: its bytes are counted in 32 bits.
const EXTENT_BYTES_MAX: u64 = 1 << 30;

/// Bytes at the start in which file systems, partition tables and the like have what tells of them.
const FRONT_BYTES: u64 = 1 << 20;

/// The smallest block, and unit; the largest is a note.
const BLOCK_BYTES_MIN: u32 = 512;

/// What a new drive is to be.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// 16 random bytes by which the drive is known.
    pub id: [u8; 16],
    /// 16 random bytes that are never told: what hosts store cannot pass for the drive's own.
    pub secret: [u8; 16],
    /// Bytes of an extent; by the size of the disk where nothing is asked for.
    pub extent_bytes: Option<u64>,
}

/// What the superblock says of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveInfo {
    /// The random bytes by which it is known.
    pub id: [u8; 16],
    /// Bytes of all blocks.
    pub size_bytes: u64,
    /// Bytes of a unit: pages begin on one.
    pub unit_bytes: u32,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Extents in all.
    pub extents: u32,
    /// How often it was opened for writing.
    pub mounts: u32,
}

impl DriveInfo {
    /// Bytes of an extent that pages may fill.
    pub const fn pages_bytes(&self) -> u64 {
        self.extent_bytes - AROUND_BYTES
    }
}

/// The class of all that is written here: somebody waits for it.
const CLASS: Class = Class::HostWrite;

/// How long the extents of a drive of all blocks would be, and how many: `least` or more.
pub(crate) fn extents_of(
    blocks: &dyn Blocks,
    format: &Format,
    least: u32,
) -> Result<(u64, u32), OpenError> {
    let shape = blocks.shape();
    let size_bytes = size_bytes(shape);
    let extent_bytes = format.extent_bytes.unwrap_or_else(|| usual_extent_bytes(size_bytes));
    let note = u64::from(NOTE_BYTES);
    let is_possible = extent_bytes.is_multiple_of(note)
        && (EXTENT_BYTES_MIN..=EXTENT_BYTES_MAX).contains(&extent_bytes)
        && is_block(shape.block_bytes);
    if !is_possible {
        return Err(OpenError::Sizes);
    }
    let extents = extents_on(size_bytes, extent_bytes);
    if extents < least {
        let needed = least_bytes(least, extent_bytes);
        return Err(OpenError::TooSmall { found: size_bytes, needed });
    }
    Ok((extent_bytes, extents))
}

/// Makes an empty drive of all blocks, whatever they held. A loss of power meanwhile leaves none.
pub(crate) async fn format(blocks: Arc<dyn Blocks>, format: Format) -> Result<(), OpenError> {
    let (extent_bytes, extents) = extents_of(&*blocks, &format, 1)?;
    let size_bytes = size_bytes(blocks.shape());
    let superblock = Superblock {
        id: format.id,
        secret: format.secret,
        size_bytes,
        extent_bytes,
        extents,
        unit_bytes: unit_bytes(size_bytes),
        mount: 0,
        features: 0,
    };
    let drive = Arc::new(superblock.drive(blocks, Durability::Group)?);
    let nothing = Buf::copy_from(&vec![0; NOTE_BYTES as usize]);
    for start in [SUPERBLOCK_START, second_superblock(size_bytes)] {
        drive.write_bytes(start, Segments::from_iter([nothing.clone()]), CLASS).await?;
    }
    for note in 0..drive.layout.ledger_notes() {
        for copy in 0..2 {
            let start = drive.layout.ledger_note(copy, note);
            drive.write_bytes(start, Segments::from_iter([nothing.clone()]), CLASS).await?;
        }
    }
    drive.blocks.flush().await?;
    // There is no drive from here on. What others have written would pass for theirs again.
    let front = usize::try_from(FRONT_BYTES.min(size_bytes)).expect("it is a mebibyte");
    let front = Buf::copy_from(&vec![0; front]);
    drive.write_bytes(0, Segments::from_iter([front]), CLASS).await?;
    let clearing = drive.clone();
    let cleared = each(extents, move |extent| clear(clearing.clone(), extent)).await;
    cleared.into_iter().collect::<Result<(), Error>>()?;
    drive.blocks.flush().await?;
    drive.write_superblocks(&superblock).await
}

fn is_block(bytes: u32) -> bool {
    bytes.is_power_of_two() && (BLOCK_BYTES_MIN..=NOTE_BYTES).contains(&bytes)
}

/// Makes an extent free, and its first frame blank: so that it need not be looked at for others.
async fn clear(drive: Arc<Drive>, extent: ExtentId) -> Result<(), Error> {
    let opening = Opening::default();
    let mark = Mark(drive.origin(extent, opening)).encode();
    let blank = Buf::copy_from(&vec![0; NOTE_BYTES as usize]);
    let start = drive.layout.extent_start(extent);
    drive.write_bytes(start, Segments::from_iter([mark.clone(), blank.clone()]), CLASS).await?;
    let start = drive.layout.second_mark(extent);
    drive.write_bytes(start, Segments::from_iter([mark, blank]), CLASS).await
}

/// What lies in both places of a superblock, and at which byte.
pub(crate) async fn superblocks(blocks: &dyn Blocks) -> Vec<(u64, Result<Copy, Error>)> {
    let shape = blocks.shape();
    let mut copies = Vec::new();
    for start in [SUPERBLOCK_START, second_superblock(size_bytes(shape))] {
        let (first, count) = (start / u64::from(shape.block_bytes), NOTE_BYTES / shape.block_bytes);
        let found = blocks.read(first, count, Class::HostRead).await;
        let copy = found.map(|found| {
            let bytes = Buf::join(&found);
            Superblock::decode(bytes.as_ref().and_then(Buf::bytes).unwrap_or_default())
        });
        copies.push((start, copy));
    }
    copies
}

/// The superblock of the drive on `blocks`.
pub(crate) async fn probe(blocks: &dyn Blocks) -> Result<Superblock, OpenError> {
    let shape = blocks.shape();
    let size_bytes = size_bytes(shape);
    if size_bytes < least_bytes(1, EXTENT_BYTES_MIN) || !is_block(shape.block_bytes) {
        return Err(OpenError::NotADrive);
    }
    let (mut copies, mut unread) = (Vec::new(), None);
    for (_, copy) in superblocks(blocks).await {
        match copy {
            Ok(copy) => copies.push(copy),
            Err(error) => unread = Some(error),
        }
    }
    // One such copy is enough to refuse: a later version may have been interrupted between the two.
    let unknown = copies.iter().find_map(|copy| match *copy {
        Copy::Newer { format } => {
            Some(OpenError::Newer { found: format, known: Superblock::FORMAT })
        }
        Copy::Unknown { features } => Some(OpenError::Unknown { features }),
        _ => None,
    });
    if let Some(refused) = unknown {
        return Err(refused);
    }
    let whole = copies.iter().filter_map(|copy| match copy {
        Copy::Whole(superblock) => Some(*superblock),
        _ => None,
    });
    if let (Some(first), Some(second)) = (whole.clone().next(), whole.clone().nth(1))
        && (first.id, first.secret) != (second.id, second.secret)
    {
        return Err(OpenError::TwoDrives);
    }
    // A start may have been cut off between them.
    if let Some(superblock) = whole.max_by_key(|superblock| superblock.mount) {
        return superblock.check(size_bytes);
    }
    match unread {
        _ if copies.contains(&Copy::Damaged) => Err(OpenError::Damaged),
        Some(error) => Err(OpenError::Media(error)),
        None => Err(OpenError::NotADrive),
    }
}

impl Superblock {
    /// The number of the start that follows.
    pub(crate) const fn next_mount(&self) -> Result<u32, OpenError> {
        match self.mount.checked_add(1) {
            Some(mount) => Ok(mount),
            None => Err(OpenError::Impossible),
        }
    }

    fn check(self, found: u64) -> Result<Self, OpenError> {
        // Of larger blocks there may be a few bytes less: the same 4 KiB are the last.
        if second_superblock(self.size_bytes) != second_superblock(found) {
            return Err(OpenError::OtherSize { formatted: self.size_bytes, found });
        }
        Ok(self)
    }

    /// The drive that it describes, of which nothing is known yet.
    pub(crate) fn drive(
        &self,
        blocks: Arc<dyn Blocks>,
        durability: Durability,
    ) -> Result<Drive, OpenError> {
        let layout = Layout {
            block_bytes: blocks.shape().block_bytes,
            unit_bytes: self.unit_bytes,
            extent_bytes: self.extent_bytes,
            extents: self.extents,
            size_bytes: self.size_bytes,
        };
        let is_possible = self.unit_bytes == unit_bytes(self.size_bytes)
            && self.extent_bytes.is_multiple_of(NOTE_BYTES.into())
            && (EXTENT_BYTES_MIN..=EXTENT_BYTES_MAX).contains(&self.extent_bytes)
            && (1..=extents_on(self.size_bytes, self.extent_bytes)).contains(&self.extents);
        if !is_possible {
            return Err(OpenError::Impossible);
        }
        Ok(Drive::new(blocks, layout, self.secret, self.mount, durability))
    }

    pub(crate) const fn info(&self) -> DriveInfo {
        let Self { id, size_bytes, extent_bytes, extents, unit_bytes, mount, .. } = *self;
        DriveInfo { id, size_bytes, unit_bytes, extent_bytes, extents, mounts: mount }
    }
}

impl Drive {
    /// Writes both superblocks, one after the other so that one is whole at any instant.
    pub(crate) async fn write_superblocks(&self, superblock: &Superblock) -> Result<(), OpenError> {
        let bytes = Buf::copy_from(&superblock.encode());
        for start in [SUPERBLOCK_START, second_superblock(superblock.size_bytes)] {
            self.write_bytes(start, Segments::from_iter([bytes.clone()]), CLASS).await?;
            self.blocks.flush().await?;
        }
        Ok(())
    }
}
