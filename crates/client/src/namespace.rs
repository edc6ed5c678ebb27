use crate::reads::Reads;
use spec::{CommandSet, IdentifyNamespace, KvNamespace};

/// The kind of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Pairs: the Key Value command set.
    Pairs(Box<KvNamespace>),
    /// Blocks: the NVM command set.
    Blocks(Box<IdentifyNamespace>),
    /// A namespace of this other command set.
    Other(CommandSet),
}

impl Namespace {
    /// Returns its command set.
    pub fn command_set(&self) -> CommandSet {
        match self {
            Self::Pairs(_) => CommandSet::KEY_VALUE,
            Self::Blocks(_) => CommandSet::NVM,
            Self::Other(set) => *set,
        }
    }

    /// Returns how much its commands read: nothing for other command sets, and for blocks of an
    /// invalid size.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Pairs(_) => Reads::Pairs,
            Self::Blocks(blocks) => {
                blocks.lba_format().block_bytes().map_or(Reads::Nothing, Reads::Blocks)
            }
            Self::Other(_) => Reads::Nothing,
        }
    }
}
