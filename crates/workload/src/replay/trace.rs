use super::format::{Format, Record};
use super::key_table::{KeyList, KeyTable};
use super::number::Seconds;
use super::problem::Problem;
use crate::kind::Kind;
use base::limits::VALUE_BYTES_MAX;
use base::{Key, Nanos};

/// Operations on keys as a store once served them, each with its time.
///
/// Needs 17 bytes for each operation that changes a key, 13 for each other one, and 16 for each key
/// in addition to its bytes.
#[derive(Clone, Debug)]
pub struct Trace {
    format: Format,
    keys: KeyList,
    /// The time of each operation, in nanoseconds from the first.
    times: Vec<u64>,
    kinds: Vec<Kind>,
    numbers: Vec<u32>,
    /// The start of each key's versions, and the end of the last key's.
    starts: Vec<u32>,
    /// The size of each version; `ABSENT` for one in which the key is missing.
    sizes: Vec<u32>,
    counts: [u64; Kind::COUNT],
    keys_shortened: u64,
    values_cut: u64,
    misses: u64,
    live_bytes_max: u64,
}

/// The size of no value.
const ABSENT: u32 = u32::MAX;

/// Each operation makes at most one key and one version: so these and the versions that are there
/// before are counted in 32 bits.
pub(super) const OPERATIONS_MAX: usize = (u32::MAX / 2) as usize;

/// From the first operation to the last: five years. Slowed down as far as possible it ends before
/// the clock does, and times that are not in seconds are found out.
pub(super) const DURATION_MAX: Nanos = Nanos::from_secs(5 * 365 * 86_400);

impl Trace {
    /// Returns the format of the trace.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the number of operations: at least one, and fewer than 2^31.
    pub fn operations(&self) -> u64 {
        self.times.len() as u64
    }

    /// Returns the number of operations of `kind`.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    /// Returns the number of different keys.
    pub fn keys(&self) -> u32 {
        number(self.keys.len())
    }

    /// Returns the time from the first operation to the last.
    pub fn duration(&self) -> Nanos {
        self.times.last().map_or(Nanos::ZERO, |&time| Nanos(time))
    }

    /// Returns how many keys exceeded 255 bytes. They end in a hash of the original key.
    pub fn keys_shortened(&self) -> u64 {
        self.keys_shortened
    }

    /// Returns how many values exceeded 2 MiB. They are cut to that size.
    pub fn values_cut(&self) -> u64 {
        self.values_cut
    }

    /// Returns how many retrieves and exists miss their key when operations run one at a time. A
    /// delete always succeeds.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Returns the most bytes of keys and values that exist at once when operations run one at a
    /// time.
    pub fn live_bytes_max(&self) -> u64 {
        self.live_bytes_max
    }

    /// Returns the key of a number below [`keys`](Self::keys), in the order of first appearance.
    #[inline]
    pub fn key(&self, number: u32) -> Key {
        self.keys.key(number)
    }

    /// Returns the number of versions of `key`: one, and one for each operation that stores or
    /// deletes it.
    pub fn versions(&self, key: u32) -> u32 {
        self.starts[key as usize + 1] - self.starts[key as usize]
    }

    /// Returns the bytes of the value of `version` of `key`, or `None` if the key is missing in it.
    ///
    /// Version 0 is what was there before the trace: a value, if an operation found one before the
    /// first that changes the key, or as that deleted it. Each store and each delete makes the
    /// next.
    #[inline]
    pub fn value_bytes(&self, key: u32, version: u32) -> Option<u32> {
        assert!(version < self.versions(key), "a key has as many versions as changes, and one");
        let size = self.sizes[(self.starts[key as usize] + version) as usize];
        (size != ABSENT).then_some(size)
    }

    /// Returns time, kind and key of the operation at `index`, if it exists.
    #[inline]
    pub(super) fn operation(&self, index: usize) -> Option<(Nanos, Kind, u32)> {
        let time = *self.times.get(index)?;
        Some((Nanos(time), self.kinds[index], self.numbers[index]))
    }

    /// Counts misses and live bytes by running the operations one at a time.
    fn walk(&mut self) {
        let mut current = self.starts.clone();
        let size = |place: u32| self.sizes[place as usize];
        let pair = |key: u32, place: u32| match size(place) {
            ABSENT => 0,
            bytes => self.keys.bytes(key).len() as u64 + u64::from(bytes),
        };
        let mut live: u64 = (0..self.keys()).map(|key| pair(key, current[key as usize])).sum();
        let (mut misses, mut live_max) = (0, live);
        for (&kind, &key) in self.kinds.iter().zip(&self.numbers) {
            let place = &mut current[key as usize];
            misses += u64::from(!changes(kind) && size(*place) == ABSENT);
            if changes(kind) {
                live -= pair(key, *place);
                *place += 1;
                live += pair(key, *place);
                live_max = live_max.max(live);
            }
        }
        (self.misses, self.live_bytes_max) = (misses, live_max);
    }
}

/// True for operations that make a new version of their key.
fn changes(kind: Kind) -> bool {
    matches!(kind, Kind::Store | Kind::Delete)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there are at most twice as many as operations")
}

