//! Reads a database of a Redis server for an archive.

use super::archive::{Bytes, Content, Entry, Writer};
use super::key::shown;
use super::moved::LeftOut;
use crate::output::Failure;
use crate::redis::{self, Line};
use clock::{UnixMillis, unix_now};
use resp_client::{Arg, Connection, Reply, Uri};
use std::io;

/// Keys per SCAN request.
const KEYS: &str = "256";
/// Fields or members per request.
const PARTS: &str = "128";
/// Collections whose first page is requested at once.
const COLLECTIONS: usize = 16;
/// Bytes of fields or members in one entry; one more of them can be longer.
const ENTRY_BYTES: usize = 1 << 20;
/// Bytes of strings requested at once; one string can be longer.
const STRING_BYTES: u64 = 4 << 20;

/// Types that an archive supports besides strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hash,
    SortedSet,
}

/// A key whose value is still to be read.
struct Found {
    key: Vec<u8>,
    expires: Option<u64>,
}

/// The database to read.
pub(super) struct Source<'a> {
    uri: &'a Uri,
    server: &'a Connection<Line>,
    /// Whether keys of unsupported types are skipped instead of being an error.
    skips: bool,
    /// Whether the server supports PEXPIRETIME, which is new in Redis 7.0.
    knows_dates: bool,
    pub(super) left_out: LeftOut,
}

impl<'a> Source<'a> {
    pub(super) fn new(uri: &'a Uri, server: &'a Connection<Line>, skips: bool) -> Self {
        Self { uri, server, skips, knows_dates: true, left_out: LeftOut::default() }
    }

