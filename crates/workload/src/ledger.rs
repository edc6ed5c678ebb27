use smallvec::{SmallVec, smallvec};

/// The possible content of each key or block, as far as the host can know. A device that lost its
/// power is judged by it.
///
/// A completed store holds until a store that was submitted later is acknowledged. A store without
/// a completion may have happened or not.
#[derive(Debug)]
pub(crate) struct Ledger {
    keys: Vec<SmallVec<[Candidate; 1]>>,
    /// Submissions and completions so far.
    events: u64,
}

/// The content of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Absent,
    /// The value of this version.
    Version(u32),
}

/// A store or a delete that may be the last one.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    content: Content,
    /// The event of its submission.
    began: u64,
    /// The event of its completion; [`OUTSTANDING`] without one.
    ended: u64,
}

const OUTSTANDING: u64 = u64::MAX;

/// The result of a store or a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Acknowledged,
    /// It changed nothing.
    Refused,
    /// It may have changed something.
    Unknown,
}

impl Ledger {
    /// Returns a ledger of `keys` keys that all hold `content`. Keys added later start empty.
    pub(crate) fn new(keys: u64, content: Content) -> Self {
        Self { keys: (0..keys).map(|_| holding(content)).collect(), events: 0 }
    }

    /// Begins a store or delete of `key`. Returns what identifies it to [`Self::end`].
    pub(crate) fn begin(&mut self, key: u32, content: Content) -> u64 {
        self.events += 1;
        let (began, key) = (self.events, key as usize);
        while self.keys.len() <= key {
            self.keys.push(holding(Content::Absent));
        }
        self.keys[key].push(Candidate { content, began, ended: OUTSTANDING });
        began
    }

    /// Ends a store or delete with its completion.
    pub(crate) fn end(&mut self, key: u32, began: u64, end: End) {
        self.events += 1;
        let candidates = &mut self.keys[key as usize];
        let at = candidates.iter().position(|candidate| candidate.began == began);
        let at = at.expect("a change ends once");
        match end {
            End::Acknowledged => {
                candidates[at].ended = self.events;
                candidates.retain(|other| other.ended > began);
            }
            End::Refused => drop(candidates.remove(at)),
            End::Unknown => {}
        }
    }

    /// Returns the number of keys that exist or may exist.
    pub(crate) fn keys(&self) -> u32 {
        u32::try_from(self.keys.len()).expect("a run has fewer than 2^32 keys")
    }

    /// Returns the possible contents of `key`.
    pub(crate) fn contents(&self, key: u32) -> impl Iterator<Item = Content> + Clone + '_ {
        self.keys[key as usize].iter().map(|candidate| candidate.content)
    }

    /// Returns the number of stores and deletes without a completion.
    pub(crate) fn outstanding(&self) -> u64 {
        let all = self.keys.iter().flatten();
        all.filter(|candidate| candidate.ended == OUTSTANDING).count() as u64
    }
}

fn holding(content: Content) -> SmallVec<[Candidate; 1]> {
    smallvec![Candidate { content, began: 0, ended: 0 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(ledger: &Ledger) -> Vec<Content> {
        ledger.contents(0).collect()
    }

    #[test]
    fn an_acknowledged_store_replaces_what_was_acknowledged_before_its_submission() {
        let mut ledger = Ledger::new(1, Content::Version(0));
        let first = ledger.begin(0, Content::Version(1));
        let second = ledger.begin(0, Content::Absent);
        assert_eq!(contents(&ledger), [Content::Version(0), Content::Version(1), Content::Absent]);
        ledger.end(0, second, End::Acknowledged);
        assert_eq!(contents(&ledger), [Content::Version(1), Content::Absent], "either may be last");
        ledger.end(0, first, End::Acknowledged);
        assert_eq!(contents(&ledger), [Content::Version(1), Content::Absent], "they overlapped");
        let third = ledger.begin(0, Content::Version(3));
        ledger.end(0, third, End::Acknowledged);
        assert_eq!(contents(&ledger), [Content::Version(3)]);
        assert_eq!(ledger.outstanding(), 0);
    }

    #[test]
    fn a_refused_store_changed_nothing_and_an_unanswered_one_may_have_happened() {
        let mut ledger = Ledger::new(0, Content::Absent);
        let refused = ledger.begin(0, Content::Version(1));
        ledger.end(0, refused, End::Refused);
        assert_eq!(contents(&ledger), [Content::Absent]);
        let failed = ledger.begin(0, Content::Version(2));
        ledger.end(0, failed, End::Unknown);
        ledger.begin(0, Content::Version(3));
        let last = ledger.begin(0, Content::Version(4));
        ledger.end(0, last, End::Acknowledged);
        assert_eq!(
            contents(&ledger),
            [Content::Version(2), Content::Version(3), Content::Version(4)],
            "a store without an answer may still be on its way"
        );
        assert_eq!(ledger.outstanding(), 2);
    }
}
