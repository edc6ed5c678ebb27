use super::options::{Options, Unit, date};
use crate::call::{Call, Functions};
use crate::command::wrong_number;
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use base::{Buf, BufMut, Key};
use clock::UnixMillis;
use engine::Error;

pub(crate) const FUNCTIONS: Functions = &[
    ("get", |call| Box::pin(get(call))),
    ("set", |call| Box::pin(set(call))),
    ("setnx", |call| Box::pin(setnx(call))),
    ("setex", |call| Box::pin(set_for(call, Unit::EX))),
    ("psetex", |call| Box::pin(set_for(call, Unit::PX))),
    ("getset", |call| Box::pin(getset(call))),
    ("getdel", |call| Box::pin(getdel(call))),
    ("getex", |call| Box::pin(getex(call))),
    ("mget", |call| Box::pin(mget(call))),
    ("mset", |call| Box::pin(mset(call))),
    ("msetnx", |call| Box::pin(msetnx(call))),
    ("strlen", |call| Box::pin(strlen(call))),
    ("append", |call| Box::pin(append(call))),
    ("getrange", |call| Box::pin(getrange(call))),
    ("substr", |call| Box::pin(getrange(call))),
    ("setrange", |call| Box::pin(setrange(call))),
];

async fn value_of(call: &mut Call<'_>, key: &Key) -> Result<Option<Buf>, Failure> {
    let found = call.string(key).await;
    call.transaction.count_lookup(!matches!(found, Ok(None)));
    Ok(found?.map(|held| held.value))
}

fn put(call: &mut Call<'_>, key: &Key, value: Buf, expires: Option<UnixMillis>) {
    let space = call.space();
    call.transaction.put(space, key, value, expires);
}

async fn get(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    Ok(Reply::optional(value_of(&mut call, &key).await?))
}

async fn set(mut call: Call<'_>) -> Outcome {
    let options = Options::parse(&call, 3, true)?;
    let mut expires = match options.date {
        Some((unit, at)) => Some(date(&call, unit, at)?),
        None => None,
    };
    let (key, value) = (call.key(1)?, call.request.value(2));
    let mut before = None;
    if options.gets || options.must_equal.is_some() {
        before = value_of(&mut call, &key).await?;
    }
    if let Some(at) = options.must_equal {
        let found = before.as_ref().map(|value| value.bytes().unwrap_or_default());
        if found != Some(call.request.arg(at)) {
            return Ok(Reply::optional(before.filter(|_| options.gets)));
        }
    }
    if options.must_exist || options.must_not_exist || options.keeps_date {
        let present = call.date(&key).await?;
        let is_there = present.is_some();
        if (options.must_exist && !is_there) || (options.must_not_exist && is_there) {
            return Ok(Reply::optional(before));
        }
        if options.keeps_date {
            expires = present.flatten();
        }
    }
    call.put(&key, value, expires).await?;
    Ok(if options.gets { Reply::optional(before) } else { Reply::Ok })
}

async fn setnx(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    if call.date(&key).await?.is_some() {
        return Ok(Reply::flag(false));
    }
    let value = call.request.value(2);
    put(&mut call, &key, value, None);
    Ok(Reply::flag(true))
}

async fn set_for(mut call: Call<'_>, unit: Unit) -> Outcome {
    let expires = date(&call, unit, 2)?;
    let (key, value) = (call.key(1)?, call.request.value(3));
    call.put(&key, value, Some(expires)).await?;
    Ok(Reply::Ok)
}

async fn getset(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    let before = value_of(&mut call, &key).await?;
    let value = call.request.value(2);
    put(&mut call, &key, value, None);
    Ok(Reply::optional(before))
}

async fn getdel(mut call: Call<'_>) -> Outcome {
    let (key, space) = (call.key(1)?, call.space());
    let before = value_of(&mut call, &key).await?;
    if before.is_some() {
        call.transaction.delete(space, &key);
    }
    Ok(Reply::optional(before))
}

async fn getex(mut call: Call<'_>) -> Outcome {
    let options = Options::parse(&call, 2, false)?;
    let (key, space) = (call.key(1)?, call.space());
    let found = call.string(&key).await;
    call.transaction.count_lookup(!matches!(found, Ok(None)));
    let Some(held) = found? else { return Ok(Reply::Null) };
    let expires = match options.date {
        Some((unit, at)) => Some(date(&call, unit, at)?),
        None if options.persists => None,
        None => held.expires,
    };
    if expires.is_some_and(|date| date <= clock::unix_now()) {
        call.transaction.delete(space, &key);
    } else if expires != held.expires {
        put(&mut call, &key, held.value.clone(), expires);
    }
    Ok(Reply::Bulk(held.value))
}

