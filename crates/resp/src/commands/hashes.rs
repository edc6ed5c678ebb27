use super::members::{self, Part};
use crate::call::{Call, Functions};
use crate::collection::{Collection, Entry, Kind, Nodes, check_value, name_of};
use crate::command::wrong_number;
use crate::failure::{Failure, Outcome};
use crate::number::{Decimal, integer};
use crate::reply::Reply;
use base::{Buf, Key};

pub(crate) const FUNCTIONS: Functions = &[
    ("hset", |call| Box::pin(hset(call))),
    ("hmset", |call| Box::pin(hmset(call))),
    ("hsetnx", |call| Box::pin(hsetnx(call))),
    ("hget", |call| Box::pin(hget(call))),
    ("hmget", |call| Box::pin(hmget(call))),
    ("hgetall", |call| Box::pin(hgetall(call))),
    ("hkeys", |call| Box::pin(hkeys(call))),
    ("hvals", |call| Box::pin(hvals(call))),
    ("hdel", |call| Box::pin(hdel(call))),
    ("hlen", |call| Box::pin(hlen(call))),
    ("hexists", |call| Box::pin(hexists(call))),
    ("hstrlen", |call| Box::pin(hstrlen(call))),
    ("hincrby", |call| Box::pin(hincrby(call))),
    ("hincrbyfloat", |call| Box::pin(hincrbyfloat(call))),
    ("hscan", |call| Box::pin(hscan(call))),
    ("hrandfield", |call| Box::pin(hrandfield(call))),
];

async fn open(call: &mut Call<'_>) -> Result<(Key, Option<Collection>), Failure> {
    let key = call.key(1)?;
    let hash = call.collection(Kind::Hash, &key).await?;
    Ok((key, hash))
}

async fn open_or_new(call: &mut Call<'_>) -> Result<(Key, Collection), Failure> {
    let (key, hash) = open(call).await?;
    Ok((key, hash.unwrap_or_else(|| Collection::new(Kind::Hash))))
}

/// The value of a field of a hash.
async fn field(
    call: &mut Call<'_>,
    key: &Key,
    hash: &mut Collection,
    field: &[u8],
) -> Result<Option<Buf>, Failure> {
    hash.trees[0].get(&mut call.nodes(key), field).await
}

/// Gives a field a value; true if there was no such field.
async fn set_field(
    nodes: &mut Nodes<'_>,
    hash: &mut Collection,
    field: &[u8],
    value: Buf,
) -> Result<bool, Failure> {
    let entry = Entry { key: name_of(field)?, value };
    Ok(hash.trees[0].insert(nodes, entry).await?.is_none())
}

/// Sets all fields that are named, and says how many are new.
async fn set_fields(call: &mut Call<'_>) -> Result<i64, Failure> {
    if !call.request.len().is_multiple_of(2) {
        return Err(Failure::told(wrong_number(call.command.name)));
    }
    let (key, mut hash) = open_or_new(call).await?;
    let mut added = 0;
    for at in (2..call.request.len()).step_by(2) {
        let (name, value) = (call.request.arg(at), call.request.value(at + 1));
        check_value(call.transaction, value.len())?;
        added += i64::from(set_field(&mut call.nodes(&key), &mut hash, name, value).await?);
    }
    call.save(&key, hash).await?;
    Ok(added)
}

async fn hset(mut call: Call<'_>) -> Outcome {
    Ok(Reply::Integer(set_fields(&mut call).await?))
}

async fn hmset(mut call: Call<'_>) -> Outcome {
    set_fields(&mut call).await.map(|_| Reply::Ok)
}

async fn hsetnx(mut call: Call<'_>) -> Outcome {
    let (key, mut hash) = open_or_new(&mut call).await?;
    let (name, value) = (call.request.arg(2), call.request.value(3));
    if field(&mut call, &key, &mut hash, name).await?.is_some() {
        return Ok(Reply::flag(false));
    }
    check_value(call.transaction, value.len())?;
    set_field(&mut call.nodes(&key), &mut hash, name, value).await?;
    call.save(&key, hash).await?;
    Ok(Reply::flag(true))
}

/// The value of the field that is named.
async fn asked(call: &mut Call<'_>) -> Result<Option<Buf>, Failure> {
    let (key, Some(mut hash)) = open(call).await? else { return Ok(None) };
    field(call, &key, &mut hash, call.request.arg(2)).await
}

async fn hget(mut call: Call<'_>) -> Outcome {
    Ok(Reply::optional(asked(&mut call).await?))
}

async fn hexists(mut call: Call<'_>) -> Outcome {
    Ok(Reply::flag(asked(&mut call).await?.is_some()))
}

