//! Circles of imports between the files of one crate.
//!
//! A file imports the file that defines an item which it names: in `use`, or in a path in code. A
//! path is followed through modules and through imports of other files to the definition. So an
//! import through a re-export is an import of the defining file, and not of the file between.
//!
//! What is no import:
//! - `mod a;` alone, and `use` of a module: only the items that are named through it count.
//! - A re-export (`pub use`, `pub(crate) use`, ..) of an item that its own file does not name. It
//!   gives the item a place, as `mod` does. That of a trait always counts: methods name no trait.
//! - Methods and fields of a value: the file that names the type imports it.
//! - Test code, comments, and paths in strings.
//!
//! `use a::*` is an import of the module's file.
//!
//! Two files may import each other. A larger strongly connected component fails, unless the table
//! has its number of files; that number only shrinks.

use super::graph::Graph;
use super::modules::Modules;
use crate::tree::Tree;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The number of files in the largest component of each crate that has more than `FILES_MAX`.
pub(super) const TABLE: &str = "docs/internals/circles.toml";

const FILES_MAX: usize = 2;

/// The roots of a crate's libraries and programs, by the crate's folder.
pub(super) type Crates = BTreeMap<String, Vec<String>>;

/// Returns a violation for each crate whose largest component differs from its number in `table`.
pub(super) fn check(tree: &Tree, crates: &Crates, table: &str) -> Result<Vec<String>> {
    let allowed: BTreeMap<String, usize> =
        toml::from_str(table).with_context(|| format!("{TABLE} is malformed"))?;
    let mut violations = Vec::new();
    for name in allowed.keys().filter(|name| !crates.contains_key(*name)) {
        violations.push(format!("{TABLE} has `{name}`, which is no crate"));
    }
    for (name, roots) in crates {
        let mut graph = Graph::default();
        for root in roots {
            Modules::read(tree, root)?.add_imports(&mut graph);
        }
        violations.extend(violation(name, &graph, allowed.get(name).copied()));
    }
    Ok(violations)
}

fn violation(name: &str, graph: &Graph, allowed: Option<usize>) -> Vec<String> {
    let components = graph.components();
    let largest = components.first().map_or(0, BTreeSet::len);
    let limit = allowed.unwrap_or(FILES_MAX);
    if largest > limit {
        let larger = components.iter().filter(|component| component.len() > limit);
        return larger.flat_map(|component| report(name, graph, component, limit)).collect();
    }
    match allowed {
        Some(_) if largest <= FILES_MAX => vec![format!("{TABLE}: delete `{name}`: it has none")],
        Some(limit) if largest < limit => {
            vec![format!("{TABLE}: lower the {limit} of `{name}` to {largest}")]
        }
        _ => vec![],
    }
}

