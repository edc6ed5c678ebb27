use base::Nanos;
use engine::Recovery;

/// The cost and the result of opening a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The recovery of the store, if there is one.
    pub recovery: Option<Recovery>,
    /// Unreadable pages in blocks that were being filled, not explained by a loss of power. Their
    /// data may be lost, and older data may be visible instead.
    pub lost_pages: u64,
    /// Time to open all namespaces, one after the other, on the device's clock.
    pub time: Nanos,
}
