use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::Nanos;
use serde::{Serialize, Serializer};

pub(super) const SCHEMA: Schema = Schema {
    name: "firmware",
    title: "[firmware]",
    keys: &[
        "handlers",
        "t_read_us",
        "t_write_us",
        "t_delete_us",
        "t_exist_us",
        "t_update_us",
        "t_write_kib_us",
        "t_read_kib_us",
    ],
};

/// The firmware: how many requests it handles at once, and what each kind takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Firmware {
    /// Requests in work at once.
    pub handlers: Handlers,
    /// What a retrieve or a read holds its handler for.
    #[serde(rename = "t_read_ns", with = "super::nanos")]
    pub t_read: Nanos,
    /// What a store, a write or a change of a zone holds its handler for.
    #[serde(rename = "t_write_ns", with = "super::nanos")]
    pub t_write: Nanos,
    /// What a delete holds its handler for; nothing without a namespace of keys.
    #[serde(rename = "t_delete_ns", with = "super::nanos")]
    pub t_delete: Nanos,
    /// What an exist holds its handler for; likewise.
    #[serde(rename = "t_exist_ns", with = "super::nanos")]
    pub t_exist: Nanos,
    /// What a store that overwrites holds a handler for besides; likewise.
    #[serde(rename = "t_update_ns", with = "super::nanos")]
    pub t_update: Nanos,
    /// What each KiB of a store holds its handler for besides; likewise.
    #[serde(rename = "t_write_kib_ns", with = "super::nanos")]
    pub t_write_kib: Nanos,
    /// What each KiB of a retrieve holds a handler for besides; likewise.
    #[serde(rename = "t_read_kib_ns", with = "super::nanos")]
    pub t_read_kib: Nanos,
}

/// How many request handlers there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handlers {
    /// This many, at least one.
    Count(u32),
    /// One for each request.
    Unlimited,
}

impl Firmware {
    /// The firmware of a device that has keys and values, or none.
    pub(super) fn read(section: Section<'_>, has_keys: bool) -> Result<Self, ProfileError> {
        let more_of_keys = |key: &'static str| match section.optional(key) {
            Some(field) if !has_keys => Err(field
                .wrong(format!("{key} is of keys, but there is no [[namespace]] of kind \"kv\""))),
            field => field.map_or(Ok(Nanos::ZERO), Field::micros),
        };
        let of_keys = |key: &'static str| match section.optional(key) {
            None if has_keys => Err(section.lacks(&format!("the key {key:?}"))),
            _ => more_of_keys(key),
        };
        Ok(Self {
            handlers: Handlers::read(section.field("handlers")?)?,
            t_read: section.field("t_read_us")?.micros()?,
            t_write: section.field("t_write_us")?.micros()?,
            t_delete: of_keys("t_delete_us")?,
            t_exist: of_keys("t_exist_us")?,
            t_update: more_of_keys("t_update_us")?,
            t_write_kib: more_of_keys("t_write_kib_us")?,
            t_read_kib: more_of_keys("t_read_kib_us")?,
        })
    }
}

impl Handlers {
    fn read(field: Field<'_>) -> Result<Self, ProfileError> {
        if field.is("unlimited") {
            return Ok(Self::Unlimited);
        }
        field
            .whole(1..=65_536)
            .map(Self::Count)
            .map_err(|_| field.must_be("a whole number from 1 to 65536 or \"unlimited\""))
    }
}

impl Serialize for Handlers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u32(*count),
            Self::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}
