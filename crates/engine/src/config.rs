use crate::ack::Ack;
use crate::index::{IndexConfig, MakeIndex};
use media::Victims;

/// The configuration of a store.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Live bytes that the store takes: footprints of records, as [`Usage::values`] counts them.
    pub capacity_bytes: u64,
    /// When stores are answered.
    pub ack: Ack,
    /// Which extents are cleaned first.
    pub victims: Victims,
    /// The index.
    pub index: MakeIndex,
    /// The parameters of the index.
    pub index_config: IndexConfig,
    /// A checkpoint is made whenever this many bytes of pages have been written since the last one;
    /// 0 makes none but those that are asked for.
    pub checkpoint_bytes: u64,
    /// Bytes of memory for headers of records, 64 for each. With its header in memory, the key of a
    /// record need not be read when it is replaced, deleted or looked up. 0 keeps none, as firmware
    /// does. Walks over keys use as many bytes again, for the next keys.
    pub headers_bytes: u64,
    /// Bytes of memory in which values are kept that were lately read or written. 0 keeps none, as
    /// firmware does.
    pub cache_bytes: u64,
    /// Whether the whole buffer of [`Ack::Buffer`] outlives a loss of power. If not, an overwritten
    /// record is not erased before the new one is on the medium.
    pub saves_buffer: bool,
    /// Reactors that use the store. Each appends to extents of its own, as far as the capacity
    /// leaves extents for that, and has an equal share of the buffer of [`Ack::Buffer`].
    pub reactors: u32,
    /// The device's resources: cleaning is promoted among them when it falls behind.
    pub group: clock::Group,
    /// Random seed for the choice of victims.
    pub seed: u64,
}
