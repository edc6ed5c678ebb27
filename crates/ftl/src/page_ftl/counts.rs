use serde::{Deserialize, Serialize};
use std::ops::Add;

/// Counters since the layer was made, in logical blocks unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFtlCounts {
    /// Written by hosts.
    pub host_blocks: u64,
    /// Moved by cleaning and wear levelling.
    pub moved_blocks: u64,
    /// Blocks of flash cleaned for space.
    pub victims: u64,
    /// Pages moved without crossing a channel.
    pub copybacks: u64,
    /// Trimmed by hosts while they held data.
    pub trims: u64,
    /// Blocks of flash moved to even out wear.
    pub wear_moves: u64,
    /// Blocks of flash marked as bad.
    pub retired_blocks: u64,
}

impl Add for PageFtlCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            host_blocks: self.host_blocks + other.host_blocks,
            moved_blocks: self.moved_blocks + other.moved_blocks,
            victims: self.victims + other.victims,
            copybacks: self.copybacks + other.copybacks,
            trims: self.trims + other.trims,
            wear_moves: self.wear_moves + other.wear_moves,
            retired_blocks: self.retired_blocks + other.retired_blocks,
        }
    }
}
