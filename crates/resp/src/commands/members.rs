//! What commands of hashes and of sorted sets have in common.

use super::scan::cursor_of;
use crate::call::Call;
use crate::collection::{Collection, Entry, Kind, Nodes};
use crate::failure::{Failure, Outcome};
use crate::glob::matches;
use crate::number;
use crate::reply::Reply;
use base::{Buf, Key};
use std::collections::BTreeSet;

/// What a member has besides its name.
pub(super) enum Part {
    Value(Buf),
    Score(f64),
}

impl Part {
    fn reply(self) -> Reply {
        match self {
            Self::Value(value) => Reply::Bulk(value),
            Self::Score(score) => Reply::Double(score),
        }
    }
}

impl Call<'_> {
    /// The nodes of the collection that `key` holds.
    pub(super) fn nodes<'a>(&'a mut self, key: &'a Key) -> Nodes<'a> {
        let space = self.space();
        Nodes::new(self.transaction, space, key)
    }

    /// Writes a collection.
    pub(super) async fn save(&mut self, key: &Key, changed: Collection) -> Result<(), Failure> {
        let space = self.space();
        changed.save(self.transaction, space, key).await
    }
}

/// Entries of a step of a scan without COUNT.
const COUNT: usize = 10;

/// Members by chance at most, if the same one may be there several times.
const REPEATED_MAX: i64 = 1 << 20;

/// Steps a scan on. The cursor is the number of the last node that was returned.
pub(super) async fn scan(
    mut call: Call<'_>,
    kind: Kind,
    part: impl Fn(&Entry) -> Option<(Buf, Part)>,
) -> Outcome {
    let cursor = cursor_of(call.request.arg(2))?;
    let key = call.key(1)?;
    let nothing = || Reply::Array(vec![Reply::text("0"), Reply::Array(Vec::new())]);
    let Some(mut found) = call.collection(kind, &key).await? else { return Ok(nothing()) };
    let (mut count, mut pattern) = (COUNT, &b"*"[..]);
    for at in (3..call.request.len()).step_by(2) {
        let has_value = at + 1 < call.request.len();
        if call.is_word(at, "count") && has_value {
            let number = call.integer(at + 1)?;
            let number = usize::try_from(number).ok().filter(|count| *count > 0);
            count = number.ok_or(Failure::SYNTAX)?;
        } else if call.is_word(at, "match") && has_value {
            pattern = call.request.arg(at + 1);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    let (entries, next) = found.trees[0].step(&mut call.nodes(&key), cursor, count).await?;
    let mut parts = Vec::new();
    for (name, part) in entries.iter().filter_map(part) {
        if matches(pattern, name.bytes().unwrap_or_default()) {
            // Within a scan a score is text for everybody.
            let part = match part {
                Part::Score(score) => Reply::text(number::score(score)),
                part @ Part::Value(_) => part.reply(),
            };
            parts.extend([Reply::Bulk(name), part]);
        }
    }
    Ok(Reply::Array(vec![Reply::text(next.unwrap_or(0).to_string()), Reply::Array(parts)]))
}

/// Some members by chance: one, so many different ones, or so many of any, if that is below 0.
pub(super) async fn random(
    mut call: Call<'_>,
    kind: Kind,
    word: &str,
    part: impl Fn(&Entry) -> Option<(Buf, Part)>,
) -> Outcome {
    let args = call.request.len();
    let count = if args > 2 { Some(call.integer(2)?) } else { None };
    if count == Some(i64::MIN) {
        let least = -i64::MAX;
        let text =
            format!("ERR value is out of range, value must between {least} and {}", i64::MAX);
        return Err(Failure::told(text));
    }
    if args > 4 || args == 4 && !call.is_word(3, word) {
        return Err(Failure::SYNTAX);
    }
    let is_too_great = |count: i64| args == 4 && count > i64::MAX / 2;
    if count.is_some_and(|count| count < -REPEATED_MAX || is_too_great(count)) {
        return Err(Failure::told("ERR value is out of range"));
    }
    let key = call.key(1)?;
    let Some(mut found) = call.collection(kind, &key).await? else {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Null });
    };
    let mut chosen = Vec::new();
    for rank in ranks(&call, found.len(), count.unwrap_or(1)) {
        let one = found.trees[0].slice(&mut call.nodes(&key), rank, 1).await?;
        chosen.extend(one.iter().filter_map(&part));
    }
    if args == 4 {
        let pairs = chosen.into_iter().map(|(name, part)| (Reply::Bulk(name), part.reply()));
        return Ok(Reply::Pairs(pairs.collect()));
    }
    let mut names = chosen.into_iter().map(|(name, _)| Reply::Bulk(name));
    match count {
        None => Ok(names.next().unwrap_or(Reply::Null)),
        Some(_) => Ok(Reply::Array(names.collect())),
    }
}

/// Numbers below `len` by chance, as many as `count` says.
fn ranks(call: &Call<'_>, len: u64, count: i64) -> Vec<u64> {
    let wanted = count.unsigned_abs();
    if count < 0 {
        return (0..wanted).map(|_| call.door.random() % len).collect();
    }
    // Floyd's way: each number below the last is met once, and what was taken already stands for
    // the last.
    let mut taken = BTreeSet::new();
    for last in len.saturating_sub(wanted)..len {
        let rank = call.door.random() % (last + 1);
        taken.insert(if taken.contains(&rank) { last } else { rank });
    }
    taken.into_iter().collect()
}