    /// Returns the number of keys.
    pub(super) async fn size(&self) -> Result<u64, Failure> {
        let size = self.ask(&["DBSIZE".into()]).await?.integer();
        let size = size.and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| self.strange("DBSIZE"))
    }

    /// Writes the values of the keys that a listing returns at `cursor`. Returns the next cursor,
    /// or 0 at the end.
    pub(super) async fn step(&mut self, cursor: u64, into: &mut Writer) -> Result<u64, Failure> {
        let at = cursor.to_string();
        let args = ["SCAN", &at, "COUNT", KEYS].map(Arg::from);
        let (next, keys) = self.page(self.ask(&args).await?)?;
        let mut keys: Vec<Vec<u8>> = bulks(&keys).map(<[u8]>::to_vec).collect();
        while !keys.is_empty() {
            keys = self.read(keys, into).await?;
        }
        Ok(next)
    }

    /// Writes the values of `keys`. Returns the keys whose type changed during the read.
    async fn read(
        &mut self,
        keys: Vec<Vec<u8>>,
        into: &mut Writer,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let (mut strings, mut collections) = (Vec::new(), Vec::new());
        let facts = self.facts(&keys).await?;
        for (key, (kind, expires, len)) in keys.into_iter().zip(facts) {
            let found = Found { key, expires };
            match &kind[..] {
                "string" => strings.push((found, len)),
                "hash" => collections.push((found, Kind::Hash)),
                "zset" => collections.push((found, Kind::SortedSet)),
                // The key no longer exists.
                "none" => {}
                other if self.skips => self.left_out.add(&found.key, &format!("is a {other}")),
                other => {
                    return Err(Failure::Broken(format!(
                        "\"{}\" is a {other}, and strings, hashes and sorted sets go into an \
                         archive; --skip leaves others out and counts them",
                        shown(&found.key)
                    )));
                }
            }
        }
        let mut again = Vec::new();
        let mut rest = &strings[..];
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|(_, len)| {
                bytes += len;
                bytes <= STRING_BYTES
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            self.strings(now, into, &mut again).await?;
            rest = later;
        }
        for some in collections.chunks(COLLECTIONS) {
            self.collections(some, into, &mut again).await?;
        }
        Ok(again)
    }

    /// Returns for each key its type, its expiry, and its length if it is a string.
    async fn facts(
        &mut self,
        keys: &[Vec<u8>],
    ) -> Result<Vec<(String, Option<u64>, u64)>, Failure> {
        loop {
            let date = if self.knows_dates { "PEXPIRETIME" } else { "PTTL" };
            let requests: Vec<[Arg<'_>; 2]> = keys
                .iter()
                .flat_map(|key| ["TYPE", date, "STRLEN"].map(|name| [name.into(), key[..].into()]))
                .collect();
            let replies = self.ask_all(&requests).await?;
            let is_unknown = |reply: &Reply| {
                reply.error().is_some_and(|text| text.starts_with("ERR unknown command"))
            };
            if self.knows_dates && replies.iter().skip(1).step_by(3).any(is_unknown) {
                self.knows_dates = false;
                continue;
            }
            let facts = replies.chunks(3).map(|of_key| match of_key {
                [Reply::Status(kind), Reply::Integer(date), len] => {
                    let len = len.integer().and_then(|len| u64::try_from(len).ok());
                    Ok((kind.clone(), self.date(*date), len.unwrap_or(0)))
                }
                _ => Err(self.refused(of_key)),
            });
            return facts.collect();
        }
    }

    /// Parses the expiry of a key from the server's answer. A negative number: no expiry, or no
    /// key.
    fn date(&self, answer: i64) -> Option<u64> {
        let millis = u64::try_from(answer).ok()?;
        let UnixMillis(now) = unix_now();
        Some(if self.knows_dates { millis } else { now + millis })
    }

    async fn strings(
        &self,
        strings: &[(Found, u64)],
        into: &mut Writer,
        again: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let requests: Vec<[Arg<'_>; 2]> =
            strings.iter().map(|(found, _)| ["GET".into(), found.key[..].into()]).collect();
        let replies = self.ask_all(&requests).await?;
        for ((found, _), reply) in strings.iter().zip(replies) {
            match &reply {
                Reply::Bulk(value) => {
                    let value = Bytes(value.bytes().unwrap_or_default());
                    let entry = found.entry((true, true), Content::String(value));
                    into.entry(entry).map_err(|error| unwritable(&error))?;
                }
                Reply::Null => {}
                other if is_other_type(other) => again.push(found.key.clone()),
                other => return Err(self.refused(std::slice::from_ref(other))),
            }
        }
        Ok(())
    }

    async fn collections(
        &self,
        collections: &[(Found, Kind)],
        into: &mut Writer,
        again: &mut Vec<Vec<u8>>,
    ) -> Result<(), Failure> {
        let requests: Vec<_> =
            collections.iter().map(|(found, kind)| kind.scan(&found.key, "0")).collect();
        let replies = self.ask_all(&requests).await?;
        for ((found, kind), reply) in collections.iter().zip(replies) {
            if is_other_type(&reply) {
                again.push(found.key.clone());
                continue;
            }
            let (mut next, mut parts) = self.page(reply)?;
            let mut is_first = true;
            loop {
                // A key that no longer exists has no parts.
                if parts.is_empty() && is_first && next == 0 {
                    break;
                }
                let pieces = pieces(&parts);
                for (at, piece) in pieces.iter().enumerate() {
                    let content = kind.content(piece).ok_or_else(|| self.strange(kind.name()))?;
                    let is_last = next == 0 && at + 1 == pieces.len();
                    let entry = found.entry((is_first, is_last), content);
                    into.entry(entry).map_err(|error| unwritable(&error))?;
                    is_first = false;
                }
                if next == 0 {
                    break;
                }
                let reply = self.ask(&kind.scan(&found.key, &next.to_string())).await?;
                (next, parts) = self.page(reply)?;
            }
        }
        Ok(())
    }

    /// Parses a cursor and the elements found.
    fn page(&self, reply: Reply) -> Result<(u64, Vec<Reply>), Failure> {
        if let Reply::Error(_) = reply {
            return Err(self.refused(&[reply]));
        }
        let strange = || self.strange("SCAN");
        let Reply::Array(members) = reply else { return Err(strange()) };
        let Ok([cursor, found]) = <[Reply; 2]>::try_from(members) else { return Err(strange()) };
        let cursor = cursor.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok()?.parse().ok());
        match (cursor, found) {
            (Some(cursor), Reply::Array(found)) => Ok((cursor, found)),
            _ => Err(strange()),
        }
    }

    async fn ask(&self, args: &[Arg<'_>]) -> Result<Reply, Failure> {
        self.server.ask(args).await.map_err(|error| redis::broken(self.uri, &error))
    }

    async fn ask_all<'b, const N: usize>(
        &self,
        requests: &'b [[Arg<'b>; N]],
    ) -> Result<Vec<Reply>, Failure> {
        let requests = requests.iter().map(|args| &args[..]);
        self.server.ask_all(requests).await.map_err(|error| redis::broken(self.uri, &error))
    }

    /// Returns the failure for `replies` with an error or an impossible reply.
    fn refused(&self, replies: &[Reply]) -> Failure {
        match replies.iter().find_map(Reply::error) {
            Some(said) => Failure::Broken(format!("{}: {said}", self.uri.place)),
            None => self.strange("TYPE"),
        }
    }

    fn strange(&self, command: &str) -> Failure {
        Failure::Broken(format!(
            "{}: the server's answer to {command} is none that there can be",
            self.uri.place
        ))
    }
}

