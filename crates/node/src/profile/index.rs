use crate::profile::error::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema { name: "index", title: "[index]", keys: &["kind"] };

/// The index of where records lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Index {
    /// A hash table, all in the device's DRAM.
    Hash,
}

/// Every index by its name.
const NAMED: &[(&str, Index)] = &[("hash", Index::Hash)];

impl Index {
    /// The index that `name` names.
    pub fn named(name: &str) -> Option<Self> {
        NAMED.iter().find(|(known, _)| *known == name).map(|&(_, index)| index)
    }

    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        section.field("kind")?.choice(NAMED)
    }
}
