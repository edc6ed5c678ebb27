use ftl::{AppendFtl, PageFtl};
use media::{LogOnBlocks, Media};
use std::sync::Arc;

/// The medium of a store's log.
#[derive(Debug)]
pub(super) enum LogMedium {
    Extents(Arc<AppendFtl>),
    Blocks(Arc<PageFtl>, Arc<LogOnBlocks>),
}

impl LogMedium {
    pub(super) fn media(&self) -> Arc<dyn Media> {
        match self {
            Self::Extents(extents) => extents.clone(),
            Self::Blocks(_, log) => log.clone(),
        }
    }

    /// Returns the page-mapped layer, if the log is on one.
    pub(super) const fn layer(&self) -> Option<&Arc<PageFtl>> {
        match self {
            Self::Extents(_) => None,
            Self::Blocks(layer, _) => Some(layer),
        }
    }
}
