use super::members::{self, Part};
use crate::call::{Call, Functions};
use crate::collection::sorted_set::{Scored, member};
use crate::collection::{Collection, Kind};
use crate::failure::{Failure, Outcome};
use crate::number::parse_score;
use crate::reply::Reply;
use base::Key;

pub(crate) const FUNCTIONS: Functions = &[
    ("zadd", |call| Box::pin(zadd(call))),
    ("zincrby", |call| Box::pin(zincrby(call))),
    ("zrem", |call| Box::pin(zrem(call))),
    ("zscore", |call| Box::pin(zscore(call))),
    ("zmscore", |call| Box::pin(zmscore(call))),
    ("zcard", |call| Box::pin(zcard(call))),
    ("zrank", |call| Box::pin(zrank(call, false))),
    ("zrevrank", |call| Box::pin(zrank(call, true))),
    ("zpopmin", |call| Box::pin(zpop(call, false))),
    ("zpopmax", |call| Box::pin(zpop(call, true))),
    ("zscan", |call| Box::pin(zscan(call))),
    ("zrandmember", |call| Box::pin(zrandmember(call))),
];

/// The sorted set that the first argument names.
pub(super) async fn open(call: &mut Call<'_>) -> Result<(Key, Option<Collection>), Failure> {
    let key = call.key(1)?;
    let set = call.collection(Kind::SortedSet, &key).await?;
    Ok((key, set))
}

/// How members are added.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "words that a client says, or does not")]
struct Adding {
    /// Only what is new, or only what is not.
    new: bool,
    old: bool,
    /// Only where the score becomes greater, or less.
    greater: bool,
    less: bool,
    counts_changed: bool,
    adds_to_score: bool,
}

impl Adding {
    /// The words, and where scores begin.
    fn parse(call: &Call<'_>) -> Result<(Self, usize), Failure> {
        let (mut adding, mut at) = (Self::default(), 2);
        while at < call.request.len() {
            let place = match call.request.arg(at).to_ascii_lowercase().as_slice() {
                b"nx" => &mut adding.new,
                b"xx" => &mut adding.old,
                b"gt" => &mut adding.greater,
                b"lt" => &mut adding.less,
                b"ch" => &mut adding.counts_changed,
                b"incr" => &mut adding.adds_to_score,
                _ => break,
            };
            *place = true;
            at += 1;
        }
        let left = call.request.len() - at;
        if left == 0 || !left.is_multiple_of(2) {
            return Err(Failure::SYNTAX);
        }
        let Self { new, old, greater, less, adds_to_score, .. } = adding;
        let wrong = match () {
            () if new && old => "XX and NX options at the same time are not compatible",
            () if new && (greater || less) || greater && less => {
                "GT, LT, and/or NX options at the same time are not compatible"
            }
            () if adds_to_score && left > 2 => {
                "INCR option supports a single increment-element pair"
            }
            () => return Ok((adding, at)),
        };
        Err(Failure::told(format!("ERR {wrong}")))
    }

    /// The score of a member that had `before`, if it gets `score`.
    fn score(self, before: Option<f64>, score: f64) -> Result<Option<f64>, Failure> {
        let Some(before) = before else { return Ok((!self.old).then_some(score)) };
        if self.new {
            return Ok(None);
        }
        let score = if self.adds_to_score { before + score } else { score };
        if score.is_nan() {
            return Err(Failure::told("ERR resulting score is not a number (NaN)"));
        }
        let is_refused = self.greater && score <= before || self.less && score >= before;
        Ok((!is_refused).then_some(score))
    }
}

async fn zadd(mut call: Call<'_>) -> Outcome {
    let (adding, from) = Adding::parse(&call)?;
    add(&mut call, adding, from).await
}

async fn zincrby(mut call: Call<'_>) -> Outcome {
    let adding = Adding { adds_to_score: true, ..Adding::default() };
    add(&mut call, adding, 2).await
}

/// Adds pairs of scores and members from argument `from` on.
async fn add(call: &mut Call<'_>, adding: Adding, from: usize) -> Outcome {
    let pairs = (from..call.request.len()).step_by(2);
    let score = |at: usize| parse_score(call.request.arg(at)).ok_or(Failure::NOT_A_FLOAT);
    let pairs: Vec<_> = pairs.map(|at| Ok((score(at)?, at + 1))).collect::<Result<_, Failure>>()?;
    let (key, set) = open(call).await?;
    let mut set = set.unwrap_or_else(|| Collection::new(Kind::SortedSet));
    let (mut added, mut changed, mut last) = (0, 0, None);
    for (score, at) in pairs {
        let name = call.request.arg(at);
        let nodes = &mut call.nodes(&key);
        let before = set.score(nodes, name).await?;
        last = adding.score(before, score)?;
        let Some(score) = last else { continue };
        if before != Some(score) {
            set.set_score(nodes, name, score).await?;
            added += i64::from(before.is_none());
            changed += 1;
        }
    }
    if changed > 0 {
        call.save(&key, set).await?;
    }
    Ok(match adding {
        Adding { adds_to_score: true, .. } => last.map_or(Reply::Null, Reply::Double),
        Adding { counts_changed: true, .. } => Reply::Integer(changed),
        _ => Reply::Integer(added),
    })
}

