use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::Nanos;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "core",
    title: "[core]",
    keys: &["count", "parse_ns", "probe_ns", "complete_ns"],
};

/// The simulated cores that run the device's code, and the time of each step there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cores {
    /// Number of cores.
    pub count: u32,
    /// Taking a command from its queue and decoding it.
    #[serde(rename = "parse_ns", with = "super::nanos")]
    pub parse: Nanos,
    /// Each lookup of a key in the index.
    #[serde(rename = "probe_ns", with = "super::nanos")]
    pub probe: Nanos,
    /// Posting a completion.
    #[serde(rename = "complete_ns", with = "super::nanos")]
    pub complete: Nanos,
}

impl Cores {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        let count = section.optional("count").map(|field| field.whole(1..=1024)).transpose()?;
        Ok(Self {
            count: count.unwrap_or(1),
            parse: Field::nanos(section.optional("parse_ns"))?,
            probe: Field::nanos(section.optional("probe_ns"))?,
            complete: Field::nanos(section.optional("complete_ns"))?,
        })
    }
}
