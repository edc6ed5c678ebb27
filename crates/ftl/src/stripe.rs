use nand::{DieId, Geometry};

/// The dies that the pages of an extent alternate between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stripe {
    /// One die: small extents, each as fast as its die.
    Die,
    /// All dies of a channel.
    Channel,
    /// All dies: the largest extents, each as fast as the drive.
    All,
}

/// The stripe sets of an array. Set `s` holds the dies `s`, `s + sets`, `s + 2 * sets` and so on,
/// which for each kind of stripe are those that it names, since consecutive dies lie on different
/// channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sets {
    /// How many there are.
    pub(crate) count: u32,
    /// Dies of each.
    pub(crate) width: u32,
}

impl Sets {
    pub(crate) fn new(stripe: Stripe, geometry: &Geometry) -> Self {
        let count = match stripe {
            Stripe::Die => geometry.dies(),
            Stripe::Channel => geometry.channels,
            Stripe::All => 1,
        };
        Self { count, width: geometry.dies() / count }
    }

    #[inline]
    pub(crate) const fn die(self, set: u32, position: u32) -> DieId {
        DieId(set + position * self.count)
    }
}
