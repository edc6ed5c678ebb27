/// What a loss of power leaves of that which no flush covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// All that was answered, and any part of what was under way.
    All,
    /// Of each sector what was written last, or nothing.
    Newest,
    /// Of each sector anything that was ever written since the flush, or nothing.
    Any,
}

impl Left {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::All, Self::Newest, Self::Any];
}
