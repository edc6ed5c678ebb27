//! What each key may hold: what was acknowledged last, or anything that was under way since.

use base::Rng;

/// Bytes of the tag at the start of each value.
const TAG_BYTES: usize = 8;

/// A key's value by its tag; nothing where the key does not exist.
pub(crate) type Tag = Option<u64>;

/// What may be on a drive that can be killed at any instant.
pub(crate) struct Oracle {
    keys: Vec<Vec<Write>>,
    /// Counts beginnings and ends.
    now: u64,
}

/// A write that may be what a key has.
#[derive(Clone, Copy, Debug)]
struct Write {
    tag: Tag,
    began: u64,
    /// When it was acknowledged, if it was.
    ended: Option<u64>,
}

impl Oracle {
    /// An empty drive.
    pub(crate) fn new(keys: usize) -> Self {
        Self { keys: vec![vec![Write { tag: None, began: 0, ended: Some(0) }]; keys], now: 0 }
    }

    pub(crate) fn keys(&self) -> usize {
        self.keys.len()
    }

    /// A write of `key` begins. Returns by what it is known.
    pub(crate) fn begin(&mut self, key: usize, tag: Tag) -> u64 {
        self.now += 1;
        self.keys[key].push(Write { tag, began: self.now, ended: None });
        self.now
    }

    /// It is acknowledged: what was acknowledged before it began is no more.
    pub(crate) fn end(&mut self, key: usize, began: u64) {
        self.now += 1;
        let now = self.now;
        let writes = &mut self.keys[key];
        writes.retain(|write| write.ended.is_none_or(|ended| ended > began));
        let write = writes.iter_mut().find(|write| write.began == began);
        write.expect("it is under way").ended = Some(now);
    }

    /// The write was refused, and has changed nothing.
    pub(crate) fn refuse(&mut self, key: usize, began: u64) {
        self.keys[key].retain(|write| write.began != began);
    }

    /// Checks that `key` may hold `found`, and records it as the key's value.
    #[track_caller]
    pub(crate) fn settle(&mut self, key: usize, found: Tag) {
        let writes = &self.keys[key];
        assert!(
            writes.iter().any(|write| write.tag == found),
            "key {key} has {found:?} and may have one of {writes:?}"
        );
        self.now += 1;
        self.keys[key] = vec![Write { tag: found, began: self.now, ended: Some(self.now) }];
    }
}

/// The value of `key` with this tag: of many sizes, and of no other key.
pub(crate) fn value(key: usize, tag: u64) -> Vec<u8> {
    let mut rng = Rng::new(tag ^ (key as u64) << 40);
    let most = [600, 600, 8_192, 8_192, 8_192, 32 << 10, 32 << 10, 128 << 10];
    let most = most[usize::try_from(rng.below(8)).unwrap()];
    let mut bytes = vec![0; TAG_BYTES + usize::try_from(rng.below(most)).unwrap()];
    rng.fill(&mut bytes[TAG_BYTES..]);
    bytes[..TAG_BYTES].copy_from_slice(&tag.to_le_bytes());
    bytes
}

/// The tag of a value of `key`, if it is whole.
pub(crate) fn tag_of(key: usize, bytes: &[u8]) -> Option<u64> {
    let tag = u64::from_le_bytes(*bytes.first_chunk()?);
    (value(key, tag) == bytes).then_some(tag)
}

#[test]
fn an_acknowledged_write_replaces_earlier_ones() {
    let fails = |oracle: Oracle, found: Tag| {
        let mut oracle = std::panic::AssertUnwindSafe(oracle);
        std::panic::catch_unwind(move || oracle.settle(0, found)).is_err()
    };
    let oracle = || {
        let mut oracle = Oracle::new(1);
        let [first, second] = [Some(1), Some(2)].map(|tag| oracle.begin(0, tag));
        oracle.end(0, first);
        oracle.end(0, second);
        oracle
    };
    assert!(!fails(oracle(), Some(1)) && !fails(oracle(), Some(2)), "they ran together");
    assert!(fails(oracle(), None) && fails(oracle(), Some(3)));
    let later = |is_acknowledged: bool| {
        let mut oracle = oracle();
        let third = oracle.begin(0, None);
        if is_acknowledged {
            oracle.end(0, third);
        }
        oracle
    };
    assert!(!fails(later(false), Some(2)) && !fails(later(false), None));
    assert!(fails(later(true), Some(2)) && !fails(later(true), None));
}
