//! The guide page on hosts names a test for each answer that a host depends on, and that on servers
//! one for each limit.

use std::fs::read_to_string;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// Where the tests are that the page names: `fabrics::identify::a_name` is in `identify.rs`.
const FOLDERS: [(&str, &str); 10] = [
    ("fabrics", "crates/controller/tests/integration/fabrics"),
    ("commands", "crates/controller/tests/integration/commands"),
    ("transport", "crates/nvme-tcp/tests/transport"),
    ("spec", "crates/spec/src"),
    ("hosts", "crates/node/tests/integration/hosts"),
    ("server", "crates/node/src/server"),
    ("status", "crates/node/tests/integration/status"),
    ("tls", "crates/tls/tests/tls"),
    ("vm", "crates/cli/tests/vm"),
    ("black_box", "crates/cli/tests/black_box"),
];

#[test]
fn every_test_that_a_page_names_is_there() {
    for (page, least) in [("hosts.md", 30), ("server.md", 10)] {
        let named = check(page);
        assert!(named > least, "{page} names many, and not {named}");
    }
}

/// How many tests the page names, which are all there.
fn check(page: &str) -> usize {
    let page = read_to_string(format!("{ROOT}docs/guide/{page}")).expect("there is such a page");
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
    named
}
