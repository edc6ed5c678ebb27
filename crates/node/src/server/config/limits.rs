use crate::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use crate::server::ConnectionLimits;
use base::limits::VALUE_BYTES_MAX;
use base::{GIB, SizeError, human_bytes, parse_length, parse_size};
use controller::Limits;
use nvme_tcp::target::Budget;
use std::ops::RangeInclusive;

pub(super) const SCHEMA: Schema = Schema {
    name: "limits",
    title: "[limits]",
    keys: &[
        "connections",
        "connection_memory",
        "associations",
        "io_queues",
        "queue_entries",
        "value_size",
    ],
};

/// Reads the limits of connections and of hosts.
pub(super) fn read(section: Section<'_>) -> Result<(ConnectionLimits, Limits), ProfileError> {
    let default = Limits::default();
    let short = |key, range: RangeInclusive<u32>, default: u16| {
        let number = section.whole_or(key, range, default.into())?;
        Ok::<_, ProfileError>(u16::try_from(number).expect("all these ranges end below 2^16"))
    };
    let value = section.optional("value_size").map(|field| size(field, parse_length, VALUE));
    let value = value.transpose()?.unwrap_or(default.value_bytes.into());
    let limits = Limits {
        associations: short("associations", 1..=4_096, default.associations)?,
        io_queues: short("io_queues", 1..=1_024, default.io_queues)?,
        queue_entries: short("queue_entries", 32..=1_024, default.queue_entries)?,
        value_bytes: u32::try_from(value).expect("it is in that range"),
    };
    let default = ConnectionLimits::default();
    let memory = section.optional("connection_memory").map(|field| size(field, parse_size, MEMORY));
    let connections = ConnectionLimits {
        most: section.whole_or("connections", 1..=65_536, default.most)?,
        memory_bytes: memory.transpose()?.unwrap_or(default.memory_bytes),
    };
    Ok((connections, limits))
}

/// The range of a size: minimum, the reason for the minimum, maximum.
type Sizes = (u64, &'static str, u64);

const VALUE: Sizes = (1, "", VALUE_BYTES_MAX as u64);
const MEMORY: Sizes = (Budget::BYTES_MIN, " (what the largest command moves)", GIB);

fn size(
    field: Field<'_>,
    parse: fn(&str) -> Result<u64, SizeError>,
    (least, what, most): Sizes,
) -> Result<u64, ProfileError> {
    let size = field.line_of_text().ok().map(|text| parse(&text));
    if let Some(Err(error @ SizeError::NoUnit(_))) = size {
        return Err(field.wrong(format!("{} {}: {error}", field.key, field.section.place())));
    }
    let size = size.and_then(Result::ok);
    size.filter(|size| (least..=most).contains(size)).ok_or_else(|| {
        let [from, to] = [least, most].map(human_bytes);
        field.must_be(&format!("a size from {from}{what} to {to}, as \"2MiB\""))
    })
}
