use crate::ack::Ack;
use crate::index::{IndexConfig, MakeIndex};
use media::Victims;

/// How a store is to work.
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
    /// What the index is made with.
    pub index_config: IndexConfig,
    /// A checkpoint is made whenever this many bytes of pages have been written since the last one;
    /// 0 makes none but those that are asked for.
    pub checkpoint_bytes: u64,
    /// Bytes of memory in which headers of records are kept, so that the key of what is replaced,
    /// deleted or asked for need not be read: 64 for each. 0 keeps none, as firmware does. Walks
    /// over keys take as many bytes again, for the keys that come next.
    pub headers_bytes: u64,
    /// Bytes of memory in which values are kept that were lately read or written. 0 keeps none, as
    /// firmware does.
    pub cache_bytes: u64,
    /// Whether all that [`Ack::Buffer`] has in memory outlives a loss of power. If not, what was
    /// overwritten there is not erased before that is on the medium.
    pub saves_buffer: bool,
    /// The device's resources: cleaning is promoted among them when it falls behind.
    pub group: clock::Group,
    /// Decides the random choices of victims.
    pub seed: u64,
}
