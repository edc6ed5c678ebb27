//! The guest needs no program of this checkout.

/// A file of a guest: its path and its content.
pub(crate) type Content = (String, Vec<u8>);

/// Returns the files of all programs: none.
pub(crate) const fn files() -> &'static [Content] {
    &[]
}

/// Returns the folders of [`files`].
pub(crate) const fn folders() -> [&'static str; 0] {
    []
}
