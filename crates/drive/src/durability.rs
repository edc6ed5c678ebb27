/// When an append returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When a flush of the blocks that began after its write has ended. One flush is under way at a
    /// time, and all that was written before it began shares it.
    Group,
    /// When its write has ended. The user of the medium calls [`media::Media::flush`] at intervals
    /// (a server: each second). A loss of power loses what was appended since the last call.
    EverySecond,
    /// When its write has ended: the operator vouches that the disk keeps what it took over a loss
    /// of power.
    Capacitor,
}
