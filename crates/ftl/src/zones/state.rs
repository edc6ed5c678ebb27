use serde::{Deserialize, Serialize};

/// The state of a zone: ZNS Command Set 1.1, zone state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ZoneState {
    /// Holds nothing.
    Empty,
    /// Opened by a write; the device may close it to make room for another.
    ImplicitlyOpen,
    /// Opened by the host's command.
    ExplicitlyOpen,
    /// Not empty, or opened before, but not counted as open.
    Closed,
    /// Takes no more writes until it is reset.
    Full,
    /// The medium failed to take a page. The written blocks can still be read.
    ReadOnly,
    /// The medium failed to erase it.
    Offline,
}

impl ZoneState {
    /// True for zones that count against the limit of open ones.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// True for zones that count against the limit of active ones.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }
}

/// An action of Zone Management Send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAction {
    /// Opens it explicitly.
    Open,
    /// Gives back its place among the open zones.
    Close,
    /// Makes it full at its write pointer. Nothing is padded.
    Finish,
    /// Empties it.
    Reset,
}

/// A device's report of a zone, in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// Its state.
    pub state: ZoneState,
    /// The block to write next; `u64::MAX` in states that have none: full, read only, offline.
    pub write_pointer: u64,
    /// Its first block.
    pub start: u64,
    /// Blocks that can be written.
    pub capacity: u64,
}
