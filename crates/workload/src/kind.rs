/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Writes one pair.
    Store,
    /// Reads the value of one key.
    Retrieve,
    /// Removes one pair.
    Delete,
    /// Asks whether a key exists.
    Exist,
    /// Lists the keys from one on, then reads their values.
    Scan,
    /// Reads the value of one key, then writes another.
    ReadModifyWrite,
    /// Reads one block.
    Read,
    /// Writes one block.
    Write,
}

impl Kind {
    /// The number of kinds.
    pub const COUNT: usize = 8;

    /// All kinds, in the order of a report.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Store,
        Self::Retrieve,
        Self::Delete,
        Self::Exist,
        Self::Scan,
        Self::ReadModifyWrite,
        Self::Read,
        Self::Write,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Retrieve => "retrieve",
            Self::Delete => "delete",
            Self::Exist => "exist",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read_modify_write",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}
