use spec::{CommandSet, IdentifyNamespace, KvNamespace};

/// What a namespace is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Pairs: the Key Value command set.
    Pairs(Box<KvNamespace>),
    /// Blocks: the NVM command set.
    Blocks(Box<IdentifyNamespace>),
    /// Of this command set.
    Other(CommandSet),
}

impl Namespace {
    /// Its command set.
    pub fn command_set(&self) -> CommandSet {
        match self {
            Self::Pairs(_) => CommandSet::KEY_VALUE,
            Self::Blocks(_) => CommandSet::NVM,
            Self::Other(set) => *set,
        }
    }
}
