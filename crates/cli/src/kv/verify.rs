//! Compares a database with an archive.

use super::archive::{Bytes, Content, Entry};
use super::destination::{Destination, REFUSAL, Words, has_expired};
use super::moved::LeftOut;
use crate::output::Failure;
use resp_client::Reply;
use std::borrow::Cow;

/// Answer of PEXPIRETIME for a key that does not exist.
const ABSENT: i64 = -2;

/// Adds the keys of `entries` that differ from the database to `differing`; skipped keys are not
/// compared.
pub(super) async fn compare(
    destination: &Destination<'_>,
    entries: &[&Entry<'_>],
    differing: &mut LeftOut,
) -> Result<(), Failure> {
    let left: Vec<_> = entries.iter().filter(|entry| !destination.lacks(entry.key.0)).collect();
    let requests: Vec<_> =
        left.iter().flat_map(|entry| [content_of(entry), date_of(entry)]).collect();
    let replies = destination.ask_all(&requests).await?;
    for (entry, [content, date]) in left.into_iter().zip(replies.as_chunks::<2>().0) {
        if let Some(how) = difference(entry, content, date)? {
            differing.add(entry.key.0, how);
        }
    }
    Ok(())
}

/// Returns the difference between the answers and the entry.
fn difference(
    entry: &Entry<'_>,
    content: &Reply,
    date: &Reply,
) -> Result<Option<&'static str>, Failure> {
    let has_expired = has_expired(entry);
    if let Some(said) = date.error() {
        // The server cannot hold such a key.
        if has_expired && content.error().is_some_and(|said| said.starts_with(REFUSAL)) {
            return Ok(None);
        }
        return Err(Failure::Broken(format!("what is there cannot be compared: {said}")));
    }
    let expected = entry.expires.map_or(Some(-1), |millis| i64::try_from(millis).ok());
    Ok(match date.integer() {
        // A key with this expiry disappears as soon as the server's clock reaches this machine's.
        date if has_expired && (date == Some(ABSENT) || date == expected) => None,
        _ if has_expired => Some("still exists, though it has expired"),
        Some(ABSENT) => Some("is not there"),
        _ if !has(entry, content) => Some("has another value"),
        date if date != expected => Some("expires at another time"),
        _ => None,
    })
}

/// Returns the requests for the entry's value.
fn content_of<'b>(entry: &Entry<'b>) -> Words<'b> {
    let command = |name: &'static str| vec![Cow::Borrowed(name.as_bytes()), entry.key.0.into()];
    match &entry.content {
        Content::String(_) => command("GET"),
        Content::Hash(fields) => {
            let names = fields.iter().map(|(field, _)| field.0.into());
            command(if fields.is_empty() { "TYPE" } else { "HMGET" })
                .into_iter()
                .chain(names)
                .collect()
        }
        Content::SortedSet(members) => {
            let names = members.iter().map(|(member, _)| member.0.into());
            command(if members.is_empty() { "TYPE" } else { "ZMSCORE" })
                .into_iter()
                .chain(names)
                .collect()
        }
    }
}

fn date_of<'b>(entry: &Entry<'b>) -> Words<'b> {
    vec![Cow::Borrowed(b"PEXPIRETIME"), entry.key.0.into()]
}

/// True if the answer equals the entry's value.
fn has(entry: &Entry<'_>, reply: &Reply) -> bool {
    let members = reply.members().unwrap_or_default();
    match &entry.content {
        Content::String(value) => reply.bytes() == Some(value.0),
        Content::Hash(fields) => {
            let is =
                |((_, value), found): (&(_, Bytes<'_>), &Reply)| found.bytes() == Some(value.0);
            members.len() == fields.len() && fields.iter().zip(members).all(is)
        }
        Content::SortedSet(scores) => {
            let score = |found: &Reply| std::str::from_utf8(found.bytes()?).ok()?.parse().ok();
            let is = |((_, expected), found): (&(_, f64), &Reply)| score(found) == Some(*expected);
            members.len() == scores.len() && scores.iter().zip(members).all(is)
        }
    }
}
