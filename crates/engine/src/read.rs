//! Reads: values, keys and their lists, and what of them is kept in memory.

pub(crate) mod get;
pub(crate) mod key_pass;
pub(crate) mod key_window;
pub(crate) mod list;
pub(crate) mod look_up;
pub(crate) mod recall;
pub(crate) mod walk;
