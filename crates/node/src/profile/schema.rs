/// The allowed keys of a section of a profile.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The section's name; none for the file's top.
    pub(crate) name: &'static str,
    /// Its head in a file.
    pub(crate) title: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [&'static str],
}

/// The keys outside of any section: the sections, and the profile's description.
pub(super) const TOP: Schema = Schema {
    name: "",
    title: "",
    keys: &[
        "description",
        "nand",
        "link",
        "firmware",
        "core",
        "power",
        "log",
        "index",
        "namespace",
        "fitted",
    ],
};
