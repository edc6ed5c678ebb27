//! Members of a sorted set from here to there.

use super::sorted_sets::{open, pairs};
use crate::call::{Call, Functions};
use crate::collection::Collection;
use crate::collection::sorted_set::{Bound, Scored};
use crate::failure::{Failure, Outcome};
use crate::number::parse_bound;
use crate::reply::Reply;
use base::Key;

pub(crate) const FUNCTIONS: Functions = &[
    ("zrange", |call| Box::pin(zrange(call, Manner::default(), true))),
    ("zrevrange", |call| {
        Box::pin(zrange(call, Manner { is_from_end: true, ..Manner::default() }, false))
    }),
    ("zrangebyscore", |call| {
        Box::pin(zrange(call, Manner { is_by_score: true, ..Manner::default() }, false))
    }),
    ("zrevrangebyscore", |call| {
        let manner = Manner { is_by_score: true, is_from_end: true, ..Manner::default() };
        Box::pin(zrange(call, manner, false))
    }),
    ("zcount", |call| Box::pin(zcount(call))),
    ("zremrangebyscore", |call| Box::pin(zremrange(call, true))),
    ("zremrangebyrank", |call| Box::pin(zremrange(call, false))),
];

/// How a range is named, and what is wanted of it.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    is_by_score: bool,
    is_from_end: bool,
    has_scores: bool,
    /// How many are passed over, and how many wanted then; all, if below 0.
    limit: Option<(i64, i64)>,
}

impl Manner {
    /// What is said after the range.
    fn parse(mut self, call: &Call<'_>, is_general: bool) -> Result<Self, Failure> {
        let mut at = 4;
        while at < call.request.len() {
            if call.is_word(at, "withscores") {
                self.has_scores = true;
            } else if call.is_word(at, "limit") && at + 2 < call.request.len() {
                self.limit = Some((call.integer(at + 1)?, call.integer(at + 2)?));
                at += 2;
            } else if is_general && call.is_word(at, "rev") {
                self.is_from_end = true;
            } else if is_general && call.is_word(at, "byscore") {
                self.is_by_score = true;
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 1;
        }
        if self.is_by_score {
            return Ok(self);
        }
        if self.limit.is_some_and(|(_, wanted)| wanted != -1) {
            return Err(Failure::told(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        Ok(Self { limit: None, ..self })
    }
}

/// From here to there.
#[derive(Clone, Copy, Debug)]
enum Range {
    /// Numbers of members; from the end, if below 0.
    Ranks(i64, i64),
    Scores(Bound, Bound),
}

impl Range {
    /// The one that two arguments name.
    fn parse(call: &Call<'_>, [first, last]: [usize; 2], by_score: bool) -> Result<Self, Failure> {
        if by_score {
            return Ok(Self::Scores(bound(call, first)?, bound(call, last)?));
        }
        Ok(Self::Ranks(call.integer(first)?, call.integer(last)?))
    }

    /// How many members come before it, and how many before its end, counted from the end of the
    /// set if that is asked for.
    async fn ranks(
        self,
        call: &mut Call<'_>,
        key: &Key,
        set: &mut Collection,
        is_from_end: bool,
    ) -> Result<(u64, u64), Failure> {
        let len = set.len();
        match self {
            Self::Ranks(first, last) => {
                let from_end = |at: i64| len.saturating_sub(at.unsigned_abs());
                let rank = |at: i64| if at < 0 { from_end(at) } else { at.unsigned_abs() };
                // What ends before the set begins is empty.
                let end = match last {
                    last if last < 0 && last.unsigned_abs() > len => 0,
                    last => rank(last).saturating_add(1),
                };
                Ok((rank(first), end.min(len)))
            }
            Self::Scores(min, max) => {
                let nodes = &mut call.nodes(key);
                let first = set.rank_of_bound(nodes, min, false).await?;
                let end = set.rank_of_bound(nodes, max, true).await?;
                Ok(if is_from_end { (len - end, len - first) } else { (first, end) })
            }
        }
    }
}

/// A score, within the range unless it is said that it is not.
fn bound(call: &Call<'_>, at: usize) -> Result<Bound, Failure> {
    let text = call.request.arg(at);
    let (text, is_open) = text.strip_prefix(b"(").map_or((text, false), |rest| (rest, true));
    let score = match text.trim_ascii_start() {
        // Redis reads a bound with strtod: nothing is 0, and blanks ahead do not count.
        [] if text.is_empty() => Some(0.0),
        number => parse_bound(number),
    };
    let score = score.ok_or_else(|| Failure::told("ERR min or max is not a float"))?;
    Ok(Bound { score, is_open })
}

async fn zrange(mut call: Call<'_>, manner: Manner, is_general: bool) -> Outcome {
    let manner = manner.parse(&call, is_general)?;
    // Who counts scores from the end names the greater one first.
    let swaps = manner.is_by_score && manner.is_from_end;
    let range = Range::parse(&call, if swaps { [3, 2] } else { [2, 3] }, manner.is_by_score)?;
    let (key, Some(mut set)) = open(&mut call).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let (first, end) = range.ranks(&mut call, &key, &mut set, manner.is_from_end).await?;
    let (first, end) = limited(first, end, manner.limit);
    let count = end.saturating_sub(first);
    let from = if manner.is_from_end { set.len().saturating_sub(end) } else { first };
    let mut members = if count == 0 {
        Vec::new()
    } else {
        set.members(&mut call.nodes(&key), from, count).await?
    };
    if manner.is_from_end {
        members.reverse();
    }
    Ok(if manner.has_scores { pairs(members) } else { names(members) })
}

fn names(members: Vec<Scored>) -> Reply {
    Reply::Array(members.into_iter().map(|(name, _)| Reply::Bulk(name)).collect())
}

/// What is left of a range when some are passed over, and not all the others wanted.
fn limited(first: u64, end: u64, limit: Option<(i64, i64)>) -> (u64, u64) {
    let Some((skipped, wanted)) = limit else { return (first, end) };
    let Ok(skipped) = u64::try_from(skipped) else { return (first, first) };
    let first = first.saturating_add(skipped);
    match u64::try_from(wanted) {
        Ok(wanted) => (first, end.min(first.saturating_add(wanted))),
        Err(_) => (first, end),
    }
}

async fn zcount(mut call: Call<'_>) -> Outcome {
    let range = Range::parse(&call, [2, 3], true)?;
    let (key, Some(mut set)) = open(&mut call).await? else { return Ok(Reply::Integer(0)) };
    let (first, end) = range.ranks(&mut call, &key, &mut set, false).await?;
    Ok(Reply::Integer(i64::try_from(end.saturating_sub(first)).unwrap_or(i64::MAX)))
}

async fn zremrange(mut call: Call<'_>, is_by_score: bool) -> Outcome {
    let range = Range::parse(&call, [2, 3], is_by_score)?;
    let (key, Some(mut set)) = open(&mut call).await? else { return Ok(Reply::Integer(0)) };
    let (first, end) = range.ranks(&mut call, &key, &mut set, false).await?;
    let count = end.saturating_sub(first);
    if count == 0 {
        return Ok(Reply::Integer(0));
    }
    let members = set.members(&mut call.nodes(&key), first, count).await?;
    for (name, _) in &members {
        let name = name.bytes().unwrap_or_default();
        set.remove_member(&mut call.nodes(&key), name).await?;
    }
    call.save(&key, set).await?;
    Ok(Reply::count(members.len()))
}
