use crate::kv_key;
use crate::span::Span;
use clock::{User, Users};
use engine::Store;
use ftl::Zones;
use media::{Access, Blocks};
use spec::{Command, CommandSet, Opcode};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The largest id that a namespace can have, and so the most that there are.
pub const NAMESPACES_MAX: u32 = 1_024;

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

/// A namespace that commands use. Each command holds an `Arc` of it until its end: before that, its
/// media are not given to another namespace.
pub struct NamespaceInUse {
    namespace: Namespace,
    _user: User,
}

impl NamespaceInUse {
    /// Returns `namespace` for commands, and the count that says whether one still uses it.
    pub(crate) fn new(namespace: Namespace) -> (Arc<Self>, Users) {
        let users = Users::default();
        let user = users.add();
        (Arc::new(Self { namespace, _user: user }), users)
    }
}

impl Deref for NamespaceInUse {
    type Target = Namespace;

    #[inline]
    fn deref(&self) -> &Namespace {
        &self.namespace
    }
}

impl fmt::Debug for NamespaceInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.namespace.fmt(f)
    }
}

impl Namespace {
    /// The command set of its commands.
    #[inline]
    pub const fn command_set(&self) -> CommandSet {
        match self {
            Self::Kv(_) => CommandSet::KEY_VALUE,
            Self::Block(_) => CommandSet::NVM,
            Self::Zoned(_) => CommandSet::ZONED,
        }
    }

    /// Says that `command`, which is of its command set, is about to be executed: what it will look
    /// at may be fetched into the processor's caches.
    #[inline]
    pub(crate) fn expect(&self, command: &Command) {
        match (self, command.opcode()) {
            (Self::Block(blocks), opcode @ (Opcode::READ | Opcode::WRITE)) => {
                if let Ok(span) = Span::of(command).within(blocks.shape().blocks) {
                    let is_read = opcode == Opcode::READ;
                    blocks.expect(span.first, if is_read { Access::Read } else { Access::Write });
                }
            }
            (Self::Kv(store), Opcode::RETRIEVE | Opcode::STORE) => kv_key::expect(store, command),
            _ => {}
        }
    }

    /// Bytes of a logical block; 0 where there are none.
    #[inline]
    pub(crate) fn block_bytes(&self) -> u32 {
        match self {
            Self::Kv(_) => 0,
            Self::Block(blocks) => blocks.shape().block_bytes,
            Self::Zoned(zones) => zones.shape().block_bytes,
        }
    }

    /// Bytes that hosts can put into it. All namespaces of key-value pairs have the same ones.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            Self::Kv(store) => store.capacity_bytes(),
            Self::Block(blocks) => {
                let shape = blocks.shape();
                shape.blocks * u64::from(shape.block_bytes)
            }
            Self::Zoned(zones) => {
                let shape = zones.shape();
                let blocks = shape.zone_capacity * u64::from(shape.zones);
                blocks * u64::from(shape.block_bytes)
            }
        }
    }
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
