use crate::page_ftl::landing::Landing;
use media::Segments;
use std::sync::Arc;

/// A page that is still being filled.
#[derive(Debug)]
pub(crate) struct OpenPage {
    pub(crate) page: u32,
    /// Slots taken.
    pub(crate) filled: u32,
    /// Of them, those that hosts wrote.
    pub(crate) host_slots: u32,
    /// 0 while hosts wrote none.
    pub(crate) ticket: u64,
    pub(crate) data: Segments,
    /// If writes wait for it.
    pub(crate) landing: Option<Arc<Landing>>,
    /// A task will close it at this instant.
    pub(crate) closes: bool,
}

impl OpenPage {
    pub(crate) fn new(page: u32) -> Self {
        Self {
            page,
            filled: 0,
            host_slots: 0,
            ticket: 0,
            data: Segments::new(),
            landing: None,
            closes: false,
        }
    }
}
