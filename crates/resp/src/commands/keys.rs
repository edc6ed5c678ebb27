use super::server::count;
use crate::call::{Call, Functions};
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::hidden;
use crate::reply::Reply;
use crate::values::{Value, date, remove, value};
use base::Key;
use engine::{Error, KeySpaceId};

/// The first two arguments are keys.
pub(crate) const FUNCTIONS: Functions = &[
    ("del", |call| Box::pin(del(call))),
    ("unlink", |call| Box::pin(del(call))),
    ("exists", |call| Box::pin(exists(call))),
    ("touch", |call| Box::pin(exists(call))),
    ("type", |call| Box::pin(kind(call))),
    ("rename", |call| Box::pin(rename(call, false))),
    ("renamenx", |call| Box::pin(rename(call, true))),
    ("copy", |call| Box::pin(copy(call))),
    ("randomkey", |call| Box::pin(randomkey(call))),
];

async fn del(call: Call<'_>) -> Outcome {
    let (mut count, space) = (0, call.space());
    for at in 1..call.request.len() {
        let key = call.key(at)?;
        count += i64::from(remove(call.transaction, space, &key).await?);
    }
    Ok(Reply::Integer(count))
}

async fn exists(mut call: Call<'_>) -> Outcome {
    let mut count = 0;
    for at in 1..call.request.len() {
        let key = call.key(at)?;
        count += i64::from(call.date(&key).await?.is_some());
    }
    Ok(Reply::Integer(count))
}

async fn kind(call: Call<'_>) -> Outcome {
    let (key, space) = (call.key(1)?, call.space());
    if call.transaction.look(space, &key).await?.is_some() {
        call.transaction.count_lookup(true);
        return Ok(Reply::status("string"));
    }
    let held = value(call.transaction, space, &key).await?;
    call.transaction.count_lookup(held.is_some());
    Ok(Reply::status(match held {
        None => "none",
        Some(Value::String(_)) => "string",
        Some(Value::Collection(collection)) => collection.kind.name(),
    }))
}

async fn rename(call: Call<'_>, must_be_new: bool) -> Outcome {
    let (from, to, space) = (call.key(1)?, call.key(2)?, call.space());
    let held = value(call.transaction, space, &from).await?.ok_or(Failure::NO_SUCH_KEY)?;
    let done = if must_be_new { Reply::flag(true) } else { Reply::Ok };
    if from == to {
        return Ok(if must_be_new { Reply::flag(false) } else { done });
    }
    if must_be_new && date(call.transaction, space, &to).await?.is_some() {
        return Ok(Reply::flag(false));
    }
    remove(call.transaction, space, &to).await?;
    match held {
        Value::String(held) => {
            call.transaction.put(space, &to, held.value, held.expires);
            call.transaction.delete(space, &from);
        }
        Value::Collection(collection) => {
            collection.rename(call.transaction, space, [&from, &to]).await?;
        }
    }
    Ok(done)
}

async fn copy(call: Call<'_>) -> Outcome {
    let (mut database, mut replaces) = (call.session.manner.database, false);
    let mut at = 3;
    while at < call.request.len() {
        if call.is_word(at, "replace") {
            replaces = true;
        } else if call.is_word(at, "db") && at + 1 < call.request.len() {
            at += 1;
            database = database_of(&call, at)?;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    let (from, to) = ((call.space(), call.key(1)?), (Door::space(database), call.key(2)?));
    if from == to {
        return Err(Failure::told("ERR source and destination objects are the same"));
    }
    let held = value(call.transaction, from.0, &from.1).await?;
    call.transaction.count_lookup(held.is_some());
    let Some(held) = held else { return Ok(Reply::flag(false)) };
    if !replaces && date(call.transaction, to.0, &to.1).await?.is_some() {
        return Ok(Reply::flag(false));
    }
    remove(call.transaction, to.0, &to.1).await?;
    match held {
        Value::String(held) => call.transaction.put(to.0, &to.1, held.value, held.expires),
        Value::Collection(collection) => {
            let places = [(from.0, &from.1), (to.0, &to.1)];
            collection.copy(call.transaction, places).await?;
        }
    }
    Ok(Reply::flag(true))
}

/// The database that an argument names.
pub(super) fn database_of(call: &Call<'_>, at: usize) -> Result<u16, Failure> {
    let (number, min, max) = (call.integer(at)?, i32::MIN, i32::MAX);
    if i32::try_from(number).is_err() {
        let text = format!("ERR value is out of range, value must between {min} and {max}");
        return Err(Failure::told(text));
    }
    let database = u16::try_from(number).ok();
    let database = database.filter(|number| *number < call.door.settings().databases);
    let database = database.ok_or_else(|| Failure::told("ERR DB index is out of range"))?;
    call.session.check_database(database)?;
    Ok(database)
}

async fn randomkey(call: Call<'_>) -> Outcome {
    let start = Key::new(&call.door.random().to_le_bytes()).expect("eight bytes are a key");
    let strings = call.space();
    let mut spaces = [strings, hidden::roots(strings)];
    let counts = [count(call.door, spaces[0])?, count(call.door, spaces[1])?];
    if call.door.random() % (counts[0] + counts[1]).max(1) >= counts[0] {
        spaces.reverse();
    }
    for space in spaces {
        for start in [Some(&start), None] {
            if let Some(key) = first_from(&call, space, start).await? {
                return Ok(Reply::bytes(key.as_bytes()));
            }
        }
    }
    Ok(Reply::Null)
}

async fn first_from(
    call: &Call<'_>,
    space: KeySpaceId,
    start: Option<&Key>,
) -> Result<Option<Key>, Failure> {
    match call.door.store().key_after(space, start).await {
        Err(Error::NoKeySpace) => Ok(None),
        found => Ok(found?),
    }
}
