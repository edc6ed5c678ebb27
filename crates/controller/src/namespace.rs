use engine::Store;
use ftl::Zones;
use media::Blocks;
use std::fmt;
use std::sync::Arc;

/// What a namespace is, and with it the command set of its commands.
#[derive(Clone)]
pub enum Namespace {
    /// Key-value pairs: the key space of the namespace's own id. All such namespaces of a
    /// controller share one store.
    Kv(Arc<Store>),
    /// Logical blocks.
    Block(Arc<dyn Blocks>),
    /// Zones of logical blocks.
    Zoned(Arc<Zones>),
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kv(store) => write!(f, "Kv({store:?})"),
            Self::Block(blocks) => write!(f, "Block({:?})", blocks.shape()),
            Self::Zoned(zones) => write!(f, "Zoned({:?})", zones.shape()),
        }
    }
}
