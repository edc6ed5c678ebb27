use serde::{Deserialize, Serialize};
use std::fmt;

/// The sizes of a medium. They never change while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Data bytes of a page.
    pub page_bytes: u32,
    /// Bytes beside them, free to the log; 0 on media without a spare area.
    pub spare_bytes: u32,
    /// Pages of an extent.
    pub pages_per_extent: u32,
    /// Extents in all, free and used. Bad blocks are taken off.
    pub extents: u32,
    /// Pages that can be read or written side by side: how much work keeps the medium busy.
    pub parallelism: u32,
}

impl Shape {
    /// Data bytes of an extent.
    pub const fn extent_bytes(&self) -> u64 {
        self.page_bytes as u64 * self.pages_per_extent as u64
    }
}

/// An extent of a medium: ids are below some bound, not necessarily below `Shape::extents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExtentId(pub u32);

/// A page of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PageId {
    /// The extent it lies in.
    pub extent: ExtentId,
    /// Its number there, from 0.
    pub page: u32,
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of extent {}", self.page, self.extent.0)
    }
}

/// Who fills an extent. Data of different lifetime goes to different extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Stream {
    /// What hosts store.
    Host = 0,
    /// What garbage collection moves.
    Gc = 1,
    /// Table pages of an index, and checkpoints.
    Index = 2,
}

impl Stream {
    /// How many streams there are.
    pub const COUNT: usize = 3;

    /// The stream of this number, as media keep it.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Host),
            1 => Some(Self::Gc),
            2 => Some(Self::Index),
            _ => None,
        }
    }
}

/// What an extent was opened for, kept on the medium with its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Who fills it.
    pub stream: Stream,
    /// The owner's number for this opening; a log counts up, so greater is later.
    pub epoch: u64,
}

/// An extent in use, as found on the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentInfo {
    /// Which extent.
    pub id: ExtentId,
    /// Its label.
    pub label: Label,
    /// One more than the number of the last page written, or cut off while it was.
    pub pages: u32,
    /// Pages below that which hold nothing: their program was cut off before or while the flash was
    /// at it, or the end of their block cannot be read. In rising order.
    pub holes: Vec<u32>,
}
