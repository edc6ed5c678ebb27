use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// The versions of each key that a retrieve may return.
///
/// A version is obsolete after the acknowledgement of a store that was submitted after the end of
/// the version's own store. Concurrent stores of one key may have happened in either order. A
/// delete is a store of a version without a value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct History {
    keys: Vec<KeyHistory>,
    /// All stores from the oldest outstanding one on.
    stores: VecDeque<Store>,
    /// The number of stores removed from the front of `stores`.
    removed: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct KeyHistory {
    /// The number of versions issued, which is the next version.
    issued: u32,
    /// The oldest version that may be current.
    oldest: u32,
    /// The start of the chain of this key's stores, the oldest outstanding one, or `NO_STORE`.
    first: u32,
    /// The chain's end.
    last: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Store {
    key: u32,
    version: u32,
    /// The oldest version outstanding when this store was submitted: the oldest that may be current
    /// once it is acknowledged.
    oldest: u32,
    /// The next store of the same key.
    next: u32,
    has_ended: bool,
}

/// An index beyond the stores of any run.
const NO_STORE: u32 = u32::MAX;

/// A store that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// Identifies the store to [`History::end`].
    pub(crate) store: u32,
    pub(crate) version: u32,
}

impl History {
    /// Returns a history of `keys` keys, all with version 0.
    pub(crate) fn new(keys: u64) -> Self {
        let key = KeyHistory { issued: 1, oldest: 0, first: NO_STORE, last: NO_STORE };
        let keys = usize::try_from(keys).expect("memory holds a few words for each key");
        Self { keys: vec![key; keys], stores: VecDeque::new(), removed: 0 }
    }

    /// Begins a store of the next version of `key`.
    #[inline]
    pub(crate) fn begin(&mut self, key: u32) -> Begun {
        let store = self.removed + u32::try_from(self.stores.len()).expect("below 2^32 in a run");
        let state = &mut self.keys[key as usize];
        let version = state.issued;
        state.issued += 1;
        let mut oldest = version;
        if state.first == NO_STORE {
            state.first = store;
        } else {
            oldest = self.stores[(state.first - self.removed) as usize].version;
            self.stores[(state.last - self.removed) as usize].next = store;
        }
        state.last = store;
        self.stores.push_back(Store { key, version, oldest, next: NO_STORE, has_ended: false });
        Begun { store, version }
    }

    /// Ends a store. A failed store may have happened or not.
    #[inline]
    pub(crate) fn end(&mut self, store: u32, has_succeeded: bool) {
        let ended = &mut self.stores[(store - self.removed) as usize];
        assert!(!ended.has_ended, "a store ends once");
        ended.has_ended = true;
        let Store { key, oldest, .. } = *ended;
        let state = &mut self.keys[key as usize];
        if has_succeeded {
            state.oldest = state.oldest.max(oldest);
        }
        while state.first != NO_STORE {
            let first = &self.stores[(state.first - self.removed) as usize];
            if !first.has_ended {
                break;
            }
            state.first = first.next;
        }
        while self.stores.front().is_some_and(|front| front.has_ended) {
            self.stores.pop_front();
            self.removed += 1;
        }
    }

    /// Returns the oldest version that a retrieve submitted now may return.
    #[inline]
    pub(crate) fn oldest(&self, key: u32) -> u32 {
        self.keys[key as usize].oldest
    }

    /// Returns the versions that a retrieve of `key` completing now may return. `oldest` was the
    /// oldest one at its submission.
    #[inline]
    pub(crate) fn versions(&self, key: u32, oldest: u32) -> RangeInclusive<u32> {
        oldest..=self.keys[key as usize].issued - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A store in the model: its start and end.
    #[derive(Clone, Copy)]
    struct Seen {
        key: u32,
        store: u32,
        version: u32,
        began: u32,
        ended: Option<(u32, bool)>,
    }

    /// Finds the oldest version that no acknowledged later store has overwritten, by trying all
    /// pairs.
    fn oldest(seen: &[Seen], key: u32) -> u32 {
        let acknowledged =
            |store: &&Seen| store.key == key && matches!(store.ended, Some((_, true)));
        let is_out_of_date = |version: &Seen| {
            version.ended.is_some_and(|(ended, _)| {
                seen.iter().filter(acknowledged).any(|later| later.began > ended)
            })
        };
        let of_key = seen.iter().filter(|version| version.key == key);
        of_key
            .filter(|version| !is_out_of_date(version))
            .map(|version| version.version)
            .min()
            .unwrap()
    }

    #[test]
    fn the_oldest_version_is_that_of_the_definition() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (keys, depth) = (1 + rng.below(4), 1 + rng.below(12));
            let mut history = History::new(keys);
            let first = |key| Seen { key, store: 0, version: 0, began: 0, ended: Some((0, true)) };
            let mut seen: Vec<Seen> = (0..4).map(first).collect();
            for step in 1..400 {
                let outstanding: Vec<usize> =
                    (0..seen.len()).filter(|&at| seen[at].ended.is_none()).collect();
                if (outstanding.len() as u64) < depth && rng.below(2) == 0 {
                    let key = u32::try_from(rng.below(keys)).unwrap();
                    let Begun { store, version } = history.begin(key);
                    seen.push(Seen { key, store, version, began: step, ended: None });
                } else if !outstanding.is_empty() {
                    let chosen = usize::try_from(rng.below(outstanding.len() as u64)).unwrap();
                    let ending = &mut seen[outstanding[chosen]];
                    ending.ended = Some((step, rng.below(10) > 0));
                    history.end(ending.store, ending.ended.unwrap().1);
                }
                for key in 0..u32::try_from(keys).unwrap() {
                    assert_eq!(history.oldest(key), oldest(&seen, key), "seed {seed}, step {step}");
                }
            }
        }
    }

    #[test]
    fn versions_are_counted_for_each_key() {
        let mut history = History::new(2);
        let [a, b, c] = [0, 0, 1].map(|key| history.begin(key));
        assert_eq!((a.version, b.version, c.version), (1, 2, 1));
        assert_eq!(history.versions(0, 0), 0..=2);
        history.end(b.store, true);
        history.end(a.store, true);
        assert_eq!(history.oldest(0), 1, "both were outstanding together");
        let d = history.begin(0);
        assert_eq!((d.version, history.oldest(0)), (3, 1));
        history.end(d.store, true);
        assert_eq!(history.versions(0, history.oldest(0)), 3..=3);
    }

    #[test]
    fn memory_is_for_what_is_outstanding() {
        let mut history = History::new(1);
        for _ in 0..10_000 {
            let begun = [0; 8].map(|key| history.begin(key));
            begun.iter().rev().for_each(|begun| history.end(begun.store, true));
            assert!(history.stores.is_empty());
        }
        assert!(history.stores.capacity() < 64);
    }
}