impl Found {
    fn entry<'b>(&'b self, (is_first, is_last): (bool, bool), content: Content<'b>) -> Entry<'b> {
        Entry { key: Bytes(&self.key), expires: self.expires, is_first, is_last, content }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Hash => "HSCAN",
            Self::SortedSet => "ZSCAN",
        }
    }

    fn scan<'b>(self, key: &'b [u8], cursor: &'b str) -> [Arg<'b>; 5] {
        [self.name().into(), key.into(), cursor.into(), "COUNT".into(), PARTS.into()]
    }

    /// Splits `parts` into names and their values.
    fn content(self, parts: &[Reply]) -> Option<Content<'_>> {
        let (pairs, rest) = parts.as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let pairs = pairs.iter().map(|[name, value]| Some((Bytes(name.bytes()?), value.bytes()?)));
        match self {
            Self::Hash => {
                let fields = pairs.map(|pair| pair.map(|(field, value)| (field, Bytes(value))));
                Some(Content::Hash(fields.collect::<Option<_>>()?))
            }
            Self::SortedSet => {
                let members = pairs.map(|pair| {
                    let (member, score) = pair?;
                    Some((member, std::str::from_utf8(score).ok()?.parse().ok()?))
                });
                Some(Content::SortedSet(members.collect::<Option<_>>()?))
            }
        }
    }
}

/// Splits `parts` into groups of pairs, each for one entry.
fn pieces(mut parts: &[Reply]) -> Vec<&[Reply]> {
    let mut pieces = Vec::new();
    loop {
        let mut bytes = 0;
        let fits = parts.chunks(2).take_while(|pair| {
            let fits = bytes <= ENTRY_BYTES;
            bytes += bulks(pair).map(<[u8]>::len).sum::<usize>();
            fits
        });
        let (piece, rest) = parts.split_at((2 * fits.count()).min(parts.len()));
        pieces.push(piece);
        parts = rest;
        if parts.is_empty() {
            return pieces;
        }
    }
}

fn bulks(replies: &[Reply]) -> impl Iterator<Item = &[u8]> {
    replies.iter().filter_map(Reply::bytes)
}

fn is_other_type(reply: &Reply) -> bool {
    reply.error().is_some_and(|text| text.starts_with("WRONGTYPE"))
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::Broken(format!("the archive cannot be written: {error}"))
}
