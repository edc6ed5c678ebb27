use super::format::{Format, Record};
use super::number::{seconds, whole};
use super::problem::{Problem, Text};
use crate::kind::Kind;

const COLUMNS: usize = 7;

/// True when `line` has as many columns as the format, or more: keys may have commas.
pub(super) fn has_columns(line: &[u8]) -> bool {
    columns(line) >= COLUMNS
}

fn columns(line: &[u8]) -> usize {
    line.split(|&byte| byte == b',').count()
}

/// What `line` says, which ends in a line feed.
///
/// Nothing is quoted: a key reaches from the first comma to the fifth from the end. Who asked and
/// for how long the value was to be kept have no counterpart in a drive.
pub(super) fn record(line: &[u8]) -> Result<Record<'_>, Problem> {
    let mut ends = line.rsplitn(COLUMNS - 1, |&byte| byte == b',');
    let (Some(_), Some(operation), Some(_), Some(value_bytes), Some(key_bytes), Some(start)) =
        (ends.next(), ends.next(), ends.next(), ends.next(), ends.next(), ends.next())
    else {
        return Err(Problem::ColumnsOf(Format::Twitter, columns(line)));
    };
    let mut start = start.splitn(2, |&byte| byte == b',');
    let (Some(time), Some(key)) = (start.next(), start.next()) else {
        return Err(Problem::ColumnsOf(Format::Twitter, columns(line)));
    };
    let kind =
        kind(operation).ok_or_else(|| Problem::Operation(Format::Twitter, Text::new(operation)))?;
    whole(key_bytes).ok_or_else(|| Problem::Size("key size", Text::new(key_bytes)))?;
    Ok(Record {
        time: timestamp(time).ok_or_else(|| Problem::Timestamp(Text::new(time)))?,
        kind,
        key,
        size: whole(value_bytes)
            .ok_or_else(|| Problem::Size("value size", Text::new(value_bytes)))?,
    })
}

/// Nanoseconds in whole seconds.
fn timestamp(time: &[u8]) -> Option<u64> {
    whole(time).and_then(|_| seconds(time))
}

fn kind(operation: &[u8]) -> Option<Kind> {
    match operation {
        b"get" | b"gets" => Some(Kind::Retrieve),
        b"set" | b"add" | b"replace" | b"cas" | b"append" | b"prepend" | b"incr" | b"decr" => {
            Some(Kind::Store)
        }
        b"delete" => Some(Kind::Delete),
        _ => None,
    }
}
