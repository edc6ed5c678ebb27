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

/// The firmware: how many requests it handles at once, and the time of each kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Firmware {
    /// Number of requests handled at once.
    pub handlers: Handlers,
    /// Handler time of a retrieve or a read.
    #[serde(rename = "t_read_ns", with = "super::nanos")]
    pub t_read: Nanos,
    /// Handler time of a store, a write or a change of a zone.
    #[serde(rename = "t_write_ns", with = "super::nanos")]
    pub t_write: Nanos,
    /// Handler time of a delete; zero without a namespace of keys.
    #[serde(rename = "t_delete_ns", with = "super::nanos")]
    pub t_delete: Nanos,
    /// Handler time of an exist; likewise.
    #[serde(rename = "t_exist_ns", with = "super::nanos")]
    pub t_exist: Nanos,
    /// Additional handler time of a store that overwrites; likewise.
    #[serde(rename = "t_update_ns", with = "super::nanos")]
    pub t_update: Nanos,
    /// Additional handler time of each KiB of a store; likewise.
    #[serde(rename = "t_write_kib_ns", with = "super::nanos")]
    pub t_write_kib: Nanos,
    /// Additional handler time of each KiB of a retrieve; likewise.
    #[serde(rename = "t_read_kib_ns", with = "super::nanos")]
    pub t_read_kib: Nanos,
}

/// The number of request handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handlers {
    /// This many, at least one.
    Count(u32),
    /// One for each request.
    Unlimited,
}

impl Firmware {
    /// Reads the firmware of a device with or without keys and values.
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
