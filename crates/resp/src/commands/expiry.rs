use super::options::{Unit, date_of, now};
use crate::call::{Call, Functions};
use crate::failure::{Failure, Outcome};
use crate::reply::Reply;
use crate::values::{Value, remove, value};
use base::Key;
use clock::UnixMillis;

pub(crate) const FUNCTIONS: Functions = &[
    ("expire", |call| Box::pin(expire(call, Unit::EX))),
    ("pexpire", |call| Box::pin(expire(call, Unit::PX))),
    ("expireat", |call| Box::pin(expire(call, Unit::EXAT))),
    ("pexpireat", |call| Box::pin(expire(call, Unit::PXAT))),
    ("ttl", |call| Box::pin(tell(call, Unit::EX))),
    ("pttl", |call| Box::pin(tell(call, Unit::PX))),
    ("expiretime", |call| Box::pin(tell(call, Unit::EXAT))),
    ("pexpiretime", |call| Box::pin(tell(call, Unit::PXAT))),
    ("persist", |call| Box::pin(persist(call))),
];

/// Under which conditions a date is set.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "words that a client says, or does not")]
struct Conditions {
    has_none: bool,
    has_one: bool,
    is_later: bool,
    is_earlier: bool,
}

impl Conditions {
    fn parse(call: &Call<'_>) -> Result<Self, Failure> {
        let mut conditions = Self::default();
        for at in 3..call.request.len() {
            let place = match call.request.arg(at).to_ascii_lowercase().as_slice() {
                b"nx" => &mut conditions.has_none,
                b"xx" => &mut conditions.has_one,
                b"gt" => &mut conditions.is_later,
                b"lt" => &mut conditions.is_earlier,
                _ => {
                    let asked = call.request.arg(at);
                    return Err(Failure::quoting("ERR Unsupported option ", asked, ""));
                }
            };
            *place = true;
        }
        let Self { has_none, has_one, is_later, is_earlier } = conditions;
        if has_none && (has_one || is_later || is_earlier) {
            return Err(Failure::told(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if is_later && is_earlier {
            return Err(Failure::told("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether they let this date take the place of the present one. No date is later than all.
    fn let_pass(self, new: i64, present: Option<UnixMillis>) -> bool {
        let present = present.map(|date| i64::try_from(date.0).unwrap_or(i64::MAX));
        let is_refused = (self.has_none && present.is_some())
            || (self.has_one && present.is_none())
            || (self.is_later && present.is_none_or(|present| new <= present))
            || (self.is_earlier && present.is_some_and(|present| new >= present));
        !is_refused
    }
}

async fn expire(mut call: Call<'_>, unit: Unit) -> Outcome {
    let conditions = Conditions::parse(&call)?;
    let number = call.integer(2)?;
    let factor = if unit.is_seconds { 1_000 } else { 1 };
    let from = if unit.is_from_now { now() } else { 0 };
    let millis = number.checked_mul(factor).and_then(|millis| millis.checked_add(from));
    let millis = millis.ok_or_else(|| call.invalid_expiry())?;
    let (key, space) = (call.key(1)?, call.space());
    let Some(present) = call.date(&key).await? else { return Ok(Reply::flag(false)) };
    if !conditions.let_pass(millis, present) {
        return Ok(Reply::flag(false));
    }
    if millis <= now() {
        remove(call.transaction, space, &key).await?;
    } else {
        set_date(call, &key, Some(date_of(millis))).await?;
    }
    Ok(Reply::flag(true))
}

/// Gives what `key` holds another date.
async fn set_date(call: Call<'_>, key: &Key, expires: Option<UnixMillis>) -> Result<(), Failure> {
    let space = call.space();
    match value(call.transaction, space, key).await?.ok_or(Failure::Overtaken)? {
        Value::String(held) => call.transaction.put(space, key, held.value, expires),
        Value::Collection(mut collection) => {
            collection.expires = expires;
            collection.save(call.transaction, space, key).await?;
        }
    }
    Ok(())
}

async fn tell(mut call: Call<'_>, unit: Unit) -> Outcome {
    let key = call.key(1)?;
    let Some(expires) = call.date(&key).await? else { return Ok(Reply::Integer(-2)) };
    let Some(date) = expires else { return Ok(Reply::Integer(-1)) };
    let from = if unit.is_from_now { now() } else { 0 };
    let millis = i64::try_from(date.0).unwrap_or(i64::MAX).saturating_sub(from).max(0);
    let rounded = millis.saturating_add(500) / 1_000;
    Ok(Reply::Integer(if unit.is_seconds { rounded } else { millis }))
}

async fn persist(mut call: Call<'_>) -> Outcome {
    let key = call.key(1)?;
    if call.date(&key).await?.flatten().is_none() {
        return Ok(Reply::flag(false));
    }
    set_date(call, &key, None).await?;
    Ok(Reply::flag(true))
}
