//! Bytes on the medium: records, pages and the summaries of extents.

pub(crate) mod address;
pub(crate) mod layout;
pub(crate) mod mend;
pub(crate) mod page_builder;
pub(crate) mod page_view;
pub(crate) mod record;
pub(crate) mod summary;