async fn mget(call: Call<'_>) -> Outcome {
    let (mut values, space) = (Vec::new(), call.space());
    for at in 1..call.request.len() {
        let held = call.transaction.get(space, &call.key(at)?).await?;
        call.transaction.count_lookup(held.is_some());
        values.push(Reply::optional(held.map(|held| held.value)));
    }
    Ok(Reply::Array(values))
}

/// The keys of pairs, with where their values stand.
fn pairs(call: &Call<'_>) -> Result<Vec<(Key, usize)>, Failure> {
    if call.request.len().is_multiple_of(2) {
        return Err(Failure::told(wrong_number(call.command.name)));
    }
    (1..call.request.len()).step_by(2).map(|at| Ok((call.key(at)?, at + 1))).collect()
}

async fn mset(mut call: Call<'_>) -> Outcome {
    for (key, at) in pairs(&call)? {
        let value = call.request.value(at);
        call.put(&key, value, None).await?;
    }
    Ok(Reply::Ok)
}

async fn msetnx(mut call: Call<'_>) -> Outcome {
    let pairs = pairs(&call)?;
    for (key, _) in &pairs {
        if call.date(key).await?.is_some() {
            return Ok(Reply::flag(false));
        }
    }
    for (key, at) in pairs {
        let value = call.request.value(at);
        put(&mut call, &key, value, None);
    }
    Ok(Reply::flag(true))
}

async fn strlen(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    let facts = call.string_facts(&key).await?;
    Ok(Reply::Integer(facts.map_or(0, |facts| i64::from(facts.len))))
}

/// Returns `before` with `part` at `at`. Zeros fill the gap between them.
fn overwritten(
    call: &Call<'_>,
    before: Option<&Buf>,
    part: &[u8],
    at: usize,
) -> Result<Buf, Failure> {
    let before = before.and_then(Buf::bytes).unwrap_or_default();
    let max = call.door.store().value_bytes_max();
    let end = at.saturating_add(part.len());
    if end > max as usize {
        return Err(Error::ValueTooLong { max }.into());
    }
    let mut value = BufMut::unpooled(end.max(before.len()));
    let bytes = value.as_mut();
    bytes[..before.len()].copy_from_slice(before);
    bytes[at..end].copy_from_slice(part);
    call.door.counters().count_copy(before.len() + part.len());
    Ok(value.freeze())
}

async fn append(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    let held = call.string(&key).await?;
    let len = held.as_ref().map_or(0, |held| held.value.len());
    let before = held.as_ref().map(|held| &held.value);
    let value = overwritten(&call, before, call.request.arg(2), len as usize)?;
    let len = value.len();
    put(&mut call, &key, value, held.and_then(|held| held.expires));
    Ok(Reply::Integer(i64::from(len)))
}

async fn setrange(mut call: Call<'_>) -> Outcome {
    let at = call.integer(2)?;
    let Ok(at) = usize::try_from(at) else {
        return Err(Failure::told("ERR offset is out of range"));
    };
    let (key, part) = (call.key(1)?, call.request.arg(3));
    let held = call.string(&key).await?;
    let before = held.as_ref().map(|held| &held.value);
    if part.is_empty() {
        return Ok(Reply::Integer(before.map_or(0, |value| i64::from(value.len()))));
    }
    let value = overwritten(&call, before, part, at)?;
    let len = value.len();
    put(&mut call, &key, value, held.and_then(|held| held.expires));
    Ok(Reply::Integer(i64::from(len)))
}

async fn getrange(mut call: Call<'_>) -> Outcome {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let key = call.key(1)?;
    let value = value_of(&mut call, &key).await?;
    let Some(value) = value else { return Ok(Reply::text("")) };
    let len = i64::from(value.len());
    if start < 0 && end < 0 && start > end {
        return Ok(Reply::text(""));
    }
    let from_end = |at: i64| if at < 0 { at.saturating_add(len).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(len - 1));
    if start > end {
        return Ok(Reply::text(""));
    }
    let place = |at: i64| u32::try_from(at).expect("it is within the value");
    Ok(Reply::Bulk(value.slice(place(start)..place(end + 1))))
}
