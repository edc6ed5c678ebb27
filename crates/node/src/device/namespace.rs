use engine::Store;
use ftl::{AppendFtl, PageFtl, Zones};
use std::sync::Arc;

/// The layer behind a namespace.
#[derive(Clone, Debug)]
pub(super) enum Namespace {
    /// All namespaces of this kind share one store.
    Kv(Arc<Store>),
    Block(Arc<PageFtl>),
    Zoned(Arc<Zones>, Arc<AppendFtl>),
}

impl Namespace {
    pub(super) fn of_controller(&self) -> controller::Namespace {
        match self {
            Self::Kv(store) => controller::Namespace::Kv(store.clone()),
            Self::Block(layer) => controller::Namespace::Block(layer.clone()),
            Self::Zoned(zones, _) => controller::Namespace::Zoned(zones.clone()),
        }
    }
}
