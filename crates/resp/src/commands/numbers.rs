use crate::call::{Call, Functions};
use crate::failure::{Failure, Outcome};
use crate::number::{Decimal, integer};
use crate::reply::Reply;
use base::Buf;

pub(crate) const FUNCTIONS: Functions = &[
    ("incr", |call| Box::pin(add(call, 1))),
    ("decr", |call| Box::pin(add(call, -1))),
    ("incrby", |call| Box::pin(incrby(call))),
    ("decrby", |call| Box::pin(decrby(call))),
    ("incrbyfloat", |call| Box::pin(incrbyfloat(call))),
];

async fn incrby(call: Call<'_>) -> Outcome {
    let by = call.integer(2)?;
    add(call, by).await
}

async fn decrby(call: Call<'_>) -> Outcome {
    let by = call.integer(2)?;
    let Some(by) = by.checked_neg() else {
        return Err(Failure::told("ERR decrement would overflow"));
    };
    add(call, by).await
}

async fn add(mut call: Call<'_>, by: i64) -> Outcome {
    let (key, space) = (call.key(1)?, call.space());
    let held = call.string(&key).await?;
    let number = match &held {
        None => 0,
        Some(held) => {
            let number = held.value.bytes().and_then(integer);
            number.ok_or(Failure::NOT_AN_INTEGER)?
        }
    };
    let Some(sum) = number.checked_add(by) else {
        return Err(Failure::told("ERR increment or decrement would overflow"));
    };
    let value = Buf::copy_from(sum.to_string().as_bytes());
    call.transaction.put(space, &key, value, held.and_then(|held| held.expires));
    Ok(Reply::Integer(sum))
}

async fn incrbyfloat(mut call: Call<'_>) -> Outcome {
    let (key, space) = (call.key(1)?, call.space());
    let held = call.string(&key).await?;
    let number = match &held {
        None => Some(Decimal::Exact(0)),
        Some(held) => held.value.bytes().and_then(Decimal::parse),
    };
    let by = Decimal::parse(call.request.arg(2));
    let (Some(number), Some(by)) = (number, by) else { return Err(Failure::NOT_A_FLOAT) };
    let Some(sum) = number.plus(by) else {
        return Err(Failure::told("ERR increment would produce NaN or Infinity"));
    };
    let text = sum.text();
    let value = Buf::copy_from(text.as_bytes());
    call.transaction.put(space, &key, value.clone(), held.and_then(|held| held.expires));
    Ok(Reply::Bulk(value))
}
