/// The connections of a core since its start. Connections that have closed count in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were placed on it.
    pub placed: u64,
    /// How many of them have closed.
    pub closed: u64,
}

impl Connections {
    /// Returns the number of open connections.
    pub(crate) fn open(self) -> u64 {
        assert!(self.closed <= self.placed, "a connection is placed before it closes");
        self.placed - self.closed
    }
}