async fn hstrlen(mut call: Call<'_>) -> Outcome {
    let value = asked(&mut call).await?;
    Ok(Reply::Integer(value.map_or(0, |value| i64::from(value.len()))))
}

async fn hmget(mut call: Call<'_>) -> Outcome {
    let (key, mut hash) = open_or_new(&mut call).await?;
    let mut values = Vec::new();
    for name in call.request.rest(2) {
        values.push(Reply::optional(field(&mut call, &key, &mut hash, name).await?));
    }
    Ok(Reply::Array(values))
}

async fn entries(call: &mut Call<'_>) -> Result<Vec<Entry>, Failure> {
    let (key, Some(mut hash)) = open(call).await? else { return Ok(Vec::new()) };
    hash.trees[0].slice(&mut call.nodes(&key), 0, u64::MAX).await
}

fn pair(Entry { key, value }: Entry) -> (Reply, Reply) {
    (Reply::Bulk(key), Reply::Bulk(value))
}

async fn hgetall(mut call: Call<'_>) -> Outcome {
    let entries = entries(&mut call).await?;
    Ok(Reply::Map(entries.into_iter().map(pair).collect()))
}

async fn hkeys(mut call: Call<'_>) -> Outcome {
    let entries = entries(&mut call).await?;
    Ok(Reply::Array(entries.into_iter().map(|entry| Reply::Bulk(entry.key)).collect()))
}

async fn hvals(mut call: Call<'_>) -> Outcome {
    let entries = entries(&mut call).await?;
    Ok(Reply::Array(entries.into_iter().map(|entry| Reply::Bulk(entry.value)).collect()))
}

async fn hdel(mut call: Call<'_>) -> Outcome {
    let (key, Some(mut hash)) = open(&mut call).await? else { return Ok(Reply::Integer(0)) };
    let mut removed = 0;
    for name in call.request.rest(2) {
        let before = hash.trees[0].remove(&mut call.nodes(&key), name).await?;
        removed += i64::from(before.is_some());
    }
    if removed > 0 {
        call.save(&key, hash).await?;
    }
    Ok(Reply::Integer(removed))
}

async fn hlen(mut call: Call<'_>) -> Outcome {
    let (_, hash) = open_or_new(&mut call).await?;
    Ok(Reply::Integer(i64::try_from(hash.len()).unwrap_or(i64::MAX)))
}

async fn hincrby(mut call: Call<'_>) -> Outcome {
    let by = call.integer(3)?;
    let (key, mut hash) = open_or_new(&mut call).await?;
    let name = call.request.arg(2);
    let before = field(&mut call, &key, &mut hash, name).await?;
    let number = match before.as_ref().map(|value| value.bytes().and_then(integer)) {
        None => 0,
        Some(Some(number)) => number,
        Some(None) => return Err(Failure::told("ERR hash value is not an integer")),
    };
    let Some(sum) = number.checked_add(by) else {
        return Err(Failure::told("ERR increment or decrement would overflow"));
    };
    let value = Buf::copy_from(sum.to_string().as_bytes());
    set_field(&mut call.nodes(&key), &mut hash, name, value).await?;
    call.save(&key, hash).await?;
    Ok(Reply::Integer(sum))
}

async fn hincrbyfloat(mut call: Call<'_>) -> Outcome {
    let by = Decimal::parse(call.request.arg(3)).ok_or(Failure::NOT_A_FLOAT)?;
    if by.is_infinite() {
        return Err(Failure::told("ERR value is NaN or Infinity"));
    }
    let (key, mut hash) = open_or_new(&mut call).await?;
    let name = call.request.arg(2);
    let before = field(&mut call, &key, &mut hash, name).await?;
    let number = match before.as_ref().map(|value| value.bytes().and_then(Decimal::parse)) {
        None => Decimal::Exact(0),
        Some(Some(number)) => number,
        Some(None) => return Err(Failure::told("ERR hash value is not a float")),
    };
    let Some(sum) = number.plus(by) else {
        return Err(Failure::told("ERR increment would produce NaN or Infinity"));
    };
    let value = Buf::copy_from(sum.text().as_bytes());
    let set = value.clone();
    set_field(&mut call.nodes(&key), &mut hash, name, set).await?;
    call.save(&key, hash).await?;
    Ok(Reply::Bulk(value))
}

async fn hscan(call: Call<'_>) -> Outcome {
    let part = |entry: &Entry| Some((entry.key.clone(), Part::Value(entry.value.clone())));
    members::scan(call, Kind::Hash, part).await
}

async fn hrandfield(call: Call<'_>) -> Outcome {
    let part = |entry: &Entry| Some((entry.key.clone(), Part::Value(entry.value.clone())));
    members::random(call, Kind::Hash, "withvalues", part).await
}
