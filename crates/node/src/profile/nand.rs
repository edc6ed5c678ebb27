use crate::profile::error::ProfileError;
use crate::profile::levels::Levels;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::profile::suspend::Suspend;
use crate::profile::wear::Wear;
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
        "page_map",
        "transfer_bytes",
        "cache_busy_us",
        "multi_plane",
        "program_suspend_us",
        "erase_suspend_us",
        "resume_us",
        "read_priority",
        "variability_percent",
        "read_retries",
        "endurance_cycles",
        "worn_cycles",
    ],
};

pub(super) const MODELS: &[(&str, Model)] = &[("staged", Model::Staged), ("scalar", Model::Scalar)];

pub(super) const MULTI_PLANES: &[(&str, MultiPlane)] = &[
    ("none", MultiPlane::None),
    ("together", MultiPlane::Together),
    ("independent", MultiPlane::Independent),
];

/// Fewest spare bytes: the FTL's tag of a block is in those of its first page.
const SPARE_BYTES_MIN: u32 = 24;
const _: () = assert!(SPARE_BYTES_MIN as usize == nand::TAG_BYTES, "the tag's length");

/// Maximum blocks of a die: block numbers have 16 bits.
const BLOCKS_PER_DIE_MAX: u32 = 1 << 16;

/// Maximum blocks of a device: 16 Mi, 64 TiB of 4 MiB blocks. Tables of all blocks are in memory.
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
    /// Spare bytes of a page, without error correction.
    pub spare_bytes: u32,
    /// Read and program times, and the level of each page.
    #[serde(flatten)]
    pub levels: Levels,
    /// Erase time of a block.
    #[serde(rename = "erase_ns", with = "super::nanos")]
    pub erase: Nanos,
    /// Page registers of a plane: 1, or 2 to overlap a transfer with the cells' work.
    pub registers: u32,
    /// The timing model.
    pub model: Model,
    /// Bytes per second of each channel; 0 is no limit.
    pub channel_bytes_per_second: u64,
    /// Blocks that are bad from the factory, of a million.
    pub factory_bad_ppm: u32,
    /// Granularity in bytes of read transfers, the length of a codeword; 1 for exact lengths.
    pub transfer_bytes: u32,
    /// With two registers: time that the cells wait while a page moves between the registers.
    #[serde(rename = "cache_busy_ns", with = "super::nanos")]
    pub cache_busy: Nanos,
    /// Parallelism of the planes of a die.
    pub multi_plane: MultiPlane,
    /// Suspension of programs and erases for reads.
    #[serde(flatten)]
    pub suspend: Suspend,
    /// Whether hosts' reads overtake queued programs and erases.
    pub read_priority: bool,
    /// How blocks differ and age.
    #[serde(flatten)]
    pub wear: Wear,
}

/// Parallelism of the planes of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MultiPlane {
    /// None: a die does one operation at a time.
    None,
    /// Queued operations of one kind run together.
    Together,
    /// Each plane works independently.
    Independent,
}

/// The timing model of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Each stage of an operation waits for its resource and holds it for its duration.
    Staged,
    /// The time at which a die is free is computed in advance, one number for each die, as in FEMU.
    Scalar,
}

impl Nand {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let page_bytes = Self::read_page_bytes(section)?;
        let pages_per_block = section.field("pages_per_block")?.whole(1..=16_384)?;
        let nand = Self {
            channels: section.field("channels")?.whole(1..=128)?,
            dies_per_channel: section.field("dies_per_channel")?.whole(1..=128)?,
            planes_per_die: section.field("planes_per_die")?.whole(1..=16)?,
            blocks_per_plane: section.field("blocks_per_plane")?.whole(1..=BLOCKS_PER_DIE_MAX)?,
            pages_per_block,
            page_bytes,
            spare_bytes: section.whole_or(
                "spare_bytes",
                SPARE_BYTES_MIN..=page_bytes,
                page_bytes / 16,
            )?,
            levels: Levels::read(section, pages_per_block)?,
            erase: section.field("erase_us")?.micros()?,
            registers: section.field("registers")?.whole(1..=2)?,
            model: section.field("model")?.choice(MODELS)?,
            channel_bytes_per_second: section.field("channel_mb_per_s")?.rate()?,
            factory_bad_ppm: section.whole_or("factory_bad_ppm", 0..=100_000, 0)?,
            transfer_bytes: section.whole_or("transfer_bytes", 1..=page_bytes, 1)?,
            cache_busy: section.micros_or_none("cache_busy_us")?.unwrap_or(Nanos::ZERO),
            multi_plane: section
                .optional("multi_plane")
                .map_or(Ok(MultiPlane::None), |field| field.choice(MULTI_PLANES))?,
            suspend: Suspend::read(section)?,
            read_priority: section.truth_or("read_priority", true)?,
            wear: Wear::read(section)?,
        };
        nand.check_blocks(section)?;
        nand.check_registers(section)?;
        nand.check_planes(section)?;
        nand.check_model(section)?;
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

    fn check_registers(&self, section: Section<'_>) -> Result<(), ProfileError> {
        match section.optional("cache_busy_us") {
            Some(field) if self.registers == 1 => {
                Err(field.wrong("cache_busy_us is given, but registers is 1".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn check_planes(&self, section: Section<'_>) -> Result<(), ProfileError> {
        match section.optional("multi_plane") {
            Some(field) if self.multi_plane != MultiPlane::None && self.planes_per_die == 1 => {
                Err(field.wrong("multi_plane is given, but planes_per_die is 1".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses keys that the scalar model cannot support: with one number for each die it knows
    /// neither queued nor running operations.
    fn check_model(&self, section: Section<'_>) -> Result<(), ProfileError> {
        if self.model == Model::Staged {
            return Ok(());
        }
        let unknown = [
            ("cache_busy_us", self.cache_busy != Nanos::ZERO),
            ("multi_plane", self.multi_plane != MultiPlane::None),
            ("program_suspend_us", self.suspend.program.is_some()),
            ("erase_suspend_us", self.suspend.erase.is_some()),
            ("read_priority", !self.read_priority),
        ];
        for (key, is_used) in unknown {
            if is_used && let Some(field) = section.optional(key) {
                return Err(field.wrong(format!(
                    "{key} is something that model = \"scalar\" does not know; use \"staged\", or \
                     leave {key} out"
                )));
            }
        }
        Ok(())
    }

    /// Returns the number of dies.
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Returns the number of blocks of a die.
    pub const fn blocks_per_die(&self) -> u32 {
        self.planes_per_die * self.blocks_per_plane
    }

    /// Returns the data bytes of a block.
    pub const fn block_bytes(&self) -> u64 {
        self.pages_per_block as u64 * self.page_bytes as u64
    }

    /// Returns the number of planes of all dies.
    pub const fn units(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Returns the data bytes of one block of every plane of every die.
    pub const fn row_bytes(&self) -> u64 {
        self.units() as u64 * self.block_bytes()
    }

    /// Returns the data bytes of all blocks, good and bad.
    pub const fn raw_bytes(&self) -> u64 {
        self.dies() as u64 * self.blocks_per_die() as u64 * self.block_bytes()
    }
}
