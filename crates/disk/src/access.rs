/// The access that a disk is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, shared with other readers and without a writer.
    Read,
    /// Writing, exclusively.
    Write,
}
