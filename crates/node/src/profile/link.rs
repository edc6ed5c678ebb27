use crate::profile::error::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::Nanos;
use serde::Serialize;

pub(super) const SCHEMA: Schema =
    Schema { name: "link", title: "[link]", keys: &["mb_per_s", "transfer_us"] };

/// The link between host and device. It has two directions, each of this speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Bytes per second of each direction; 0 is no limit.
    pub bytes_per_second: u64,
    /// Fixed time of each transfer, in addition to its bytes.
    #[serde(rename = "transfer_ns", with = "super::nanos")]
    pub transfer: Nanos,
}

impl Link {
    pub(super) fn read(section: Section<'_>) -> Result<Self, ProfileError> {
        Ok(Self {
            bytes_per_second: section.field("mb_per_s")?.rate()?,
            transfer: section.field("transfer_us")?.micros()?,
        })
    }
}
