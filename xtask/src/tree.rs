use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The files of the checkout by their path from its root, in order. Rust and Markdown files have
/// their text.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// Reads every file that git does not ignore. Without git, or if it refuses the checkout, reads
    /// every file outside `.git` and `target`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        if let Some(listing) = git_files(root) {
            paths.extend(listing.split('\0').filter(|path| !path.is_empty()).map(String::from));
        } else {
            println!("git does not list this checkout, so all files outside `target` are checked");
            walk(root, "", &mut paths)?;
        }
        let mut tree = BTreeMap::new();
        for path in paths {
            let file = root.join(&path);
            if !file.is_file() {
                continue;
            }
            let text = if is_text(&path) {
                let bytes = fs::read(&file).with_context(|| format!("cannot read {path}"))?;
                String::from_utf8_lossy(&bytes).into_owned()
            } else {
                String::new()
            };
            tree.insert(path, text);
        }
        Ok(Self(tree))
    }

    /// Returns a tree in memory.
    #[cfg(test)]
    pub(crate) fn sample(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect())
    }

    /// Returns the text of one file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns paths and texts of the files with this extension.
    pub(crate) fn with_extension(&self, extension: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .filter(move |(path, _)| has_extension(path, extension))
    }

    /// True when `path` is a file, or a folder that contains one.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        path.is_empty()
            || self.0.contains_key(path)
            || self
                .0
                .range(folder.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&folder))
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn is_text(path: &str) -> bool {
    has_extension(path, "rs") || has_extension(path, "md")
}

fn git_files(root: &Path) -> Option<String> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {folder}"))? {
        let entry = entry.with_context(|| format!("cannot list {folder}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if !entry.file_type().with_context(|| format!("cannot look at {path}"))?.is_dir() {
            paths.push(path);
        } else if name != ".git" && name != "target" {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_its_files_and_their_folders_only() {
        let tree = Tree::sample(&[("a/b/c.rs", ""), ("a-b.md", "")]);
        for present in ["a/b/c.rs", "a/b", "a/b/", "a", "a-b.md", ""] {
            assert!(tree.has(present), "{present}");
        }
        for absent in ["a/b/c", "b", "a-b", "a/b/c.rs/d"] {
            assert!(!tree.has(absent), "{absent}");
        }
    }

    #[test]
    fn git_and_the_walk_see_this_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert!(Tree::read(root).unwrap().get("xtask/src/tree.rs").is_some());
        let mut paths = Vec::new();
        walk(root, "", &mut paths).unwrap();
        assert!(paths.iter().any(|path| path == "xtask/src/tree.rs"));
        assert!(!paths.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
    }
}
