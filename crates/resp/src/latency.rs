use std::collections::{BTreeMap, VecDeque};

/// Samples of an event that are kept.
const SAMPLES: usize = 160;

/// The longest of an event in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Seconds since 1970.
    pub(crate) at: u64,
    pub(crate) millis: u64,
}

/// What is known of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// The oldest first; never empty once it is seen by others.
    pub(crate) samples: VecDeque<Sample>,
    /// The longest ever.
    pub(crate) millis_max: u64,
}

/// When something took long, and how long, by events.
#[derive(Debug, Default)]
pub(crate) struct Latencies(BTreeMap<&'static str, Series>);

impl Latencies {
    /// Something took so long. Of one second the longest is kept.
    pub(crate) fn add(&mut self, event: &'static str, at: u64, millis: u64) {
        let series = self.0.entry(event).or_default();
        series.millis_max = series.millis_max.max(millis);
        match series.samples.back_mut() {
            Some(last) if last.at == at => last.millis = last.millis.max(millis),
            _ => series.samples.push_back(Sample { at, millis }),
        }
        if series.samples.len() > SAMPLES {
            series.samples.pop_front();
        }
    }

    pub(crate) fn get(&self, event: &[u8]) -> Option<&Series> {
        self.0.get(std::str::from_utf8(event).ok()?)
    }

    /// All events, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Series)> {
        self.0.iter().map(|(event, series)| (*event, series))
    }

    /// Forgets those events for which that is true, and says how many.
    pub(crate) fn forget(&mut self, is_meant: impl Fn(&str) -> bool) -> usize {
        let before = self.0.len();
        self.0.retain(|event, _| !is_meant(event));
        before - self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_each_second_is_kept_for_so_many_seconds() {
        let mut latencies = Latencies::default();
        for at in 0..200 {
            for millis in [5, 9, 7] {
                latencies.add("command", at, millis + at);
            }
        }
        let series = latencies.get(b"command").unwrap();
        assert_eq!((series.samples.len(), series.millis_max), (160, 208));
        assert_eq!(series.samples[0], Sample { at: 40, millis: 49 });
        assert_eq!(latencies.forget(|event| event == "nosuch"), 0);
        assert_eq!(latencies.forget(|_| true), 1);
        assert!(latencies.iter().next().is_none());
    }
}
