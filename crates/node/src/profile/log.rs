use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::nand::Nand;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::limits::VALUE_BYTES_MAX;
use base::{KIB, MIB};
use ftl::AppendFtl;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "log",
    title: "[log]",
    keys: &["stripe", "ack", "buffer_kib", "gc_victims", "ftl", "checkpoint_mib"],
};

/// Buffer space of a largest value in KiB: the value, and 64 KiB for its header, key and padding.
const RECORD_KIB_MAX: u32 = VALUE_BYTES_MAX / 1024 + 64;

/// Maximum buffer: 16 GiB, more than the memory of any drive.
pub(super) const BUFFER_KIB_MAX: u32 = 1 << 24;

/// Maximum log between two checkpoints: 4 PiB, more than any drive writes in its life.
const CHECKPOINT_MIB_MAX: u32 = u32::MAX;

pub(super) const FTLS: &[(&str, bool)] = &[("append", false), ("page", true)];

pub(super) const STRIPES: &[(&str, Stripe)] =
    &[("die", Stripe::Die), ("channel", Stripe::Channel), ("all", Stripe::All)];

pub(super) const ACKS: &[(&str, bool)] = &[("program", false), ("buffer", true)];

pub(super) const GC_VICTIMS: &[(&str, GcVictims)] = &[
    ("greedy", GcVictims::Greedy),
    ("cost-benefit", GcVictims::CostBenefit),
    ("random", GcVictims::Random),
    ("fifo", GcVictims::Fifo),
    ("d-choices", GcVictims::DChoices),
];

/// Minimum extents of a log: those being filled, those being cleaned, a reserve, and some for data.
const EXTENTS_MIN: u64 = 8;

/// The log of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// The layer below its extents.
    #[serde(flatten)]
    pub ftl: LogFtl,
    /// When a store is acknowledged.
    #[serde(flatten)]
    pub ack: Ack,
    /// Which extent garbage collection cleans next.
    pub gc_victims: GcVictims,
    /// Bytes of log between two checkpoints; 0 for a checkpoint at the stop only.
    pub checkpoint_bytes: u64,
}

/// The layer below the extents of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ftl", rename_all = "kebab-case")]
pub enum LogFtl {
    /// Blocks of flash, cleaned by the log.
    Append {
        /// The dies that an extent spreads over.
        stripe: Stripe,
    },
    /// Logical blocks of a page-mapped layer, which cleans its blocks too.
    Page,
}

/// The dies that an extent spreads over, with all their planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stripe {
    /// One.
    Die,
    /// Those of a channel.
    Channel,
    /// Every one.
    All,
}

/// When a store is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ack", rename_all = "kebab-case")]
pub enum Ack {
    /// When its page is programmed.
    Program,
    /// When it is in memory that survives a loss of power.
    Buffer {
        /// The size of that memory.
        #[serde(rename = "buffer_bytes")]
        bytes: u64,
    },
}

/// Which extent garbage collection cleans next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GcVictims {
    /// The one with the fewest live bytes.
    Greedy,
    /// The one with the best ratio of freed space times age to live bytes.
    CostBenefit,
    /// Any.
    Random,
    /// The one that was filled first.
    Fifo,
    /// The one with the fewest live bytes of a few chosen at random.
    DChoices,
}

impl Stripe {
    /// Returns the number of planes, over all dies, that an extent spreads over: one block of each.
    pub const fn units(self, nand: &Nand) -> u32 {
        nand.planes_per_die
            * match self {
                Self::Die => 1,
                Self::Channel => nand.dies_per_channel,
                Self::All => nand.dies(),
            }
    }

    /// Returns the number of extents in `blocks` blocks of every plane, if no block is bad.
    pub fn extents(self, nand: &Nand, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(nand.units() / self.units(nand))
    }

    /// Returns the number of extents of a log, which keeps some for bad blocks.
    pub fn log_extents(self, nand: &Nand, blocks: u32) -> u64 {
        let spares = AppendFtl::spare_extents(nand.units() / self.units(nand));
        self.extents(nand, blocks).saturating_sub(spares.into())
    }

