use crate::ProfileError;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::CONNECTIONS_MAX;
use controller::Limits;
use std::ops::RangeInclusive;

pub(super) const SCHEMA: Schema = Schema {
    name: "limits",
    title: "[limits]",
    keys: &["connections", "associations", "io_queues", "queue_entries"],
};

/// Most connections of a server at a time, and what hosts may have.
pub(super) fn read(section: Section<'_>) -> Result<(u32, Limits), ProfileError> {
    let default = Limits::default();
    let short = |key, range: RangeInclusive<u32>, default: u16| {
        let number = section.whole_or(key, range, default.into())?;
        Ok::<_, ProfileError>(u16::try_from(number).expect("all these ranges end below 2^16"))
    };
    let limits = Limits {
        associations: short("associations", 1..=4_096, default.associations)?,
        io_queues: short("io_queues", 1..=1_024, default.io_queues)?,
        queue_entries: short("queue_entries", 32..=1_024, default.queue_entries)?,
    };
    let connections = section.whole_or("connections", 1..=65_536, CONNECTIONS_MAX)?;
    Ok((connections, limits))
}
