use serde::{Deserialize, Serialize};

/// What kind of work waits. Resources serve lower classes first, and one class by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Class {
    /// A host waits for data.
    HostRead,
    /// A host's data on its way to the medium.
    HostWrite,
    /// Table pages of an index.
    Index,
    /// Moving live data off an extent, and erasing it.
    Gc,
    /// Wear levelling.
    Wear,
}

impl Class {
    /// How many classes there are.
    pub const COUNT: usize = 5;

    /// All classes in their usual order.
    pub(crate) const USUAL: [Self; Self::COUNT] =
        [Self::HostRead, Self::HostWrite, Self::Index, Self::Gc, Self::Wear];

    /// The order while cleaning is below its reserve: garbage collection goes before host writes.
    pub(crate) const GC_PROMOTED: [Self; Self::COUNT] =
        [Self::HostRead, Self::Gc, Self::HostWrite, Self::Index, Self::Wear];

    /// True for work that no host asked for.
    #[inline]
    pub const fn is_background(self) -> bool {
        matches!(self, Self::Gc | Self::Wear)
    }
}
