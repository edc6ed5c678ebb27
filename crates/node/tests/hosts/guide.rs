//! The guide page on hosts names a test for each answer that a host depends on.

use std::fs::read_to_string;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// Where the tests are that the page names: `fabrics::identify::a_name` is in `identify.rs`.
const FOLDERS: [(&str, &str); 6] = [
    ("fabrics", "crates/controller/tests/fabrics"),
    ("commands", "crates/controller/tests/commands"),
    ("transport", "crates/nvme-tcp/tests/transport"),
    ("spec", "crates/spec/src"),
    ("hosts", "crates/node/tests/hosts"),
    ("vm", "crates/cli/tests/vm"),
];

#[test]
fn every_test_that_the_page_names_is_there() {
    let page = read_to_string(format!("{ROOT}docs/guide/hosts.md")).expect("there is such a page");
    let mut named = 0;
    for quoted in page.split('`').skip(1).step_by(2) {
        let [set, file, name] = *quoted.split("::").collect::<Vec<_>>() else { continue };
        let (_, folder) = FOLDERS.iter().find(|(known, _)| *known == set).unwrap_or_else(|| {
            panic!("{quoted}: there is no set of tests {set}");
        });
        let path = format!("{folder}/{file}.rs");
        let text = read_to_string(format!("{ROOT}{path}"));
        let text = text.unwrap_or_else(|error| panic!("{quoted}: {path}: {error}"));
        let is_there = text.contains(&format!("fn {name}("));
        assert!(is_there, "{path} has no {name}");
        named += 1;
    }
    assert!(named > 30, "the page names many");
}
