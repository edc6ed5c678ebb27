/// The keys that a section of a profile can have.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The section's name; none for the file's top.
    pub(crate) name: &'static str,
    /// Its head, as it is written in a file.
    pub(crate) title: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static str],
}
