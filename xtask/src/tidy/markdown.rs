use super::violation::at;
use crate::tree::Tree;

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Finds relative links of one Markdown file to a missing file or heading.
pub(super) fn links(path: &str, text: &str, tree: &Tree) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut violations = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(&parts(line).step_by(2).collect::<String>()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let linked = if file.is_empty() {
                Some(path.to_owned())
            } else {
                resolve(folder, file).filter(|file| tree.has(file))
            };
            let Some(linked) = linked else {
                violations.push(at(path, number, format!("the link to {target} leads nowhere")));
                continue;
            };
            // The text of this file may be newer than the one in `tree`.
            let page = if linked == path { Some(text) } else { tree.get(&linked) };
            let is_there = |page| heading.is_empty() || anchors(page).any(|it| it == heading);
            if !page.is_none_or(is_there) {
                let sentence = format!("{linked} has no heading for the link to {target}");
                violations.push(at(path, number, sentence));
            }
        }
    }
    violations
}

/// Returns the anchor of each heading of a page: lower case, words joined by hyphens.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#').strip_prefix(' ')?;
        line.starts_with('#').then(|| {
            let title = title.trim().to_lowercase();
            let kept = title.chars().filter(|it| it.is_alphanumeric() || "-_ ".contains(*it));
            kept.map(|it| if it == ' ' { '-' } else { it }).collect()
        })
    })
}

/// Finds missing paths into `crates/` in the description of the architecture.
pub(super) fn architecture(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.get(ARCHITECTURE) else {
        return vec![at(ARCHITECTURE, 1, "the description of the architecture is missing")];
    };
    let mut violations = Vec::new();
    let mut has_path = false;
    for (index, line) in text.lines().enumerate() {
        let code = parts(line).skip(1).step_by(2);
        for path in code.filter(|code| code.starts_with("crates/")) {
            has_path = true;
            if !tree.has(path) {
                violations.push(at(ARCHITECTURE, index + 1, format!("there is no {path}")));
            }
        }
    }
    if !has_path {
        violations.push(at(ARCHITECTURE, 1, "it names no path into crates/, as `crates/base`"));
    }
    violations
}

/// Returns the numbered lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        (!is_fence && !is_fenced).then_some((index + 1, line))
    })
}

/// Returns the parts of a line between its backticks: text and code alternate.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
}

/// Returns the targets of the links of `line`: `[text](target)`, `![text](target)` and `[name]:
/// target`.
fn targets(line: &str) -> Vec<String> {
    let definition = line.starts_with('[').then(|| line.split_once("]: ")).flatten();
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let all = definition.map(|(_, target)| target).into_iter().chain(inline);
    all.filter_map(|target| target.split_whitespace().next()).map(String::from).collect()
}

/// Resolves `target` in `folder` to a path from the root of the checkout, if it is inside.
fn resolve(folder: &str, target: &str) -> Option<String> {
    if target.starts_with('/') {
        return None;
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(text: &str) -> Vec<String> {
        let tree = Tree::sample(&[
            ("docs/guide/here.md", ""),
            ("docs/a/b.svg", ""),
            ("README.md", "# Top\n\n## `[power]`, and more\n"),
        ]);
        links("docs/guide/here.md", text, &tree)
    }

    #[test]
    fn links_to_files_folders_and_elsewhere_hold() {
        let text = "[a](here.md) [b](../../README.md#top) ![c](../a/b.svg \"title\") [d](../a/)\n\
            [e](https://example.org/x) [f](#below) [g](mailto:a@example.org) [h](../..)\n\
            [i]: ../a/b.svg\n# Below\n[j](../../README.md#power-and-more)\n";
        assert_eq!(dead(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_nothing_is_named_with_its_line() {
        for target in ["gone.md", "../README.md", "../../../README.md", "/here.md", "here"] {
            let sentence = [format!("docs/guide/here.md:2: the link to {target} leads nowhere")];
            assert_eq!(dead(&format!("\n[a](here.md) [b]({target})\n")), sentence);
            assert_eq!(dead(&format!("\n[b]: {target}\n")), sentence);
        }
    }

    #[test]
    fn a_link_to_no_heading_is_named_with_its_line() {
        let sentence = ["docs/guide/here.md:1: README.md has no heading for the link to \
                         ../../README.md#gone"];
        assert_eq!(dead("[a](../../README.md#gone)\n"), sentence);
        assert_eq!(dead("[a](#gone)\n```\n# Gone\n```\n").len(), 1);
    }

    #[test]
    fn code_is_not_a_link() {
        assert_eq!(dead("```\n[a](gone.md)\n```\n`[a](gone.md)`\n"), Vec::<String>::new());
        assert_eq!(dead("```\n```\n[a](gone.md)\n").len(), 1);
    }

    #[test]
    fn the_architecture_names_paths_that_are_there() {
        let check = |text| {
            architecture(&Tree::sample(&[(ARCHITECTURE, text), ("crates/a/src/lib.rs", "")]))
        };
        assert_eq!(check("`crates/a/src/lib.rs`, `crates/a/`, `a::b`"), Vec::<String>::new());
        let sentence = "ARCHITECTURE.md:2: there is no crates/a/src/gone.rs";
        assert_eq!(check("`crates/a`\nsee `crates/a/src/gone.rs`\n"), [sentence]);
        assert_eq!(check("crates/gone without backticks").len(), 1);
        assert_eq!(architecture(&Tree::default()).len(), 1);
    }
}
