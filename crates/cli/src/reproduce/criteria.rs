//! What must be true for an experiment to hold, as `experiments/criteria.toml` has it.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::Table;

/// The file.
const TEXT: &str = include_str!("../../../../experiments/criteria.toml");

/// What the experiment `id` has to keep: the criterion's sentence and the bounds it speaks of.
pub(super) fn bounds<T: DeserializeOwned>(id: &str) -> T {
    read(TEXT, id)
}

/// Why the criterion of the experiment `id` is known not to hold, if it is.
pub(super) fn known_failure(id: &str) -> Option<String> {
    read::<BTreeMap<String, String>>(TEXT, KNOWN_FAILURES).remove(id)
}

/// The table of the file that has the reason for each criterion that is known not to hold.
const KNOWN_FAILURES: &str = "known-failures";

/// The same of the criteria that are written in `text`.
fn read<T: DeserializeOwned>(text: &str, id: &str) -> T {
    let mut criteria: Table = text.parse().expect("the criteria of the program are TOML");
    let criterion = criteria.remove(id).expect("each experiment has a criterion");
    criterion.try_into().expect("a criterion has a sentence and the bounds that are compared")
}

/// The criterion of `id` with `to` in place of `from`, which the file has.
#[cfg(test)]
pub(super) fn changed<T: DeserializeOwned>(id: &str, from: &str, to: &str) -> T {
    let (before, section) = TEXT.split_once(&format!("[{id}]")).unwrap();
    assert!(section.contains(from), "{id} has {from}");
    read(&format!("{before}[{id}]{}", section.replacen(from, to, 1)), id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_failure_has_a_criterion_and_a_reason() {
        let known: BTreeMap<String, String> = read(TEXT, KNOWN_FAILURES);
        assert_eq!(known.keys().collect::<Vec<_>>(), ["FEMU-5"]);
        for (id, reason) in known {
            assert!(read::<Table>(TEXT, &id).contains_key("criterion"), "{id}");
            assert!(!reason.is_empty(), "{id}");
        }
        assert_eq!(known_failure("MoKE-1c"), None);
    }
}