    /// Returns the data bytes of an extent of `nand`.
    pub fn extent_bytes(self, nand: &Nand) -> u64 {
        nand.block_bytes() * u64::from(self.units(nand))
    }

    pub(super) fn read(field: Field<'_>) -> Result<Self, ProfileError> {
        field.choice(STRIPES)
    }

    /// Checks that extents are large and many enough for a log on `blocks` blocks of every plane.
    fn check(self, field: Field<'_>, nand: &Nand, blocks: u32) -> Result<(), ProfileError> {
        let (extents, bytes) = (self.log_extents(nand, blocks), self.extent_bytes(nand));
        let bytes_min = largest_value_extent_bytes(nand.page_bytes);
        if extents < EXTENTS_MIN {
            return Err(field.wrong(format!(
                "with this stripe the NAND makes {extents} extents, but a log needs at least \
                 {EXTENTS_MIN}; choose a narrower stripe or more blocks_per_plane"
            )));
        }
        if bytes < bytes_min {
            return Err(field.wrong(format!(
                "with this stripe an extent has {bytes} bytes, but a largest value needs \
                 {bytes_min}; choose a wider stripe or more pages_per_block"
            )));
        }
        Ok(())
    }
}

impl Ack {
    /// Reads the key; `kib_min` is the minimum buffer.
    pub(super) fn read(section: Section<'_>, kib_min: u32) -> Result<Self, ProfileError> {
        let field = section.field("ack")?;
        let buffered = field.choice(ACKS)?;
        match (buffered, section.optional("buffer_kib")) {
            (false, None) => Ok(Self::Program),
            (true, Some(size)) => {
                let kib = size.whole(kib_min..=BUFFER_KIB_MAX)?;
                Ok(Self::Buffer { bytes: u64::from(kib) * KIB })
            }
            (false, Some(size)) => {
                Err(size.wrong("buffer_kib is given, but ack is not \"buffer\"".to_owned()))
            }
            (true, None) => {
                Err(field.wrong("ack is \"buffer\", but buffer_kib is not given".to_owned()))
            }
        }
    }
}

impl GcVictims {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        section.field("gc_victims")?.choice(GC_VICTIMS)
    }
}

/// Returns the bytes of the smallest extent for a largest value. Five more pages hold the summary,
/// the value's part included (`engine::Store::value_bytes_max`). A page without spare area loses
/// 24 bytes to its prologue.
fn largest_value_extent_bytes(page_bytes: u32) -> u64 {
    let pages = VALUE_BYTES_MAX.div_ceil(page_bytes - 24) + 5;
    u64::from(pages) * u64::from(page_bytes)
}

impl LogFtl {
    fn read(section: Section<'_>, nand: &Nand, blocks: u32) -> Result<Self, ProfileError> {
        let ftl = section.optional("ftl");
        let is_page = ftl.map(|field| field.choice(FTLS));
        if is_page.transpose()?.unwrap_or(false) {
            return match section.optional("stripe") {
                None => Ok(Self::Page),
                Some(stripe) => {
                    Err(stripe.wrong("stripe is given, but ftl is \"page\"".to_owned()))
                }
            };
        }
        let field = section.field("stripe")?;
        let stripe = Stripe::read(field)?;
        stripe.check(field, nand, blocks)?;
        Ok(Self::Append { stripe })
    }
}

impl Log {
    /// Reads the log of a store on `blocks` blocks of every plane.
    pub(super) fn read(
        section: Section<'_>,
        nand: &Nand,
        blocks: u32,
    ) -> Result<Self, ProfileError> {
        Ok(Self {
            ftl: LogFtl::read(section, nand, blocks)?,
            ack: Ack::read(section, RECORD_KIB_MAX)?,
            gc_victims: GcVictims::read(section)?,
            checkpoint_bytes: match section.optional("checkpoint_mib") {
                None => 0,
                Some(field) => u64::from(field.whole(1..=CHECKPOINT_MIB_MAX)?) * MIB,
            },
        })
    }

    /// Returns the dies that an extent of flash blocks spreads over.
    pub const fn stripe(&self) -> Option<Stripe> {
        match self.ftl {
            LogFtl::Append { stripe } => Some(stripe),
            LogFtl::Page => None,
        }
    }
}