async fn zrem(mut call: Call<'_>) -> Outcome {
    let (key, Some(mut set)) = open(&mut call).await? else { return Ok(Reply::Integer(0)) };
    let mut removed = 0;
    for name in call.request.rest(2) {
        removed += i64::from(set.remove_member(&mut call.nodes(&key), name).await?);
    }
    if removed > 0 {
        call.save(&key, set).await?;
    }
    Ok(Reply::Integer(removed))
}

async fn zscore(mut call: Call<'_>) -> Outcome {
    let (key, Some(mut set)) = open(&mut call).await? else { return Ok(Reply::Null) };
    let name = call.request.arg(2);
    let score = set.score(&mut call.nodes(&key), name).await?;
    Ok(score.map_or(Reply::Null, Reply::Double))
}

async fn zmscore(mut call: Call<'_>) -> Outcome {
    let (key, set) = open(&mut call).await?;
    let mut set = set.unwrap_or_else(|| Collection::new(Kind::SortedSet));
    let mut scores = Vec::new();
    for name in call.request.rest(2) {
        let score = set.score(&mut call.nodes(&key), name).await?;
        scores.push(score.map_or(Reply::Null, Reply::Double));
    }
    Ok(Reply::Array(scores))
}

async fn zcard(mut call: Call<'_>) -> Outcome {
    let (_, set) = open(&mut call).await?;
    let len = set.map_or(0, |set| set.len());
    Ok(Reply::Integer(i64::try_from(len).unwrap_or(i64::MAX)))
}

async fn zrank(mut call: Call<'_>, is_from_end: bool) -> Outcome {
    let (key, Some(mut set)) = open(&mut call).await? else { return Ok(Reply::Null) };
    let name = call.request.arg(2);
    let nodes = &mut call.nodes(&key);
    let Some(score) = set.score(nodes, name).await? else { return Ok(Reply::Null) };
    let before = set.rank_of_member(nodes, name, score).await?;
    let rank = if is_from_end { set.len() - before - 1 } else { before };
    Ok(Reply::Integer(i64::try_from(rank).unwrap_or(i64::MAX)))
}

async fn zpop(mut call: Call<'_>, is_from_end: bool) -> Outcome {
    if call.request.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let has_count = call.request.len() == 3;
    let count = if has_count {
        call.integer(2).ok().and_then(|count| count.try_into().ok())
    } else {
        Some(1)
    };
    let text = "ERR value is out of range, must be positive";
    let count: u64 = count.ok_or_else(|| Failure::told(text))?;
    let (key, Some(mut set)) = open(&mut call).await? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let from = if is_from_end { set.len().saturating_sub(count) } else { 0 };
    let mut popped = set.members(&mut call.nodes(&key), from, count).await?;
    for (name, _) in &popped {
        let name = name.bytes().unwrap_or_default();
        set.remove_member(&mut call.nodes(&key), name).await?;
    }
    if !popped.is_empty() {
        call.save(&key, set).await?;
    }
    if is_from_end {
        popped.reverse();
    }
    if has_count {
        return Ok(pairs(popped));
    }
    let flat =
        popped.into_iter().flat_map(|(name, score)| [Reply::Bulk(name), Reply::Double(score)]);
    Ok(Reply::Array(flat.collect()))
}

/// Members with their scores.
pub(super) fn pairs(members: Vec<Scored>) -> Reply {
    let pair = |(name, score)| (Reply::Bulk(name), Reply::Double(score));
    Reply::Pairs(members.into_iter().map(pair).collect())
}

async fn zscan(call: Call<'_>) -> Outcome {
    let part = |entry: &_| member(entry).map(|(name, score)| (name, Part::Score(score)));
    members::scan(call, Kind::SortedSet, part).await
}

async fn zrandmember(call: Call<'_>) -> Outcome {
    let part = |entry: &_| member(entry).map(|(name, score)| (name, Part::Score(score)));
    members::random(call, Kind::SortedSet, "withscores", part).await
}
