use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::nand::Nand;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::KIB;
use base::limits::VALUE_BYTES_MAX;
use serde::Serialize;

pub(super) const SCHEMA: Schema =
    Schema { name: "log", title: "[log]", keys: &["stripe", "ack", "buffer_kib", "gc_victims"] };

/// What a largest value takes in a buffer: itself, and 64 KiB for its header, its key and padding.
const RECORD_KIB_MAX: u32 = VALUE_BYTES_MAX / 1024 + 64;

/// Largest buffer: 16 GiB, more than the memory of any drive.
const BUFFER_KIB_MAX: u32 = 1 << 24;

/// Fewest extents that a log works with: those being filled, those being cleaned, a reserve, and
/// some that hold data.
const EXTENTS_MIN: u64 = 8;

/// The log of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// The dies that an extent spreads over, one block on each.
    pub stripe: Stripe,
    /// When a store is answered.
    #[serde(flatten)]
    pub ack: Ack,
    /// Which extent garbage collection cleans next.
    pub gc_victims: GcVictims,
}

/// The dies that an extent spreads over.
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

/// When a store is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "ack", rename_all = "kebab-case")]
pub enum Ack {
    /// When its page is programmed.
    Program,
    /// When it is in memory that outlives a loss of power.
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
    /// The one with the best ratio of space won and age to live bytes.
    CostBenefit,
    /// Any.
    Random,
    /// The one that was filled first.
    Fifo,
    /// The one with the fewest live bytes of a few chosen at random.
    DChoices,
}

impl Stripe {
    /// How many dies of `nand` an extent spreads over.
    pub const fn dies(self, nand: &Nand) -> u32 {
        match self {
            Self::Die => 1,
            Self::Channel => nand.dies_per_channel,
            Self::All => nand.dies(),
        }
    }

    /// Extents of `nand`, if none of its blocks is bad.
    pub fn extents(self, nand: &Nand) -> u64 {
        u64::from(nand.blocks_per_die()) * u64::from(nand.dies() / self.dies(nand))
    }

    /// Data bytes of an extent of `nand`.
    pub fn extent_bytes(self, nand: &Nand) -> u64 {
        nand.block_bytes() * u64::from(self.dies(nand))
    }

    fn read(field: Field<'_>, nand: &Nand) -> Result<Self, ProfileError> {
        let stripe =
            field.choice(&[("die", Self::Die), ("channel", Self::Channel), ("all", Self::All)])?;
        let (extents, bytes) = (stripe.extents(nand), stripe.extent_bytes(nand));
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
        Ok(stripe)
    }
}

impl Ack {
    fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let field = section.field("ack")?;
        let buffered = field.choice(&[("program", false), ("buffer", true)])?;
        match (buffered, section.optional("buffer_kib")) {
            (false, None) => Ok(Self::Program),
            (true, Some(size)) => Ok(Self::Buffer { bytes: buffer_bytes(size)? }),
            (false, Some(size)) => {
                Err(size.wrong("buffer_kib is given, but ack is not \"buffer\"".to_owned()))
            }
            (true, None) => {
                Err(field.wrong("ack is \"buffer\", but buffer_kib is not given".to_owned()))
            }
        }
    }
}

/// Bytes of the smallest extent that takes a largest value: five pages beside it are for the
/// summary and for what the value adds to that (`engine::Store::value_bytes_max`), and a page
/// without spare area loses 24 bytes to its prologue.
fn largest_value_extent_bytes(page_bytes: u32) -> u64 {
    let pages = VALUE_BYTES_MAX.div_ceil(page_bytes - 24) + 5;
    u64::from(pages) * u64::from(page_bytes)
}

fn buffer_bytes(size: Field<'_>) -> Result<u64, ProfileError> {
    Ok(u64::from(size.whole(RECORD_KIB_MAX..=BUFFER_KIB_MAX)?) * KIB)
}

impl Log {
    pub(super) fn read(section: Section<'_>, nand: &Nand) -> Result<Self, ProfileError> {
        Ok(Self {
            stripe: Stripe::read(section.field("stripe")?, nand)?,
            ack: Ack::read(section)?,
            gc_victims: section.field("gc_victims")?.choice(&[
                ("greedy", GcVictims::Greedy),
                ("cost-benefit", GcVictims::CostBenefit),
                ("random", GcVictims::Random),
                ("fifo", GcVictims::Fifo),
                ("d-choices", GcVictims::DChoices),
            ])?,
        })
    }
}
