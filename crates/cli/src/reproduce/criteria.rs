//! Criteria of experiments, from `experiments/criteria.toml`.

use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::Table;

/// The file.
const TEXT: &str = include_str!("../../../../experiments/criteria.toml");

/// Returns the criterion of the experiment `id`: its sentence and its bounds.
pub(super) fn bounds<T: DeserializeOwned>(id: &str) -> T {
    read(TEXT, id)
}

/// Returns the reason why the criterion of the experiment `id` is known not to hold, if it is.
pub(super) fn known_failure(id: &str) -> Option<String> {
    read::<BTreeMap<String, String>>(TEXT, KNOWN_FAILURES).remove(id)
}

/// The file's table of reasons for criteria that are known not to hold.
const KNOWN_FAILURES: &str = "known-failures";

/// The same for the criteria in `text`.
fn read<T: DeserializeOwned>(text: &str, id: &str) -> T {
    let mut criteria: Table = text.parse().expect("the criteria of the program are TOML");
    let criterion = criteria.remove(id).expect("each experiment has a criterion");
    criterion.try_into().expect("a criterion has a sentence and the bounds that are compared")
}

/// Returns the criterion of `id` with `from`, which must occur, replaced by `to`.
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
        let ids = ["FEMU-5", "OCT-auto", "OCT-qd", "OCT-rt", "OCT-tp", "OCT-util"];
        assert_eq!(known.keys().collect::<Vec<_>>(), ids);
        for (id, reason) in known {
            assert!(read::<Table>(TEXT, &id).contains_key("criterion"), "{id}");
            assert!(!reason.is_empty(), "{id}");
        }
        assert_eq!(known_failure("MoKE-1c"), None);
    }
}
