//! Members by name, and by score: two trees with the same members. In the first the value is the
//! score; in the second the key is the score, in bytes that are ordered as scores are, and the
//! name.

use super::node::{Entry, bytes};
use super::{Collection, Nodes, name_of};
use crate::failure::Failure;
use base::Buf;

const SIGN: u64 = 1 << 63;

/// Whether a bound is itself within the range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) score: f64,
    pub(crate) is_open: bool,
}

/// A member and its score.
pub(crate) type Scored = (Buf, f64);

/// The bytes of a score, ordered as scores are.
fn ordered(score: f64) -> u64 {
    // There is one zero.
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn score_of(ordered: u64) -> f64 {
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN })
}

fn place(score: f64, member: &[u8]) -> Buf {
    Buf::copy_from(&[&ordered(score).to_be_bytes()[..], member].concat())
}

/// What an entry of the second tree says.
fn scored(entry: &Entry) -> Option<Scored> {
    let score = u64::from_be_bytes(*bytes(&entry.key).first_chunk()?);
    Some((entry.key.slice(8..entry.key.len()), score_of(score)))
}

/// What an entry of the first tree says.
pub(crate) fn member(entry: &Entry) -> Option<Scored> {
    Some((entry.key.clone(), score(&entry.value)?))
}

fn score(value: &Buf) -> Option<f64> {
    Some(score_of(u64::from_be_bytes(bytes(value).try_into().ok()?)))
}

impl Collection {
    /// The score of a member.
    pub(crate) async fn score(
        &mut self,
        nodes: &mut Nodes<'_>,
        member: &[u8],
    ) -> Result<Option<f64>, Failure> {
        let value = self.trees[0].get(nodes, member).await?;
        value.map(|value| score(&value).ok_or_else(|| nodes.damaged())).transpose()
    }

    /// Gives a member a score.
    pub(crate) async fn set_score(
        &mut self,
        nodes: &mut Nodes<'_>,
        member: &[u8],
        new: f64,
    ) -> Result<(), Failure> {
        let value = Buf::copy_from(&ordered(new).to_be_bytes());
        let entry = Entry { key: name_of(member)?, value };
        if let Some(before) = self.trees[0].insert(nodes, entry).await? {
            let before = score(&before).ok_or_else(|| nodes.damaged())?;
            self.trees[1].remove(nodes, bytes(&place(before, member))).await?;
        }
        let entry = Entry { key: place(new, member), value: Buf::copy_from(&[]) };
        self.trees[1].insert(nodes, entry).await?;
        Ok(())
    }

    /// Removes a member, if it is there.
    pub(crate) async fn remove_member(
        &mut self,
        nodes: &mut Nodes<'_>,
        member: &[u8],
    ) -> Result<bool, Failure> {
        let Some(before) = self.trees[0].remove(nodes, member).await? else { return Ok(false) };
        let before = score(&before).ok_or_else(|| nodes.damaged())?;
        self.trees[1].remove(nodes, bytes(&place(before, member))).await?;
        Ok(true)
    }

    /// How many members have a lesser score than what is within `bound`, if that is the lower one;
    /// how many are within, if it is the upper one.
    pub(crate) async fn rank_of_bound(
        &mut self,
        nodes: &mut Nodes<'_>,
        bound: Bound,
        is_upper: bool,
    ) -> Result<u64, Failure> {
        let score = ordered(bound.score);
        // All members of a score come before the next score.
        let from = if bound.is_open == is_upper { Some(score) } else { score.checked_add(1) };
        match from {
            Some(from) => self.trees[1].rank(nodes, &from.to_be_bytes()).await,
            None => Ok(self.len()),
        }
    }

    /// How many members come before this one, which has this score.
    pub(crate) async fn rank_of_member(
        &mut self,
        nodes: &mut Nodes<'_>,
        member: &[u8],
        score: f64,
    ) -> Result<u64, Failure> {
        self.trees[1].rank(nodes, bytes(&place(score, member))).await
    }

    /// Up to `count` members in the order of scores, from the one that has `rank` before it.
    pub(crate) async fn members(
        &mut self,
        nodes: &mut Nodes<'_>,
        rank: u64,
        count: u64,
    ) -> Result<Vec<Scored>, Failure> {
        let entries = self.trees[1].slice(nodes, rank, count).await?;
        entries.iter().map(|entry| scored(entry).ok_or_else(|| nodes.damaged())).collect()
    }
}
