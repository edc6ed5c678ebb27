//! What must be true for an experiment to hold, as `experiments/criteria.toml` has it.

use serde::de::DeserializeOwned;
use toml::Table;

/// The file.
const TEXT: &str = include_str!("../../../../experiments/criteria.toml");

/// What the experiment `id` has to keep: the criterion's sentence and the bounds it speaks of.
pub(super) fn bounds<T: DeserializeOwned>(id: &str) -> T {
    read(TEXT, id)
}

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
