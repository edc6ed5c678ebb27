use crate::asked::Asked;
use crate::history::{Begun, History};
use crate::mismatch::described;
use crate::outcome::{Finding, Verdict};
use crate::script::Script;
use crate::value::{Payload, ValueGenerator, checksum_of};
use base::Buf;
use controller::Completion;
use spec::{ListReader, Status};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Generates values, and checks returned ones.
#[derive(Debug)]
pub(crate) struct Judge {
    values: ValueGenerator,
    /// Present only if the run retrieves keys that it also stores.
    history: Option<History>,
}

impl Judge {
    /// Returns a judge of the values of `seed`. A history records the versions of `keys` keys.
    pub(crate) fn new(seed: u64, payload: Payload, keys: Option<u64>) -> Self {
        Self { values: ValueGenerator::new(seed, payload), history: keys.map(History::new) }
    }

    /// Replaces the history.
    pub(crate) fn with_history(self, history: Option<History>) -> Self {
        Self { history: history.or(self.history), ..self }
    }

    /// Returns the history of versions, if there is one.
    pub(crate) fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// Begins a read of key number `key`. Returns the oldest version that it may find.
    #[inline]
    pub(crate) fn oldest(&self, key: u32) -> u32 {
        self.history.as_ref().map_or(0, |history| history.oldest(key))
    }

    /// Begins a store or a delete. Returns its version, if a history counts versions.
    #[inline]
    pub(crate) fn begin(&mut self, key: u32) -> Option<Begun> {
        self.history.as_mut().map(|history| history.begin(key))
    }

    /// Ends the store or delete that [`Self::begin`] identified.
    #[inline]
    pub(crate) fn end(&mut self, store: u32, has_succeeded: bool) {
        if let Some(history) = &mut self.history {
            history.end(store, has_succeeded);
        }
    }

    /// Returns the value that a store writes.
    #[inline]
    pub(crate) fn value(&self, key: u32, version: u32, len: u32) -> Buf {
        self.values.value(key.into(), version, len)
    }

    /// Judges a completed store, retrieve, delete or exist.
    #[inline]
    pub(crate) fn judge(&self, script: &Script, asked: &Asked, completion: &Completion) -> Verdict {
        match asked {
            Asked::Retrieve { key, oldest } => self.retrieved(script, *key, *oldest, completion),
            Asked::Store { key, version, .. } | Asked::Reset { key, version } => {
                let finding = by_status(completion.status);
                Verdict { checksum: self.tag_of(script, *key, *version), finding }
            }
            Asked::Delete { key, version, oldest, .. } => {
                let others = || self.versions(*key, *oldest).filter(|found| found != version);
                let finding = by_status_or_miss(completion.status, || {
                    others().any(|version| script.value_bytes(*key, version).is_none())
                });
                Verdict { checksum: self.tag_of(script, *key, *version), finding }
            }
            Asked::Exist { key, oldest } => self.found(script, *key, *oldest, completion.status),
            Asked::List { .. } => {
                let finding = by_status(completion.status);
                Verdict { checksum: completion.data.checksum(), finding }
            }
        }
    }

    #[inline]
    fn retrieved(
        &self,
        script: &Script,
        key: u32,
        oldest: u32,
        completion: &Completion,
    ) -> Verdict {
        let checksum = checksum_of(&completion.data);
        let len = completion.data.len();
        // Only values of a variable length report their length.
        let is_whole = !script.has_keys() || completion.result == u64::from(len);
        let is_right =
            || is_whole && checksum.is_ok_and(|tag| self.may_be(script, key, oldest, len, tag));
        let finding = match completion.status.is_success() {
            true if is_right() => Finding::Right,
            true => Finding::Wrong,
            false => by_status_or_miss(completion.status, || {
                self.versions(key, oldest).any(|version| script.value_bytes(key, version).is_none())
            }),
        };
        Verdict { checksum: checksum.unwrap_or_else(|_| completion.data.checksum()), finding }
    }

    /// True when a value of `len` bytes with `tag` is that of a possible version.
    #[inline]
    fn may_be(&self, script: &Script, key: u32, oldest: u32, len: u32, tag: u64) -> bool {
        self.versions(key, oldest).rev().any(|version| {
            self.values.tag(key.into(), version, len) == tag
                && script.value_bytes(key, version) == Some(len)
        })
    }

    fn found(&self, script: &Script, key: u32, oldest: u32, status: Status) -> Verdict {
        let may_be = |is_there: bool| {
            self.versions(key, oldest)
                .any(|version| script.value_bytes(key, version).is_some() == is_there)
        };
        let finding = match status.is_success() {
            true if may_be(true) => Finding::Right,
            true => Finding::Wrong,
            false => by_status_or_miss(status, || may_be(false)),
        };
        Verdict { checksum: self.tag_of(script, key, oldest), finding }
    }

    /// What a command on `key` may find that completes now, in words.
    pub(crate) fn expected(&self, script: &Script, key: u32, oldest: u32) -> String {
        let versions = self.versions(key, oldest);
        let (first, last) = (*versions.start(), *versions.end());
        let value = match script.value_bytes(key, last) {
            Some(len) => described(len, self.values.tag(key.into(), last, len)),
            None => "no value".to_owned(),
        };
        if first == last {
            format!("version {last}, {value}")
        } else {
            format!("a version from {first} to {last}, which is {value}")
        }
    }

    /// The versions of a key that a command may find that completes now, when `oldest` was the
    /// oldest as it was submitted.
    #[inline]
    fn versions(&self, key: u32, oldest: u32) -> RangeInclusive<u32> {
        self.history.as_ref().map_or(0..=0, |history| history.versions(key, oldest))
    }

    /// Returns the word that identifies key and version in the digest: the tag of the value, or for
    /// a missing key that of an 8-byte value.
    #[inline]
    fn tag_of(&self, script: &Script, key: u32, version: u32) -> u64 {
        let len = script.value_bytes(key, version).unwrap_or(u64::BITS / 8);
        self.values.tag(key.into(), version, len)
    }
}

#[inline]
fn by_status(status: Status) -> Finding {
    if status.is_success() { Finding::Right } else { Finding::Failed(status) }
}

/// As [`by_status`], but a missing key is right if it `may_be_missing`.
#[inline]
fn by_status_or_miss(status: Status, may_be_missing: impl FnOnce() -> bool) -> Finding {
    match by_status(status) {
        Finding::Failed(Status::KEY_DOES_NOT_EXIST) if may_be_missing() => Finding::Miss,
        finding => finding,
    }
}

/// Returns the key numbers in a list from key number `start` on, in its order. `None` for an
/// invalid list. A valid one has at most `count` different keys of the run, the first of them
/// `start`, which existed throughout.
pub(crate) fn listed(script: &Script, start: u32, count: u32, list: &Buf) -> Option<Vec<u32>> {
    let reader = ListReader::new(list.bytes()?).ok()?;
    let numbers: Option<Vec<u32>> =
        reader.map(|key| script.number(key.ok()?)).take(count as usize + 1).collect();
    let numbers = numbers.filter(|numbers| numbers.len() <= count as usize)?;
    let distinct: BTreeSet<u32> = numbers.iter().copied().collect();
    (numbers.first() == Some(&start) && distinct.len() == numbers.len()).then_some(numbers)
}
