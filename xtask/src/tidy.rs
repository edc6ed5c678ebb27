mod idioms;
mod markdown;
mod paths;
mod rust;
mod violation;

use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Prints each violation of the style guide as `path:line: sentence`, and fails if there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let count = tree.with_extension("rs").count();
    ensure!(count > 0, "there is no Rust file to check");
    let mut violations = check(&tree);
    let table = root.join(idioms::TABLE);
    let table = std::fs::read_to_string(table).context(idioms::TABLE)?;
    violations.extend(idioms::check(&tree, &table)?);
    for violation in &violations {
        println!("{violation}");
    }
    ensure!(violations.is_empty(), "the style guide is broken in {} place(s)", violations.len());
    println!("{count} Rust files and all Markdown files follow the style guide");
    Ok(())
}

fn check(tree: &Tree) -> Vec<String> {
    let mut violations = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        violations.extend(rust::check(path, text));
    }
    for (path, text) in tree.with_extension("md") {
        violations.extend(markdown::links(path, text, tree));
    }
    violations.extend(markdown::architecture(tree));
    violations.extend(paths::check(tree));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_is_checked() {
        let tree = Tree::sample(&[
            ("crates/a/src/b.rs", "\u{e9}\n"),
            ("docs/c.md", "[d](d.md)\n"),
            ("ARCHITECTURE.md", "`crates/gone`\n"),
            ("docs/internals/paths.md", "| `gone.rs` | `go` | |\n"),
        ]);
        let violations = check(&tree);
        let starts: Vec<_> = violations.iter().map(|line| line.split(": ").next()).collect();
        assert_eq!(
            starts,
            [
                "crates/a/src/b.rs:1",
                "docs/c.md:1",
                "ARCHITECTURE.md:1",
                "docs/internals/paths.md:1",
                "docs/internals/paths.md:1",
            ]
            .map(Some)
        );
    }
}
