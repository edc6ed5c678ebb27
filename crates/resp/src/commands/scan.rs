use crate::call::{Call, Functions};
use crate::collection::{Collection, Kind};
use crate::failure::{Failure, Outcome};
use crate::glob::matches;
use crate::hidden;
use crate::reply::Reply;
use base::Key;
use engine::{Error, KeySpaceId, Walked};
use std::collections::BTreeSet;

/// Keys of a step without COUNT.
const COUNT: i64 = 10;
/// Keys of a step at most.
const COUNT_MAX: i64 = 10_000;

pub(crate) const FUNCTIONS: Functions =
    &[("scan", |call| Box::pin(scan(call))), ("keys", |call| Box::pin(keys(call)))];

/// What a SCAN is asked for.
struct Wanted<'a> {
    count: usize,
    pattern: &'a [u8],
    /// Of which type, if that was said.
    of: Option<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, Failure> {
        let mut wanted = Self { count: 0, pattern: b"*", of: None };
        let mut count = COUNT;
        for at in (2..call.request.len()).step_by(2) {
            let has_value = at + 1 < call.request.len();
            if call.is_word(at, "count") && has_value {
                count = call.integer(at + 1)?;
                if count < 1 {
                    return Err(Failure::SYNTAX);
                }
            } else if call.is_word(at, "match") && has_value {
                wanted.pattern = call.request.arg(at + 1);
            } else if call.is_word(at, "type") && has_value {
                wanted.of = Some(call.request.arg(at + 1));
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        wanted.count = usize::try_from(count.min(COUNT_MAX)).expect("it is above 0");
        Ok(wanted)
    }
}

/// A cursor as a client says it: a negative one counts from the end, as Redis has it.
pub(super) fn cursor_of(arg: &[u8]) -> Result<u64, Failure> {
    let text = std::str::from_utf8(arg).unwrap_or_default();
    let cursor = match text.strip_prefix('-') {
        Some(number) => number.parse().map(u64::wrapping_neg),
        None => text.parse(),
    };
    cursor.map_err(|_| Failure::told("ERR invalid cursor"))
}

/// The cursor is the greatest hash of the keys that were returned, so the server keeps no state for
/// a scan: the keys of greater hashes are left.
async fn scan(call: Call<'_>) -> Outcome {
    let cursor = cursor_of(call.request.arg(1))?;
    let wanted = Wanted::parse(&call)?;
    let mut after = (cursor > 0).then_some(cursor);
    let mut keys = Vec::new();
    loop {
        let (found, last) = walk(&call, after, &wanted).await?;
        keys.extend(found);
        after = last;
        // No cursor says that all is left but what has the least hash of all.
        if after != Some(0) {
            break;
        }
    }
    keys.retain(|key| matches(wanted.pattern, key.as_bytes()));
    let cursor = Reply::text(after.unwrap_or(0).to_string());
    let keys = keys.iter().map(|key| Reply::bytes(key.as_bytes())).collect();
    Ok(Reply::Array(vec![cursor, Reply::Array(keys)]))
}

/// The next keys of both kinds in the order of hashes, and the greatest hash up to which that is
/// all; none at the end.
async fn walk(
    call: &Call<'_>,
    after: Option<u64>,
    wanted: &Wanted<'_>,
) -> Result<(BTreeSet<Key>, Option<u64>), Failure> {
    let spaces = [call.space(), hidden::roots(call.space())];
    let mut walks = Vec::with_capacity(spaces.len());
    for space in spaces {
        walks.push(match call.door.store().walk(space, after, wanted.count).await {
            Err(Error::NoKeySpace) => Walked::default(),
            walked => walked?,
        });
    }
    let last = walks.iter().filter_map(|walked| walked.last).min();
    let is_here = |key: &Key| last.is_none_or(|last| key.hash() <= last);
    let mut keys = BTreeSet::new();
    for (space, walked) in spaces.into_iter().zip(walks) {
        for key in walked.keys.into_iter().filter(|key| is_here(key)) {
            if !keys.contains(&key) && is_of(call, space, &key, wanted).await? {
                keys.insert(key);
            }
        }
    }
    Ok((keys, last))
}

/// Whether what a key of `space` holds is of the type that is wanted.
async fn is_of(
    call: &Call<'_>,
    space: KeySpaceId,
    key: &Key,
    wanted: &Wanted<'_>,
) -> Result<bool, Failure> {
    let Some(kind) = wanted.of else { return Ok(true) };
    if space == call.space() {
        return Ok(kind.eq_ignore_ascii_case(b"string"));
    }
    match call.door.store().get(space, key).await {
        Ok(root) => {
            let found = Collection::kind_of(&root).map(Kind::name).unwrap_or_default();
            Ok(kind.eq_ignore_ascii_case(found.as_bytes()))
        }
        Err(Error::KeyNotFound | Error::NoKeySpace) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn keys(call: Call<'_>) -> Outcome {
    let pattern = call.request.arg(1);
    let mut found = Vec::new();
    let mut take = |key: &[u8]| {
        if matches(pattern, key) {
            found.push(Reply::bytes(key));
        }
    };
    for space in [call.space(), hidden::roots(call.space())] {
        match call.door.store().every_key(space, &mut take).await {
            Ok(()) | Err(Error::NoKeySpace) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Reply::Array(found))
}