/// Describes a component: its files, its shortest circle, and the imports that make the circle.
fn report(name: &str, graph: &Graph, component: &BTreeSet<&str>, limit: usize) -> Vec<String> {
    let short = |path: &str| {
        let inside = path.strip_prefix(name).unwrap_or(path).trim_start_matches('/');
        inside.strip_prefix("src/").unwrap_or(inside).to_owned()
    };
    let joined = |files: &mut dyn Iterator<Item = &&str>, between: &str| {
        files.map(|file| short(file)).collect::<Vec<_>>().join(between)
    };
    let circle = graph.shortest(component);
    let mut lines = vec![
        format!(
            "{name}: {} files import each other, more than {limit}: {}",
            component.len(),
            joined(&mut component.iter(), ", ")
        ),
        format!("  the shortest circle: {}", joined(&mut circle.iter(), " -> ")),
    ];
    for pair in circle.windows(2) {
        let imports = graph.imports(pair[0], pair[1]).iter();
        lines.extend(imports.map(|(line, path)| format!("    {}:{line}: {path}", pair[0])));
    }
    vec![lines.join("\n")]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the violations of a crate `a` with these files, of which `lib.rs` is the root.
    fn violations(files: &[(&str, &str)], table: &str) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let crates = BTreeMap::from([("crates/a".into(), vec!["crates/a/src/lib.rs".into()])]);
        check(&Tree::sample(&files), &crates, table).unwrap()
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod b;\nmod c;\nmod d;\n");

    /// Returns the violations of three files, each with an item of its name in capitals.
    fn of_three(b: &str, c: &str, d: &str) -> Vec<String> {
        let [b, c, d] = [(b, "B"), (c, "C"), (d, "D")]
            .map(|(text, name)| format!("{text}\npub(crate) struct {name};\n"));
        violations(&[ROOT, ("b.rs", &b), ("c.rs", &c), ("d.rs", &d)], "")
    }

    #[test]
    fn three_files_that_import_each_other_are_reported_with_their_lines() {
        let found = of_three("\nuse crate::c::C;", "use super::d::D;", "use crate::{b::B, c::C};");
        let expected = "crates/a: 3 files import each other, more than 2: b.rs, c.rs, d.rs
  the shortest circle: c.rs -> d.rs -> c.rs
    crates/a/src/c.rs:1: super::d::D
    crates/a/src/d.rs:1: crate::c::C";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn two_files_and_a_line_of_files_are_allowed() {
        assert_eq!(of_three("use crate::c::C;", "use crate::b::B;", ""), Vec::<String>::new());
        assert_eq!(of_three("use crate::c::C;", "use crate::d::D;", ""), Vec::<String>::new());
    }

    #[test]
    fn a_path_in_code_is_an_import() {
        let c = "use super::d;\nfn x() { d::D::y(); }";
        assert_eq!(of_three("use crate::c::C;", c, "use crate::b::B;").len(), 1);
        let unused = "use super::d;";
        assert_eq!(of_three("use crate::c::C;", unused, "use crate::b::B;"), Vec::<String>::new());
        let d = "fn x() { crate::b::B::y() }";
        assert_eq!(of_three("use crate::c::C;", "use crate::d::D;", d).len(), 1);
    }

    #[test]
    fn tests_comments_and_strings_are_no_imports() {
        for text in [
            "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
            "#[cfg(test)]\nuse crate::b::B;",
            "// use crate::b::B;\n/* use crate::b::B; */",
            "const X: &str = \"{ crate::b::B }\";",
        ] {
            let found = of_three("use crate::c::C;", "use crate::d::D;", text);
            assert_eq!(found, Vec::<String>::new(), "{text}");
        }
    }

    /// Returns the violations of a file `b` with the folder of `c` and `d`, which use each other.
    fn of_folder(b: &str, d: &str) -> Vec<String> {
        let c = "use super::D;\npub(super) struct C;";
        let files = [("lib.rs", "mod b;"), ("b.rs", b), ("b/c.rs", c), ("b/d.rs", d)];
        violations(&files, "")
    }

    #[test]
    fn an_import_through_a_reexport_is_one_of_the_defining_file() {
        let b = "mod c;\nmod d;\npub(crate) use c::C;\npub(crate) use d::{D, E as F};\nstruct G;";
        let pair = "use super::C;\npub(super) struct D;\npub(super) struct E;";
        assert_eq!(of_folder(b, pair), Vec::<String>::new());
        let found = of_folder(b, &format!("use super::G;\n{pair}"));
        assert_eq!(found, Vec::<String>::new(), "b imports nothing");
        let named = format!("{b}\nfn x(y: C) {{}}");
        assert_eq!(of_folder(&named, pair), Vec::<String>::new());
        let found = of_folder(&named, &format!("use super::G;\n{pair}"));
        assert!(found[0].contains("b.rs, b/c.rs, b/d.rs"), "{found:?}");
    }

    #[test]
    fn a_private_import_and_a_reexported_trait_count() {
        let d = "use super::{C, G};\npub(super) trait D {}";
        for (text, count) in [("use d::D;", 1), ("pub use d::D;", 1), ("use d;", 0)] {
            let b = format!("mod c;\nmod d;\npub use c::C;\n{text}\nstruct G;");
            let found = of_folder(&b, d);
            assert_eq!(found.len(), count, "{text} {found:?}");
        }
    }

    #[test]
    fn an_item_of_another_crate_is_no_import() {
        let b = "mod c;\nmod d;\npub use base::B;\npub use d::D;\nuse c::C;\nstruct G;";
        let d = "use super::{B, C};\npub(super) struct D;";
        assert_eq!(of_folder(b, d), Vec::<String>::new());
        assert_eq!(of_folder(b, &d.replace('B', "G")).len(), 1);
    }

    #[test]
    fn a_name_of_a_module_and_a_function_is_told_by_its_use() {
        let files = |root: &'static str| {
            [
                ("lib.rs", root),
                ("b.rs", "use crate::c;"),
                ("c.rs", "use crate::d::D;\npub(crate) fn c() {}"),
                ("d.rs", "use crate::b::B;\npub(crate) struct D;"),
            ]
        };
        let found = violations(&files("mod b;\nmod c;\nmod d;\npub use c::c;"), "");
        assert!(found[0].contains("b.rs, c.rs, d.rs"), "{found:?}");
    }

    #[test]
    fn a_table_allows_what_there_is_and_no_more() {
        let files = [
            ROOT,
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::d::D;"),
            ("d.rs", "use crate::b::B;"),
        ];
        assert_eq!(violations(&files, "\"crates/a\" = 3\n"), Vec::<String>::new());
        let found = violations(&files, "\"crates/a\" = 4\n");
        assert_eq!(found, ["docs/internals/circles.toml: lower the 4 of `crates/a` to 3"]);
        let found = violations(&[("lib.rs", "")], "\"crates/b\" = 3\n");
        assert!(found[0].contains("`crates/b`, which is no crate"), "{found:?}");
        let pair = [ROOT, ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::b::B;"), ("d.rs", "")];
        let found = violations(&pair, "\"crates/a\" = 3\n");
        assert_eq!(found, ["docs/internals/circles.toml: delete `crates/a`: it has none"]);
        assert!(check(&Tree::default(), &Crates::new(), "a = \"b\"").is_err());
    }
}
