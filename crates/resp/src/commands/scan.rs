use crate::command::{APART, Call, Command, NO_KEYS, Outcome, READ};
use crate::failure::Failure;
use crate::glob::matches;
use crate::reply::Reply;
use base::Key;
use engine::{Error, Walked};

/// Keys of a step when nobody says how many.
const COUNT: i64 = 10;
/// Keys of a step at most.
const COUNT_MAX: i64 = 10_000;

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "scan",
        arity: -2,
        flags: READ | APART,
        keys: NO_KEYS,
        summary: "Return some keys, and where to go on",
        run: |call| Box::pin(scan(call)),
    },
    Command {
        name: "keys",
        arity: 2,
        flags: READ | APART,
        keys: NO_KEYS,
        summary: "Return all keys that are like a pattern",
        run: |call| Box::pin(keys(call)),
    },
];

/// What a SCAN is asked for.
struct Wanted<'a> {
    count: usize,
    pattern: &'a [u8],
    /// All values are strings; of another type there is none.
    is_of_strings: bool,
}

impl<'a> Wanted<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, Failure> {
        let mut wanted = Self { count: 0, pattern: b"*", is_of_strings: true };
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
                wanted.is_of_strings = call.is_word(at + 1, "string");
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        wanted.count = usize::try_from(count.min(COUNT_MAX)).expect("it is above 0");
        Ok(wanted)
    }
}

/// The cursor is the greatest hash of the keys that were returned, so nothing is remembered for
/// whoever scans: the keys of greater hashes are left.
async fn scan(call: Call<'_>) -> Outcome {
    let cursor = std::str::from_utf8(call.request.arg(1)).ok().and_then(|text| text.parse().ok());
    let cursor: u64 = cursor.ok_or_else(|| Failure::told("ERR invalid cursor"))?;
    let wanted = Wanted::parse(&call)?;
    let mut after = (cursor > 0).then_some(cursor);
    let mut keys = Vec::new();
    loop {
        let walked = call.door.store().walk(call.space(), after, wanted.count).await;
        let walked = match walked {
            Err(Error::NoKeySpace) => Walked::default(),
            walked => walked?,
        };
        keys.extend(walked.keys);
        after = walked.last;
        // No cursor says that all is left but what has the least hash of all.
        if after != Some(0) {
            break;
        }
    }
    keys.retain(|key| wanted.is_of_strings && matches(wanted.pattern, key.as_bytes()));
    let cursor = Reply::text(after.unwrap_or(0).to_string());
    let keys = keys.iter().map(|key| Reply::bytes(key.as_bytes())).collect();
    Ok(Reply::Array(vec![cursor, Reply::Array(keys)]))
}

async fn keys(call: Call<'_>) -> Outcome {
    let pattern = call.request.arg(1);
    let mut found = Vec::new();
    let take = |key: &Key| {
        if matches(pattern, key.as_bytes()) {
            found.push(Reply::bytes(key.as_bytes()));
        }
        true
    };
    match call.door.store().list(call.space(), None, take).await {
        Ok(()) | Err(Error::NoKeySpace) => Ok(Reply::Array(found)),
        Err(error) => Err(error.into()),
    }
}
