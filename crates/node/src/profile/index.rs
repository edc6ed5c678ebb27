use crate::indexes::INDEXES;
use crate::profile::error::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::{KIB, human_bytes};
use engine::{IndexConfig, MakeIndex};
use media::Shape;
use serde::Serialize;
use std::sync::Arc;

pub(super) const SCHEMA: Schema =
    Schema { name: "index", title: "[index]", keys: &["kind", "dram_kib", "keys_max"] };

/// Largest budget: 1 TiB, more than the memory of any drive.
const DRAM_KIB_MAX: u32 = 1 << 30;

/// Default bytes of the namespaces for each key of an index.
const BYTES_OF_KEY: u64 = 4 * KIB;

/// Default bytes of the namespaces for each byte of memory, as in real drives.
const BYTES_OF_DRAM: u64 = KIB;

/// The index of where records lie: one of [`INDEXES`].
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Index {
    /// Its name.
    pub kind: &'static str,
    /// Creates an empty index.
    #[serde(skip)]
    pub make: MakeIndex,
    /// Memory budget in bytes; by default 1/1024 of the namespaces' size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_bytes: Option<u64>,
    /// Keys that an index with a budget must hold; by default one for each 4 KiB of the namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_max: Option<u64>,
}

impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.dram_bytes, self.keys_max)
            == (other.kind, other.dram_bytes, other.keys_max)
    }
}

impl Index {
    /// Returns the index with this name.
    pub fn named(name: &str) -> Option<Self> {
        let named = INDEXES.iter().find(|(kind, _)| *kind == name);
        named.map(|&(kind, make)| Self { kind, make, dram_bytes: None, keys_max: None })
    }

    pub(super) fn read(section: Section<'_>, kv_bytes: u64) -> Result<Self, ProfileError> {
        let choices: Vec<(&str, Self)> =
            INDEXES.iter().filter_map(|(kind, _)| Some((*kind, Self::named(kind)?))).collect();
        let mut index = section.field("kind")?.choice(&choices)?;
        let (dram, keys) = (section.optional("dram_kib"), section.optional("keys_max"));
        if let Some(field) = [dram, keys].into_iter().flatten().next()
            && !index.has_budget()
        {
            return Err(field.wrong(format!(
                "{} is a key of indexes with a budget, but {:?} takes the memory that it needs",
                field.key, index.kind
            )));
        }
        if let Some(keys) = keys {
            index.keys_max = Some(keys.whole(1..=u32::MAX)?.into());
        }
        if let Some(dram) = dram {
            index.dram_bytes = Some(u64::from(dram.whole(1..=DRAM_KIB_MAX)?) * KIB);
            index.check_budget(kv_bytes).map_err(|problem| dram.wrong(problem))?;
        }
        Ok(index)
    }

    /// Returns whether it has a memory budget.
    pub fn has_budget(&self) -> bool {
        (self.make)(&IndexConfig::default(), &Arc::default()).dram_bytes_min() > 0
    }

    /// Returns its configuration for `kv_bytes` of namespaces of keys and values.
    pub fn config(&self, kv_bytes: u64) -> IndexConfig {
        if !self.has_budget() {
            return IndexConfig::default();
        }
        let keys_max = self.keys_max.unwrap_or_else(|| (kv_bytes / BYTES_OF_KEY).max(1));
        let floor =
            (self.make)(&IndexConfig { dram_bytes: 0, keys_max }, &Arc::default()).dram_bytes_min();
        let dram_bytes = self.dram_bytes.unwrap_or_else(|| (kv_bytes / BYTES_OF_DRAM).max(floor));
        IndexConfig { dram_bytes, keys_max }
    }

    /// Returns the number of extents that the log reserves for it on a medium of this shape.
    pub fn table_extents(&self, kv_bytes: u64, shape: &Shape) -> u32 {
        (self.make)(&self.config(kv_bytes), &Arc::default()).table_extents(shape)
    }

    /// Fails if the budget is too small.
    pub(super) fn check_budget(&self, kv_bytes: u64) -> Result<(), String> {
        let config = self.config(kv_bytes);
        let floor = (self.make)(&config, &Arc::default()).dram_bytes_min();
        if config.dram_bytes >= floor {
            return Ok(());
        }
        Err(format!(
            "an index of kind {:?} for {} keys needs at least {} KiB of memory, but has {}",
            self.kind,
            config.keys_max,
            floor.div_ceil(KIB),
            human_bytes(config.dram_bytes)
        ))
    }
}
