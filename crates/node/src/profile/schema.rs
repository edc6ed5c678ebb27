/// The keys that a section of a profile can have.
#[derive(Debug)]
pub(super) struct Schema {
    /// The section's name; none for the file's top.
    pub(super) name: &'static str,
    /// Its head, as it is written in a file.
    pub(super) title: &'static str,
    /// Its keys.
    pub(super) keys: &'static [&'static str],
}
