use super::error::ServerError;
use reactor::{PROCESSORS_MAX, run_on};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::str::FromStr;

/// The threads of a server, and the processors that they run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    count: NonZero<u16>,
    /// By thread: its processor. `None`: the system chooses.
    processors: Option<Vec<u16>>,
}

impl Cores {
    /// Returns the number of threads.
    pub const fn count(&self) -> NonZero<u16> {
        self.count
    }

    /// Returns the processors, in the order of the threads, if each has one.
    pub fn processors(&self) -> Option<&[u16]> {
        self.processors.as_deref()
    }

    /// Checks that this process may use the processors.
    pub(super) fn check(&self) -> Result<(), ServerError> {
        let allowed = reactor::processors()?;
        let mut wanted = self.processors.iter().flatten();
        let refused = wanted.find(|processor| !allowed.contains(processor));
        refused.map_or(Ok(()), |processor| {
            let allowed = list(allowed.iter().copied());
            Err(ServerError::Processor { processor: *processor, allowed })
        })
    }

    /// Has the calling thread, one of the server's, run on its processor only.
    pub(super) fn pin(&self, thread: usize) -> Result<(), ServerError> {
        let Some(processors) = &self.processors else { return Ok(()) };
        Ok(run_on(processors[thread])?)
    }
}

impl From<NonZero<u16>> for Cores {
    fn from(count: NonZero<u16>) -> Self {
        Self { count, processors: None }
    }
}

/// A number of threads, as in `4`, or a list of processors, as in `0-3,8`: one thread runs on each.
impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(count) = text.parse::<NonZero<u16>>() {
            return Ok(count.into());
        }
        let processors = processors(text).ok_or_else(|| {
            "the threads must be a whole number from 1 to 65535, or a list of processors such as \
             0-3,8 (2-2 is processor 2 alone)"
                .to_owned()
        })?;
        let mut seen = BTreeSet::new();
        for processor in &processors {
            if *processor >= PROCESSORS_MAX {
                let last = PROCESSORS_MAX - 1;
                return Err(format!("processor {processor} is beyond {last}, the last"));
            }
            if !seen.insert(processor) {
                return Err(format!("processor {processor} is in the list twice"));
            }
        }
        let count = u16::try_from(processors.len()).ok().and_then(NonZero::new);
        let count = count.expect("a list has some of the processors");
        Ok(Self { count, processors: Some(processors) })
    }
}

/// Returns the processors of a list such as `0-3,8`, in its order. A list has a comma or a hyphen.
fn processors(text: &str) -> Option<Vec<u16>> {
    if !text.contains([',', '-']) {
        return None;
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    let ranges = text.split(',').map(range).collect::<Option<Vec<_>>>()?;
    Some(ranges.into_iter().flatten().collect())
}

/// Returns a list of processors, with those that follow each other as a range.
fn list(processors: impl Iterator<Item = u16>) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for processor in processors {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == processor => *last = processor,
            _ => ranges.push((processor, processor)),
        }
    }
    let alone = ranges.len() == 1;
    let range = |(first, last): &(u16, u16)| {
        if first < last || alone { format!("{first}-{last}") } else { first.to_string() }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Cores, String> {
        text.parse()
    }

    #[test]
    fn cores_are_a_number_of_threads_or_a_list_of_processors() {
        let four = read("4").unwrap();
        assert_eq!((four.count().get(), four.processors()), (4, None));
        for (text, processors, printed) in [
            ("0-3,8", &[0, 1, 2, 3, 8][..], "0-3,8"),
            ("8, 2-3", &[8, 2, 3], "8,2-3"),
            ("2-2", &[2], "2-2"),
            ("1023,0", &[1023, 0], "1023,0"),
        ] {
            let cores = read(text).unwrap();
            assert_eq!(cores.processors(), Some(processors), "{text}");
            assert_eq!(usize::from(cores.count().get()), processors.len());
            assert_eq!(list(processors.iter().copied()), printed);
            assert_eq!(read(printed).unwrap(), cores);
        }
    }

    #[test]
    fn cores_that_are_neither_are_refused() {
        let neither = "the threads must be a whole number from 1 to 65535, or a list of processors \
                       such as 0-3,8 (2-2 is processor 2 alone)";
        for text in ["", "0", "65536", "-1", "3-1", "1-", "a", "1,,2", "0-3;8", "1-2-3"] {
            assert_eq!(read(text).unwrap_err(), neither, "{text:?}");
        }
        assert_eq!(read("0,1024").unwrap_err(), "processor 1024 is beyond 1023, the last");
        assert_eq!(read("0-3,2").unwrap_err(), "processor 2 is in the list twice");
    }

    #[test]
    fn each_thread_runs_on_its_processor() {
        let allowed = reactor::processors().unwrap();
        let backwards = list(allowed.iter().rev().copied());
        let cores = read(&backwards).unwrap();
        cores.check().unwrap();
        for (thread, processor) in allowed.into_iter().rev().enumerate() {
            let cores = cores.clone();
            let ran_on = std::thread::spawn(move || {
                cores.pin(thread).unwrap();
                reactor::processors().unwrap()
            });
            assert_eq!(ran_on.join().unwrap(), [processor]);
        }
    }

    #[test]
    fn a_processor_that_is_not_allowed_is_refused_with_those_that_are() {
        let allowed = reactor::processors().unwrap();
        let absent = (0..PROCESSORS_MAX).rev().find(|it| !allowed.contains(it)).unwrap();
        let error = read(&format!("{absent}-{absent}")).unwrap().check().unwrap_err();
        let may_use = list(allowed.into_iter());
        let expected = format!("this server cannot run on processor {absent}, only on {may_use}");
        assert_eq!(error.to_string(), expected);
    }
}
