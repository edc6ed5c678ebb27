//! Idioms that hide the actor or the thing of a sentence, counted for each crate.

use crate::tree::Tree;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// How many idioms each crate still has. A count that differs fails: the table only shrinks.
pub(super) const TABLE: &str = "docs/internals/idioms.toml";

/// This file, which names the idioms.
const LIST: &str = "xtask/src/tidy/idioms.rs";

/// Sequences of words; `*` stands for any one word. Identifiers are read as words too, so names of
/// tests count.
const IDIOMS: [&str; 33] = [
    "anybody",
    "any more",
    "at hand",
    "for a while",
    "from here on",
    "from then on",
    "goes on",
    "is in nobody s way",
    "is no * any more",
    "meanwhile",
    "nobody",
    "of which nothing",
    "of whom",
    "on each other s heels",
    "somebody",
    "what * lacks",
    "what came",
    "what comes",
    "what is at hand",
    "what it takes",
    "what lies",
    "what stands",
    "who asks",
    "who comes",
    "who else",
    "who has",
    "who is",
    "who leaves",
    "who may",
    "who reads",
    "who stores",
    "who waits",
    "whoever",
];

/// Idioms of each crate or top folder in Rust and Markdown files: path, line and idiom.
fn found(tree: &Tree) -> BTreeMap<String, Vec<(String, usize, &'static str)>> {
    let mut found: BTreeMap<String, Vec<_>> = BTreeMap::new();
    let files = tree.with_extension("rs").chain(tree.with_extension("md"));
    for (path, text) in files.filter(|(path, _)| *path != LIST) {
        let words = words(text);
        let mut start = 0;
        while start < words.len() {
            // The longest that begins here; the words that it covers do not count again.
            let here = IDIOMS.iter().filter(|idiom| begins(idiom, &words[start..]));
            let Some(idiom) = here.max_by_key(|idiom| idiom.len()) else {
                start += 1;
                continue;
            };
            let place = (path.to_owned(), words[start].0, *idiom);
            found.entry(owner(path)).or_default().push(place);
            start += idiom.split(' ').count();
        }
    }
    found
}

/// The crate of a path, or its top folder; `.` for a file at the root.
fn owner(path: &str) -> String {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["crates", name, _, ..] => format!("crates/{name}"),
        [folder, _, ..] => (*folder).to_owned(),
        _ => ".".to_owned(),
    }
}

/// The words of `text` in lower case, each with its line from 1.
fn words(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    let words = lines.flat_map(|(index, line)| {
        let words = line.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        words.map(move |word| (index + 1, word.to_ascii_lowercase()))
    });
    words.collect()
}

fn begins(idiom: &str, words: &[(usize, String)]) -> bool {
    let mut words = words.iter();
    idiom.split(' ').all(|wanted| {
        words.next().is_some_and(|(_, word)| wanted == "*" || wanted == word.as_str())
    })
}

/// A sentence for each crate whose count differs from the table, with the places if it grew.
pub(super) fn check(tree: &Tree, table: &str) -> Result<Vec<String>> {
    let allowed: BTreeMap<String, usize> = toml::from_str(table).context(TABLE)?;
    let found = found(tree);
    let names: BTreeSet<&String> = allowed.keys().chain(found.keys()).collect();
    let mut sentences = Vec::new();
    for name in names {
        let places = found.get(name).map_or(&[][..], Vec::as_slice);
        let (count, allowed) = (places.len(), allowed.get(name).copied().unwrap_or(0));
        if count < allowed {
            let sentence = format!("{TABLE}: {name} has {count} idioms: lower its {allowed}");
            sentences.push(sentence);
        }
        if count > allowed {
            let places = places.iter().map(|(path, line, idiom)| format!("{path}:{line}: {idiom}"));
            sentences.extend(places);
            let sentence = format!("{TABLE}: {name} has {count} idioms, {allowed} are allowed");
            sentences.push(sentence);
        }
    }
    Ok(sentences)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str, table: &str) -> Vec<String> {
        check(&Tree::sample(&[("crates/a/src/b.rs", text)]), table).unwrap()
    }

    #[test]
    fn a_new_idiom_is_named_with_its_line() {
        let found = sentences("\n// The page that nobody\n// reads.\n", "");
        assert_eq!(found[0], "crates/a/src/b.rs:2: nobody");
        assert!(found[1].contains("crates/a has 1 idioms, 0 are allowed"), "{}", found[1]);
    }

    #[test]
    fn idioms_are_found_over_line_ends_and_in_names() {
        assert_eq!(sentences("// is no\n// drive any\n// more\n", "").len(), 2);
        assert_eq!(sentences("fn who_waits_is_told() {}\n", "").len(), 2);
    }

    #[test]
    fn the_longest_idiom_counts_once() {
        let found = sentences("// it is no drive any more\n", "\"crates/a\" = 1\n");
        assert_eq!(found, Vec::<String>::new(), "not also `any more`");
    }

    #[test]
    fn a_table_that_allows_more_than_there_is_has_to_shrink() {
        let found = sentences("// meanwhile\n", "\"crates/a\" = 2\n");
        assert!(found[0].contains("lower its 2"), "{}", found[0]);
        assert_eq!(sentences("// meanwhile\n", "\"crates/a\" = 1\n"), Vec::<String>::new());
    }
}