/// Builds a trace, operation by operation.
#[derive(Debug)]
pub(super) struct Builder {
    format: Format,
    keys: KeyTable,
    /// Of the first operation, from the trace's own origin.
    origin: u64,
    /// Of the last, the same.
    last: u64,
    times: Vec<u64>,
    kinds: Vec<Kind>,
    numbers: Vec<u32>,
    /// Of each operation, as it was recorded; one more than the longest for all that are longer.
    sizes: Vec<u32>,
    counts: [u64; Kind::COUNT],
    /// The first operation of the second that is being read.
    second: usize,
}

impl Builder {
    pub(super) fn new(format: Format) -> Self {
        Self {
            format,
            keys: KeyTable::default(),
            origin: 0,
            last: 0,
            times: Vec::new(),
            kinds: Vec::new(),
            numbers: Vec::new(),
            sizes: Vec::new(),
            counts: [0; Kind::COUNT],
            second: 0,
        }
    }

    /// Adds the next operation.
    pub(super) fn push(&mut self, record: &Record) -> Result<(), Problem> {
        self.check(record)?;
        if self.format == Format::Twitter && record.time != self.last {
            self.spread();
        }
        self.last = record.time;
        self.times.push(record.time - self.origin);
        self.kinds.push(record.kind);
        self.numbers.push(self.keys.number(record.key));
        let size = record.size.min(u64::from(VALUE_BYTES_MAX) + 1);
        self.sizes.push(u32::try_from(size).expect("the longest value is shorter than 4 GiB"));
        self.counts[record.kind as usize] += 1;
        Ok(())
    }

    fn check(&mut self, record: &Record) -> Result<(), Problem> {
        if self.times.is_empty() {
            (self.origin, self.last) = (record.time, record.time);
        }
        let time = Seconds(record.time);
        if record.key.is_empty() {
            return Err(Problem::NoKey);
        }
        if self.times.len() == OPERATIONS_MAX {
            return Err(Problem::Operations);
        }
        if record.time < self.last {
            return Err(Problem::Backwards { time, last: Seconds(self.last) });
        }
        if record.time - self.origin > DURATION_MAX.0 {
            return Err(Problem::Duration { time, first: Seconds(self.origin) });
        }
        Ok(())
    }

    /// Spreads the operations of the last second evenly over it: all at its start they would be a
    /// burst that never was.
    fn spread(&mut self) {
        let second = &mut self.times[self.second..];
        let count = second.len() as u64;
        for (time, index) in second.iter_mut().zip(0..) {
            *time += index * Nanos::from_secs(1).0 / count;
        }
        self.second = self.times.len();
    }

    /// The trace, if there was an operation.
    pub(super) fn finish(mut self) -> Result<Trace, Problem> {
        if self.times.is_empty() {
            return Err(Problem::NoOperations);
        }
        if self.format == Format::Twitter {
            self.spread();
        }
        let (keys, keys_shortened) = self.keys.into_list();
        let starts = starts(keys.len(), &self.kinds, &self.numbers);
        let (sizes, values_cut) = sizes(&starts, &self.kinds, &self.numbers, &self.sizes);
        let mut trace = Trace {
            format: self.format,
            keys,
            times: self.times,
            kinds: self.kinds,
            numbers: self.numbers,
            starts,
            sizes,
            counts: self.counts,
            keys_shortened,
            values_cut,
            misses: 0,
            live_bytes_max: 0,
        };
        trace.walk();
        Ok(trace)
    }
}

/// Where the versions of each of `keys` keys begin, and where those of the last end.
fn starts(keys: usize, kinds: &[Kind], numbers: &[u32]) -> Vec<u32> {
    let mut starts = vec![1; keys + 1];
    starts[0] = 0;
    for (_, &key) in kinds.iter().zip(numbers).filter(|&(&kind, _)| changes(kind)) {
        starts[key as usize + 1] += 1;
    }
    let mut end = 0;
    for start in &mut starts {
        end += *start;
        *start = end;
    }
    starts
}

/// The size of each version, and how many of them were cut.
fn sizes(starts: &[u32], kinds: &[Kind], numbers: &[u32], recorded: &[u32]) -> (Vec<u32>, u64) {
    let mut current = starts.to_vec();
    let mut sizes = vec![ABSENT; starts.last().map_or(0, |&end| end as usize)];
    for ((&kind, &key), &size) in kinds.iter().zip(numbers).zip(recorded) {
        let place = &mut current[key as usize];
        let is_before = *place == starts[key as usize];
        if kind != Kind::Store && is_before && size > 0 && sizes[*place as usize] == ABSENT {
            sizes[*place as usize] = size;
        }
        if changes(kind) {
            *place += 1;
            sizes[*place as usize] = if kind == Kind::Store { size } else { ABSENT };
        }
    }
    let mut cut = 0;
    for size in sizes.iter_mut().filter(|size| **size != ABSENT && **size > VALUE_BYTES_MAX) {
        *size = VALUE_BYTES_MAX;
        cut += 1;
    }
    (sizes, cut)
}
