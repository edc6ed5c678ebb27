use crate::generated::{BlockExtent, Generated};
use crate::kind::Kind;
use crate::replay::{Replay, Step};
use crate::zone_writer::ZoneWriter;
use base::limits::VALUE_BYTES_MAX;
use base::{Key, Nanos};

/// The operations of a session.
#[derive(Debug)]
pub(crate) enum Script {
    Generated(Box<Generated>),
    Replayed(Replayed),
}

/// The next operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) kind: Kind,
    pub(crate) key: u32,
    /// The version that a store writes if no history counts versions.
    pub(crate) version: u32,
    /// The number of keys of a scan.
    pub(crate) count: u32,
    /// True when a write must first reset the zone that it begins.
    pub(crate) is_reset_first: bool,
}

impl Choice {
    /// Returns an operation on version 0 of key number `key`.
    #[inline]
    pub(crate) fn new(kind: Kind, key: u64) -> Self {
        let key = u32::try_from(key).expect("a run has fewer than 2^32 keys");
        Self { kind, key, version: 0, count: 0, is_reset_first: false }
    }
}

/// The operations of a trace, or the stores that make the state before them.
#[derive(Debug)]
pub(crate) struct Replayed {
    replay: Replay,
    upcoming: Option<Step>,
    part: Part,
}

#[derive(Clone, Copy, Debug)]
enum Part {
    /// Keys below this number were checked for the state before the trace.
    Before(u32),
    Trace,
}

impl Replayed {
    /// Returns the remaining operations of `replay`.
    pub(crate) fn new(replay: Replay) -> Self {
        Self::of(replay, Part::Trace)
    }

    /// Returns stores of the keys that exist before the first operation of `replay`.
    pub(crate) fn filling(replay: Replay) -> Self {
        Self::of(replay, Part::Before(0))
    }

    fn of(replay: Replay, part: Part) -> Self {
        let mut replayed = Self { replay, upcoming: None, part };
        replayed.advance();
        replayed
    }

    fn advance(&mut self) {
        self.upcoming = match &mut self.part {
            Part::Trace => self.replay.next(),
            Part::Before(next) => {
                let found = (*next..self.replay.keys())
                    .find(|&key| self.replay.value_bytes(key, 0).is_some());
                *next = found.map_or(self.replay.keys(), |key| key + 1);
                found.map(|key| Step { kind: Kind::Store, key, due: None })
            }
        };
    }

    fn operations(&self) -> u64 {
        match self.part {
            Part::Trace => self.replay.operations(),
            Part::Before(_) => {
                let is_there = |key: &u32| self.replay.value_bytes(*key, 0).is_some();
                (0..self.replay.keys()).filter(is_there).count() as u64
            }
        }
    }

    fn next(&mut self) -> Option<Choice> {
        let Step { kind, key, .. } = self.upcoming?;
        self.advance();
        Some(Choice::new(kind, key.into()))
    }
}

impl Script {
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        match self {
            Self::Generated(generated) => generated.has_more(),
            Self::Replayed(replayed) => replayed.upcoming.is_some(),
        }
    }

    /// True when the next operation must wait for an outstanding one.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        match self {
            Self::Generated(generated) => generated.is_held(),
            Self::Replayed(_) => false,
        }
    }

    /// Returns the writer of zones, if the script writes to zones.
    #[inline]
    pub(crate) fn zone_writer(&mut self) -> Option<&mut ZoneWriter> {
        match self {
            Self::Generated(generated) => generated.zone_writer(),
            Self::Replayed(_) => None,
        }
    }

    /// Returns the number of operations, as far as it is known.
    pub(crate) fn operations(&self) -> u64 {
        match self {
            Self::Generated(generated) => generated.limit(),
            Self::Replayed(replayed) => replayed.operations(),
        }
    }

    /// Returns when the next operation is due, from the start; `None` if the script has no recorded
    /// times.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match self {
            Self::Generated(_) => None,
            Self::Replayed(replayed) => replayed.upcoming.and_then(|step| step.due),
        }
    }

    /// Returns the next operation, which must exist.
    #[inline]
    pub(crate) fn next(&mut self) -> Choice {
        match self {
            Self::Generated(generated) => generated.next(),
            Self::Replayed(replayed) => replayed.next().expect("the script has more operations"),
        }
    }

    /// Returns the number of keys whose versions a history must record, if any.
    pub(crate) fn keys_with_versions(&self) -> Option<u64> {
        match self {
            Self::Generated(generated) => generated.keys_with_versions(),
            Self::Replayed(Replayed { replay, part: Part::Trace, .. }) => {
                Some(replay.keys().into())
            }
            Self::Replayed(_) => None,
        }
    }

    /// Acknowledges a store of key number `key`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, key: u32) {
        if let Self::Generated(generated) = self {
            generated.acknowledge(key);
        }
    }

    /// True for keys, false for blocks.
    #[inline]
    pub(crate) fn has_keys(&self) -> bool {
        match self {
            Self::Generated(generated) => generated.has_keys(),
            Self::Replayed(_) => true,
        }
    }

    #[inline]
    pub(crate) fn key(&self, number: u32) -> Key {
        match self {
            Self::Generated(generated) => generated.key(number),
            Self::Replayed(replayed) => replayed.replay.key(number),
        }
    }

    /// Returns the place of block number `number`. Not called for a trace, which has keys only.
    #[inline]
    pub(crate) fn extent(&self, number: u32) -> BlockExtent {
        match self {
            Self::Generated(generated) => generated.extent(number),
            Self::Replayed(_) => unreachable!("a trace has keys, not blocks"),
        }
    }

    /// Returns the number of a key that may have been stored. Not called for a trace, which has no
    /// scans.
    pub(crate) fn number(&self, key: &[u8]) -> Option<u32> {
        match self {
            Self::Generated(generated) => generated.number(key),
            Self::Replayed(_) => None,
        }
    }

    /// Returns the length of the value of a version; `None` when the key is missing in it.
    #[inline]
    pub(crate) fn value_bytes(&self, key: u32, version: u32) -> Option<u32> {
        match self {
            Self::Generated(generated) => Some(generated.value_bytes(key, version)),
            Self::Replayed(replayed) => replayed.replay.value_bytes(key, version),
        }
    }

    /// Returns the room for any value that a read may return.
    #[inline]
    pub(crate) fn value_bytes_max(&self) -> u32 {
        match self {
            Self::Generated(generated) => generated.value_bytes_max(),
            Self::Replayed(_) => VALUE_BYTES_MAX,
        }
    }
}
