use crate::profile::error::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::Nanos;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "nand",
    title: "[nand]",
    keys: &[
        "channels",
        "dies_per_channel",
        "planes_per_die",
        "blocks_per_plane",
        "pages_per_block",
        "page_bytes",
        "spare_bytes",
        "read_us",
        "program_us",
        "erase_us",
        "registers",
        "model",
        "channel_mb_per_s",
        "factory_bad_ppm",
    ],
};

/// Fewest spare bytes: the FTL's tag of a block is in those of its first page.
const SPARE_BYTES_MIN: u32 = 24;
const _: () = assert!(SPARE_BYTES_MIN as usize == nand::TAG_BYTES, "the tag's length");

/// Most blocks of a die: a block is addressed by 16 bits.
const BLOCKS_PER_DIE_MAX: u32 = 1 << 16;

/// Most blocks of a device: 16 Mi, 64 TiB of 4 MiB blocks. Tables of all blocks are kept in memory.
const BLOCKS_MAX: u64 = 1 << 24;

/// The flash: its geometry and its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nand {
    /// Buses between controller and dies.
    pub channels: u32,
    /// Dies that share a channel.
    pub dies_per_channel: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Data bytes of a page: a power of two.
    pub page_bytes: u32,
    /// Bytes of a page beside its data, error correction taken off.
    pub spare_bytes: u32,
    /// From cells to register.
    #[serde(rename = "read_ns", with = "super::nanos")]
    pub read: Nanos,
    /// From register to cells.
    #[serde(rename = "program_ns", with = "super::nanos")]
    pub program: Nanos,
    /// Of a block.
    #[serde(rename = "erase_ns", with = "super::nanos")]
    pub erase: Nanos,
    /// Page registers of a plane: 1, or 2 so that a transfer and the cells can work at once.
    pub registers: u32,
    /// How time is kept.
    pub model: Model,
    /// Bytes per second of each channel; 0 is no limit.
    pub channel_bytes_per_second: u64,
    /// Blocks that are bad from the factory, of a million.
    pub factory_bad_ppm: u32,
}

/// How the flash keeps time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Each stage of an operation waits for what it needs and holds it for as long as it takes.
    Staged,
    /// The time when a die is free again is computed ahead, one number for each die, as in FEMU.
    Scalar,
}

impl Nand {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let page_bytes = Self::read_page_bytes(section)?;
        let spare_bytes =
            section.optional("spare_bytes").map(|field| field.whole(SPARE_BYTES_MIN..=page_bytes));
        let bad_ppm = section.optional("factory_bad_ppm").map(|field| field.whole(0..=100_000));
        let nand = Self {
            channels: section.field("channels")?.whole(1..=128)?,
            dies_per_channel: section.field("dies_per_channel")?.whole(1..=128)?,
            planes_per_die: section.field("planes_per_die")?.whole(1..=16)?,
            blocks_per_plane: section.field("blocks_per_plane")?.whole(1..=BLOCKS_PER_DIE_MAX)?,
            pages_per_block: section.field("pages_per_block")?.whole(1..=16_384)?,
            page_bytes,
            spare_bytes: spare_bytes.transpose()?.unwrap_or(page_bytes / 16),
            read: section.field("read_us")?.micros()?,
            program: section.field("program_us")?.micros()?,
            erase: section.field("erase_us")?.micros()?,
            registers: section.field("registers")?.whole(1..=2)?,
            model: section
                .field("model")?
                .choice(&[("staged", Model::Staged), ("scalar", Model::Scalar)])?,
            channel_bytes_per_second: section.field("channel_mb_per_s")?.rate()?,
            factory_bad_ppm: bad_ppm.transpose()?.unwrap_or(0),
        };
        nand.check_blocks(section)?;
        Ok(nand)
    }

    fn read_page_bytes(section: Section<'_>) -> Result<u32, ProfileError> {
        let field = section.field("page_bytes")?;
        match field.whole(512..=65_536) {
            Ok(bytes) if bytes.is_power_of_two() => Ok(bytes),
            _ => Err(field.must_be("a power of two from 512 to 65536")),
        }
    }

    fn check_blocks(&self, section: Section<'_>) -> Result<(), ProfileError> {
        let field = section.field("blocks_per_plane")?;
        let per_die = self.blocks_per_die();
        if per_die > BLOCKS_PER_DIE_MAX {
            return Err(field.wrong(format!(
                "a die has {per_die} blocks (planes_per_die x blocks_per_plane), but at most \
                 {BLOCKS_PER_DIE_MAX} are possible"
            )));
        }
        let blocks = u64::from(per_die) * u64::from(self.dies());
        if blocks > BLOCKS_MAX {
            return Err(field.wrong(format!(
                "the device has {blocks} blocks, but at most {BLOCKS_MAX} are possible"
            )));
        }
        Ok(())
    }

    /// Dies of the device.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Blocks of a die.
    pub const fn blocks_per_die(&self) -> u32 {
        self.planes_per_die * self.blocks_per_plane
    }

    /// Data bytes of a block.
    pub const fn block_bytes(&self) -> u64 {
        self.pages_per_block as u64 * self.page_bytes as u64
    }

    /// Data bytes of all blocks, good and bad.
    pub const fn raw_bytes(&self) -> u64 {
        self.dies() as u64 * self.blocks_per_die() as u64 * self.block_bytes()
    }
}
