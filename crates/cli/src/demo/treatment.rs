use crate::number::grouped;
use crate::path::{shortened, shown};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A property of a file or folder that changes how `demo` handles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Treatment {
    Empty,
    Changed,
    HardLinked,
    LongPath,
    NotUtf8,
    SymbolicLink,
    OtherKind,
    UnreadableFile,
    UnreadableFolder,
    SkippedFolder,
    KeyTaken,
    DeviceFull,
    MemoryFull,
    Failed,
}

/// Texts of one treatment.
struct Words {
    treatment: Treatment,
    /// Name in JSON.
    name: &'static str,
    /// What the number counts.
    what: &'static str,
    /// What `demo` does with it.
    how: &'static str,
}

impl Words {
    const fn new(
        treatment: Treatment,
        name: &'static str,
        what: &'static str,
        how: &'static str,
    ) -> Self {
        Self { treatment, name, what, how }
    }
}

const COUNT: usize = 14;

/// In the order of [`Treatment`].
const ALL: [Words; COUNT] = [
    Words::new(Treatment::Empty, "empty_files", "empty files", "stored with an empty value"),
    Words::new(Treatment::Changed, "changed_files", "changed while read", "stored as read"),
    Words::new(Treatment::HardLinked, "hard_links", "several names", "stored under each name"),
    Words::new(
        Treatment::LongPath,
        "long_paths",
        "path too long for a key",
        "key ends in a checksum of the path",
    ),
    Words::new(Treatment::NotUtf8, "names_not_utf8", "path not UTF-8", "stored under its bytes"),
    Words::new(Treatment::SymbolicLink, "symbolic_links", "symbolic links", "not followed"),
    Words::new(Treatment::OtherKind, "other_kinds", "pipe, socket, device", "left out"),
    Words::new(Treatment::UnreadableFile, "unreadable_files", "unreadable files", "left out"),
    Words::new(
        Treatment::UnreadableFolder,
        "unreadable_folders",
        "unreadable folders",
        "left out with all in them",
    ),
    Words::new(
        Treatment::SkippedFolder,
        "skipped_folders",
        ".git, build folders",
        "left out, --all takes them too",
    ),
    Words::new(
        Treatment::KeyTaken,
        "taken_keys",
        "key of another file",
        "left out, the first is kept",
    ),
    Words::new(Treatment::DeviceFull, "beyond_device", "device full", "left out"),
    Words::new(Treatment::MemoryFull, "beyond_memory", "memory limit reached", "left out"),
    Words::new(Treatment::Failed, "failed", "refused by the device", "left out, an error"),
];

/// Example paths kept for each treatment.
const EXAMPLES_MAX: usize = 3;

/// Counts of each treatment.
#[derive(Debug, Default)]
pub(super) struct Treatments([Tally; COUNT]);

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    examples: Vec<String>,
}

/// A treatment in a report.
#[derive(Debug, Serialize)]
pub(super) struct TreatmentReport {
    count: u64,
    treatment: &'static str,
    /// The first paths, some with the reason.
    examples: Vec<String>,
}

impl Treatments {
    /// Counts `path`.
    pub(super) fn add(&mut self, treatment: Treatment, path: &Path) {
        self.add_because(treatment, path, "");
    }

    /// Counts `path`, with a reason.
    pub(super) fn add_because(&mut self, treatment: Treatment, path: &Path, reason: &str) {
        let tally = &mut self.0[treatment as usize];
        tally.count += 1;
        if tally.examples.len() < EXAMPLES_MAX {
            let separator = if reason.is_empty() { "" } else { ": " };
            tally.examples.push(format!("{}{separator}{reason}", shown(path)));
        }
    }

    /// Returns the count of `treatment`.
    pub(super) fn count(&self, treatment: Treatment) -> u64 {
        self.0[treatment as usize].count
    }

    /// Returns all treatments by name, including those with a count of zero.
    pub(super) fn report(&self) -> BTreeMap<&'static str, TreatmentReport> {
        let report = |words: &Words| {
            let Tally { count, examples } = &self.0[words.treatment as usize];
            let report =
                TreatmentReport { count: *count, treatment: words.how, examples: examples.clone() };
            (words.name, report)
        };
        ALL.iter().map(report).collect()
    }

    /// Returns the treatments with a count above zero, with examples.
    pub(super) fn table(&self) -> String {
        let mut text = String::from("treated specially\n");
        for words in ALL.iter().filter(|words| self.count(words.treatment) > 0) {
            let Tally { count, examples } = &self.0[words.treatment as usize];
            let (what, count) = (words.what, grouped(*count));
            writeln!(text, "  {what:<23}  {count:>9}  {}", words.how).expect("text grows");
            for example in examples {
                writeln!(text, "    {}", shortened(example, 76)).expect("text grows");
            }
        }
        if text.lines().count() == 1 {
            text.push_str("  nothing\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_stand_in_the_order_of_the_treatments() {
        assert!(ALL.iter().enumerate().all(|(index, words)| words.treatment as usize == index));
    }

    #[test]
    fn treatments_are_counted_with_the_first_paths() {
        let mut treatments = Treatments::default();
        for path in ["a", "b", "c", "d"] {
            treatments.add(Treatment::Empty, Path::new(path));
        }
        treatments.add_because(Treatment::UnreadableFile, Path::new("e"), "no");
        let report = treatments.report();
        assert_eq!(report.len(), COUNT);
        assert_eq!((report["empty_files"].count, report["hard_links"].count), (4, 0));
        assert_eq!(report["empty_files"].examples, ["a", "b", "c"]);
        assert_eq!(report["unreadable_files"].examples, ["e: no"]);
        let lines: Vec<String> = treatments.table().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 7);
        assert!(lines.iter().all(|line| line.len() <= 80));
    }
}
