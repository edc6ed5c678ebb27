use serde::{Deserialize, Serialize};
use std::fmt;

/// The sizes of a medium. They never change while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Data bytes of a page; on a medium of frames the most that one has.
    pub page_bytes: u32,
    /// Bytes beside them, free to the log; 0 on media without a spare area.
    pub spare_bytes: u32,
    /// Pages of an extent; on a medium of frames its units.
    pub pages_per_extent: u32,
    /// Extents in all, free and used. Bad blocks are taken off.
    pub extents: u32,
    /// Pages that can be read or written side by side: how much work keeps the medium busy.
    pub parallelism: u32,
    /// How pages of any length lie on the medium; `None` where each takes a whole page.
    pub frames: Option<Frames>,
}

/// Pages are as long as what is in them: each takes as many units as it needs, one after the other,
/// first for the spare bytes and then for the data, and has the number of its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of a unit: a power of two.
    pub unit_bytes: u32,
    /// Units of the largest block that the medium may be written in, a power of two: a page that
    /// begins on a multiple of these shares no block with those before.
    pub block_units: u32,
    /// Bytes that the medium puts before the spare bytes of each page.
    pub head_bytes: u32,
}

impl Frames {
    /// Units that so many bytes begin.
    #[inline]
    pub const fn units_of(self, bytes: u32) -> u32 {
        bytes.saturating_add(self.unit_bytes - 1) >> self.unit_bytes.trailing_zeros()
    }

    /// Units before the data of a page with so many spare bytes.
    #[inline]
    pub const fn head_units(self, spare_bytes: u32) -> u32 {
        self.units_of(self.head_bytes + spare_bytes)
    }

    /// The first number from this one on that is the first of a block.
    #[inline]
    pub const fn aligned(self, number: u32) -> u32 {
        (number + (self.block_units - 1)) & !(self.block_units - 1)
    }

    /// Units of a page.
    #[inline]
    pub const fn units(self, spare_bytes: u32, data_bytes: u32) -> u32 {
        self.head_units(spare_bytes) + self.units_of(data_bytes)
    }
}

impl Shape {
    /// Bytes of what a page number counts: of a page, or of a unit.
    pub const fn number_bytes(&self) -> u32 {
        match self.frames {
            Some(frames) => frames.unit_bytes,
            None => self.page_bytes,
        }
    }

    /// Page numbers that a page with so many spare and data bytes takes.
    pub const fn numbers(&self, spare_bytes: u32, data_bytes: u32) -> u32 {
        match self.frames {
            Some(frames) => frames.units(spare_bytes, data_bytes),
            None => 1,
        }
    }

    /// Bytes of an extent.
    pub const fn extent_bytes(&self) -> u64 {
        self.number_bytes() as u64 * self.pages_per_extent as u64
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
    /// Its number there, from 0: see [`Frames`] where not every number is that of a page.
    pub page: u32,
}

/// A page and how much of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The page.
    pub at: PageId,
    /// From its first on, where pages are frames; whatever lies behind them is not read, and the
    /// page may end sooner. Of other pages all is read.
    pub units: u32,
}

impl Span {
    /// A page that is one number.
    pub const fn of(at: PageId) -> Self {
        Self { at, units: 1 }
    }
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
    /// One more than the number of the last page written, or cut off while it was, or of its last
    /// unit.
    pub pages: u32,
    /// Pages below that which hold nothing: their program was cut off before or while the flash was
    /// at it, or the end of their block cannot be read. In rising order.
    pub holes: Vec<u32>,
    /// The first page of its summary, where the medium keeps what [`crate::OnDisk::seal`] was told.
    /// Then all pages were written.
    pub summary: Option<u32>,
}
