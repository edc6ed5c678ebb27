//! What is known of a value beside what it is: OBJECT and MEMORY.

use crate::call::{Call, Functions};
use crate::collection::{Collection, Kind};
use crate::failure::{Failure, Outcome};
use crate::number::integer;
use crate::reply::Reply;
use crate::values::{Value, value};

pub(crate) const FUNCTIONS: Functions =
    &[("object", |call| Box::pin(object(call))), ("memory", |call| Box::pin(memory(call)))];

/// The longest string that Redis keeps within what describes it.
const EMBEDDED_BYTES: usize = 44;

/// Entries that are looked at to know how long one is.
const SAMPLES: i64 = 5;

async fn object(call: Call<'_>) -> Outcome {
    if call.word() == "help" {
        return Ok(call.help());
    }
    let (key, space) = (call.key(2)?, call.space());
    let held = value(call.transaction, space, &key).await?;
    call.transaction.count_lookup(held.is_some());
    let Some(held) = held else { return Ok(Reply::Null) };
    match call.word() {
        "encoding" => Ok(Reply::text(encoding(&held))),
        "refcount" => Ok(Reply::Integer(1)),
        "freq" => Err(Failure::told(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        )),
        _ => Err(Failure::told("ERR for how long a key was not touched is not tracked")),
    }
}

/// The name that Redis has for the form of what a key holds. A collection of one record is
/// what it calls a list.
fn encoding(held: &Value) -> &'static str {
    match held {
        Value::String(held) => match held.value.bytes().unwrap_or_default() {
            text if integer(text).is_some() => "int",
            text if text.len() <= EMBEDDED_BYTES => "embstr",
            _ => "raw",
        },
        Value::Collection(collection) if collection.is_one_record() => "listpack",
        Value::Collection(collection) => match collection.kind {
            Kind::Hash => "hashtable",
            Kind::SortedSet => "skiplist",
        },
    }
}

async fn memory(mut call: Call<'_>) -> Outcome {
    if call.word() == "help" {
        return Ok(call.help());
    }
    let samples = match call.request.len() {
        3 => SAMPLES,
        5 if call.is_word(3, "samples") => call.integer(4)?,
        _ => return Err(Failure::SYNTAX),
    };
    let samples = u64::try_from(samples).map_err(|_| Failure::SYNTAX)?;
    let samples = if samples == 0 { u64::MAX } else { samples };
    let (key, space) = (call.key(2)?, call.space());
    let of_key = key.as_bytes().len() as u64;
    if let Some(facts) = call.transaction.look(space, &key).await? {
        return Ok(bytes(of_key + u64::from(facts.len)));
    }
    let Some(mut found) = Collection::open(call.transaction, space, &key).await? else {
        return Ok(Reply::Null);
    };
    let mut all = of_key;
    for tree in &mut found.trees {
        let entries = tree.slice(&mut call.nodes(&key), 0, samples).await?;
        let part = entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
        all += part.saturating_mul(tree.len()) / (entries.len() as u64).max(1);
    }
    Ok(bytes(all))
}

fn bytes(count: u64) -> Reply {
    Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}
