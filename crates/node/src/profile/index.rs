use crate::indexes::INDEXES;
use crate::profile::error::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use engine::MakeIndex;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema { name: "index", title: "[index]", keys: &["kind"] };

/// The index of where records lie: one of [`INDEXES`].
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Index {
    /// Its name.
    pub kind: &'static str,
    /// What makes an empty one.
    #[serde(skip)]
    pub make: MakeIndex,
}

impl PartialEq for Index {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Index {
    /// The index that `name` names.
    pub fn named(name: &str) -> Option<Self> {
        let named = INDEXES.iter().find(|(kind, _)| *kind == name);
        named.map(|&(kind, make)| Self { kind, make })
    }

    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let choices: Vec<(&str, Self)> =
            INDEXES.iter().map(|&(kind, make)| (kind, Self { kind, make })).collect();
        section.field("kind")?.choice(&choices)
    }
}
