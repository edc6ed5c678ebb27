use crate::format::address::Address;
use crate::key_space::TableId;
use media::ExtentId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The records of a checkpoint that still exist: those in extents that have not been reset since.
/// An extent that was opened again since then holds none of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survivors {
    by_extent: Vec<bool>,
    pages_per_extent: u32,
    /// Entries of the others, by table.
    gone: BTreeMap<TableId, u64>,
}

impl Survivors {
    pub(crate) fn new(extents: impl Iterator<Item = ExtentId>, pages_per_extent: u32) -> Self {
        let mut by_extent = Vec::new();
        for extent in extents {
            let at = extent.0 as usize;
            if by_extent.len() <= at {
                by_extent.resize(at + 1, false);
            }
            by_extent[at] = true;
        }
        Self { by_extent, pages_per_extent, gone: BTreeMap::new() }
    }

    /// Notes how many entries a checkpoint has for records that are gone, by table.
    pub(crate) fn with_gone(self, gone: BTreeMap<TableId, u64>) -> Self {
        Self { gone, ..self }
    }

    /// Returns the number of entries of `table` in the checkpoint whose records are gone.
    pub(crate) fn gone(&self, table: TableId) -> u64 {
        self.gone.get(&table).copied().unwrap_or(0)
    }

    /// Returns true when the record at this address, which a checkpoint has an entry for, still
    /// exists.
    #[inline]
    pub fn has(&self, address: Address) -> bool {
        self.has_extent(address.page().id(self.pages_per_extent).extent)
    }

    #[inline]
    pub(crate) fn has_extent(&self, extent: ExtentId) -> bool {
        self.by_extent.get(extent.0 as usize).is_some_and(|survives| *survives)
    }
}
