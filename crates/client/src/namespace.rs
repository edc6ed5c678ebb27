use crate::reads::Reads;
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

    /// How much its commands read. Of another command set it is not known, nor of blocks whose
    /// size fits no number: those read nothing.
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
