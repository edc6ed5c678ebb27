use crate::source::is_identifier;
use crate::tokens::{Token, tokens};
use crate::tree::Tree;

/// Sources of nondeterminism: time, scheduling, the machine's state, randomly seeded hashes.
const FORBIDDEN: [&str; 13] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::collections::hash_map",
    "std::collections::hash_set",
    "std::hash::RandomState",
    "rand",
];

/// Allowed: asks only whether this very task is unwinding, which is the same in every run.
const ALLOWED: &str = "std::thread::panicking";

/// Finds every forbidden path in the device crate `name`, whose sources are in `folder`, imports in
/// braces included.
pub(super) fn check(name: &str, folder: &str, tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.with_extension("rs").filter(|(path, _)| path.starts_with(folder)) {
        for (line, named) in named_paths(text) {
            if FORBIDDEN.iter().any(|forbidden| leads_to(&named, forbidden)) {
                violations.push(format!(
                    "{path}:{line}: {named} is not for `{name}`: device crates are deterministic"
                ));
            }
        }
    }
    violations
}

/// True when `named` is `forbidden`, an item in it, or an imported module that contains it.
fn leads_to(named: &str, forbidden: &str) -> bool {
    let named = named.trim_end_matches("::self").trim_end_matches("::*");
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    named != ALLOWED && (holds(forbidden, named) || holds(named, forbidden))
}

/// Returns the paths that start in `std` or `rand`, each with the line that it ends on.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let mut paths = Vec::new();
    for start in 0..tokens.len() {
        if matches!(tokens[start].1, "std" | "rand") && next_is(&tokens, start, "::") {
            path(&tokens, start, "", &mut paths);
        }
    }
    paths
}

fn next_is(tokens: &[Token<'_>], index: usize, token: &str) -> bool {
    tokens.get(index + 1).is_some_and(|(_, next)| *next == token)
}

/// Adds the paths of the path or the braces at `index` after `prefix`; returns the index after it.
fn path(
    tokens: &[Token<'_>],
    index: usize,
    prefix: &str,
    paths: &mut Vec<(usize, String)>,
) -> usize {
    let Some(&(line, token)) = tokens.get(index) else { return index };
    if token == "{" {
        return braces(tokens, index + 1, prefix, paths);
    }
    let separator = if prefix.is_empty() { "" } else { "::" };
    let longer = format!("{prefix}{separator}{token}");
    if token != "*" && !token.starts_with(is_identifier) {
        paths.push((line, prefix.into()));
    } else if next_is(tokens, index, "::") {
        return path(tokens, index + 2, &longer, paths);
    } else {
        paths.push((line, longer));
    }
    index + 1
}

fn braces(
    tokens: &[Token<'_>],
    start: usize,
    prefix: &str,
    paths: &mut Vec<(usize, String)>,
) -> usize {
    let mut index = start;
    while let Some(&(_, token)) = tokens.get(index) {
        index = match token {
            "}" => return index + 1,
            "," => index + 1,
            "as" => index + 2,
            _ => path(tokens, index, prefix, paths),
        };
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let tree =
            Tree::sample(&[("crates/a/src/b.rs", text), ("crates/ab/src/c.rs", "use std::fs;")]);
        let found = check("a", "crates/a/src/", &tree);
        found.iter().map(|line| line.split(" is not").next().unwrap().into()).collect()
    }

    #[test]
    fn every_forbidden_path_is_named_with_its_line() {
        for forbidden in FORBIDDEN {
            let expected = format!("crates/a/src/b.rs:2: {forbidden}::x");
            assert_eq!(lines(&format!("fn a() {{\n    {forbidden}::x();\n}}\n")), [expected]);
        }
    }

    #[test]
    fn imports_in_braces_and_over_lines_are_seen() {
        let text = "use std::{
            cell::Cell as C,
            collections::{BTreeMap, HashMap as Map},
            fs::{self, File},
            thread,
        };";
        let expected = [
            "3: std::collections::HashMap",
            "4: std::fs::self",
            "4: std::fs::File",
            "5: std::thread",
        ]
        .map(|end| format!("crates/a/src/b.rs:{end}"));
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn importing_the_module_around_it_is_no_way_out() {
        for text in
            ["use std::time;", "use std::collections::*;", "use std::time::{self, Duration};"]
        {
            assert_eq!(lines(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_the_same_in_every_run_may_be_used() {
        let text = "use std::collections::{BTreeMap, VecDeque};
            use std::fmt::{self, Write as _};
            use std::{mem as fs, time::Duration};
            use hashbrown::HashMap;
            // std::fs is not used
            let a = \"std::fs::read\"; /* std::fs */
            thread_local! {}
            if std::thread::panicking() {}
            let a = std::mem::size_of::<u8>();
            strand::a();";
        assert_eq!(lines(text), Vec::<String>::new());
    }
}
