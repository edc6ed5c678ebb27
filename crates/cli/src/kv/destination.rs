//! The database of a Redis server that an import writes.

use super::archive::{Bytes, Content, Entry};
use super::key::shown;
use super::moved::LeftOut;
use crate::output::Failure;
use crate::redis::{self, Line};
use base::checksum::hash64;
use clock::{UnixMillis, unix_now};
use resp_client::{Arg, Connection, Reply, Uri};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Bytes of fields or members in one command; one field can be longer.
const COMMAND_BYTES: usize = 256 << 10;

/// Start of an error that a retry does not remove. Other errors come from the server's state, which
/// may change.
pub(super) const REFUSAL: &str = "ERR ";

/// The database to write.
pub(super) struct Destination<'a> {
    uri: &'a Uri,
    server: &'a Connection<Line>,
    /// Whether entries that the server refuses are skipped instead of being an error.
    skips: bool,
    pub(super) expired: u64,
    pub(super) left_out: LeftOut,
    /// Hashes of the skipped keys; the keys themselves may be many and long.
    pub(super) refused: BTreeSet<u64>,
}

impl<'a> Destination<'a> {
    pub(super) fn new(uri: &'a Uri, server: &'a Connection<Line>, skips: bool) -> Self {
        let left_out = LeftOut::default();
        Self { uri, server, skips, expired: 0, left_out, refused: BTreeSet::new() }
    }

    /// Stores all of `entries`, and replaces the values of their keys. Deletes keys whose entry has
    /// expired.
    pub(super) async fn store(&mut self, entries: &[&Entry<'_>]) -> Result<(), Failure> {
        let mut requests = Vec::new();
        for entry in entries {
            if has_expired(entry) {
                self.expired += u64::from(entry.is_last);
                // Also deletes parts that were stored before it expired.
                requests.push(deletion(entry.key.0));
            } else if entry.is_first || !self.lacks(entry.key.0) {
                requests.extend(commands(entry));
            }
        }
        let mut parts = Vec::new();
        for (words, said) in self.errors(&requests).await? {
            self.refuse(&words[1], &said)?;
            // The server refused a part: delete the stored parts of the key. A string has no parts.
            if *words[0] != *b"SET" {
                parts.push(deletion(&words[1]));
            }
        }
        match self.errors(&parts).await?.first() {
            Some((words, said)) => self.refuse(&words[1], said),
            None => Ok(()),
        }
    }

    /// Returns the requests that the server answered with an error, and the error.
    async fn errors<'r, 'b>(
        &self,
        requests: &'r [Words<'b>],
    ) -> Result<Vec<(&'r Words<'b>, String)>, Failure> {
        let replies = self.ask_all(requests).await?;
        let said = requests.iter().zip(replies).filter_map(|(words, reply)| match reply {
            // For a key that the server cannot hold, both the delete and the store are refused.
            Reply::Error(said) if *words[0] == *b"DEL" && said.starts_with(REFUSAL) => None,
            Reply::Error(said) => Some((words, said)),
            _ => None,
        });
        Ok(said.collect())
    }

    /// Records that the server refuses a part of `key`.
    fn refuse(&mut self, key: &[u8], said: &str) -> Result<(), Failure> {
        if !self.skips || !said.starts_with(REFUSAL) {
            return Err(Failure::Broken(format!(
                "\"{}\" cannot be stored: {said}; all earlier keys of the file are stored, and the \
                 same command continues from there{}",
                shown(key),
                if self.skips { "" } else { ", with --skip without such keys" }
            )));
        }
        if self.refused.insert(hash64(key)) {
            self.left_out.add(key, &format!("({said})"));
        }
        Ok(())
    }

    /// True if `key` was skipped.
    pub(super) fn lacks(&self, key: &[u8]) -> bool {
        self.refused.contains(&hash64(key))
    }

    /// True if all of `keys` exist.
    pub(super) async fn has_all(&self, keys: &[Vec<u8>]) -> Result<bool, Failure> {
        let exists = |key| vec![Cow::Borrowed(&b"EXISTS"[..]), Cow::Borrowed(key)];
        let requests: Vec<_> = keys.iter().map(|key| exists(&key[..])).collect();
        let replies = self.ask_all(&requests).await?;
        Ok(replies.iter().all(|reply| reply.integer() == Some(1)))
    }

    /// Returns the answers to `requests`.
    pub(super) async fn ask_all(&self, requests: &[Words<'_>]) -> Result<Vec<Reply>, Failure> {
        let requests: Vec<Vec<Arg<'_>>> = requests
            .iter()
            .map(|words| words.iter().map(|word| Arg::Bytes(word)).collect())
            .collect();
        let asked = self.server.ask_all(requests.iter().map(|args| &args[..])).await;
        asked.map_err(|error| redis::broken(self.uri, &error))
    }
}

/// True if the entry has expired.
pub(super) fn has_expired(entry: &Entry<'_>) -> bool {
    let UnixMillis(now) = unix_now();
    entry.expires.is_some_and(|expires| expires <= now)
}

/// The words of a command; the second is its key.
pub(super) type Words<'b> = Vec<Cow<'b, [u8]>>;

/// Returns the command that deletes `key`.
fn deletion(key: &[u8]) -> Words<'_> {
    vec![Cow::Borrowed(b"DEL"), Cow::Borrowed(key)]
}

/// Returns the commands that store `entry`. Running them twice has the same effect.
fn commands<'b>(entry: &Entry<'b>) -> Vec<Words<'b>> {
    let Bytes(key) = entry.key;
    let command = |name: &'static str| vec![Cow::Borrowed(name.as_bytes()), Cow::Borrowed(key)];
    let mut commands = Vec::new();
    if entry.is_first && !matches!(entry.content, Content::String(_)) {
        commands.push(deletion(key));
    }
    match &entry.content {
        Content::String(value) => {
            let mut set = command("SET");
            set.push(Cow::Borrowed(value.0));
            commands.push(set);
        }
        Content::Hash(fields) => {
            let pairs = fields.iter().map(|(field, value)| [field.0.into(), value.0.into()]);
            commands.extend(in_parts(&command("HSET"), pairs));
        }
        Content::SortedSet(members) => {
            let pairs = members.iter().map(|(member, score)| {
                // The shortest text that parses to this exact number.
                [Cow::Owned(format!("{score:e}").into_bytes()), member.0.into()]
            });
            commands.extend(in_parts(&command("ZADD"), pairs));
        }
    }
    if let Some(expires) = entry.expires.filter(|_| entry.is_last) {
        let mut expire = command("PEXPIREAT");
        expire.push(Cow::Owned(expires.to_string().into_bytes()));
        commands.push(expire);
    }
    commands
}

/// Returns commands that start with `head` and together contain `pairs`, a limited number each.
fn in_parts<'b>(
    head: &[Cow<'b, [u8]>],
    pairs: impl Iterator<Item = [Cow<'b, [u8]>; 2]>,
) -> Vec<Words<'b>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (head.to_vec(), 0);
    for pair in pairs {
        if bytes > COMMAND_BYTES {
            parts.push(std::mem::replace(&mut part, head.to_vec()));
            bytes = 0;
        }
        bytes += pair.iter().map(|word| word.len()).sum::<usize>();
        part.extend(pair);
    }
    if part.len() > head.len() {
        parts.push(part);
    }
    parts
}
