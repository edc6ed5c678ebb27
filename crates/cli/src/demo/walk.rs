use super::source::Source;
use super::treatment::{Treatment, Treatments};
use crate::progress::{Bar, Progress, Unit};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// The root of a walk: a folder, or a single file.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    /// The file's name, if the root is a file.
    name: Option<PathBuf>,
}

/// A listed regular file.
#[derive(Debug)]
pub(super) struct Found {
    /// Path from the root.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Sorted by path, folder by folder.
    pub(super) files: Vec<Found>,
    /// Counts of paths that were left out or are special.
    pub(super) treatments: Treatments,
}

/// Files between two updates of the progress.
const PROGRESS_STEP: usize = 512;

impl Root {
    /// Follows links to the folder or file at `path`. Fails unless `path` is a folder that can be
    /// listed, or a regular file that can be read.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            drop(fs::read_dir(path)?);
            return Ok(Self { path: path.to_owned(), name: None });
        }
        let file = fs::canonicalize(path)?;
        let Some(mut source) = Source::open(&file, 1)? else {
            return Err(io::Error::other("it is neither a folder nor a regular file"));
        };
        source.next_chunk()?;
        Ok(Self { path: file, name: path.file_name().map(PathBuf::from) })
    }

    /// Returns the path of the file that was listed as `path`.
    pub(super) fn join(&self, path: &Path) -> PathBuf {
        if self.name.is_some() { self.path.clone() } else { self.path.join(path) }
    }
}

/// Lists all regular files below `root`. `is_all` includes folders that tools can regenerate.
pub(super) fn walk(root: &Root, is_all: bool, progress: Progress) -> Walked {
    let bar = progress.bar("files found", Unit::Count);
    let mut walk = Walk { root, is_all, walked: Walked::default(), next: Vec::new(), bar };
    match &root.name {
        Some(name) => {
            let bytes = fs::metadata(&root.path).map_or(0, |metadata| metadata.len());
            walk.walked.files.push(Found { path: name.clone(), bytes });
        }
        None => walk.list(Path::new("")),
    }
    while let Some(next) = walk.next.pop() {
        match next {
            Next::Folder(folder) => walk.list(&folder),
            Next::File(file) => walk.push(file),
        }
    }
    walk.walked
}

struct Walk<'a> {
    root: &'a Root,
    is_all: bool,
    walked: Walked,
    /// Pending folders, the next one last. A list instead of recursion: folders may be nested
    /// deeper than the stack allows.
    next: Vec<Next>,
    bar: Bar,
}

enum Next {
    Folder(PathBuf),
    File(Found),
}

impl Walk<'_> {
    fn push(&mut self, file: Found) {
        self.walked.files.push(file);
        let count = self.walked.files.len();
        if count.is_multiple_of(PROGRESS_STEP) {
            self.bar.set(count as u64, 0);
        }
    }

    fn list(&mut self, folder: &Path) {
        let entries = fs::read_dir(self.root.join(folder)).and_then(Iterator::collect);
        let mut entries: Vec<DirEntry> = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let reason = error.to_string();
                let treatment = Treatment::UnreadableFolder;
                self.walked.treatments.add_because(treatment, folder, &reason);
                return;
            }
        };
        entries.sort_unstable_by_key(DirEntry::file_name);
        let before = self.next.len();
        for entry in entries {
            let path = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) => self.take(path, &entry, kind),
                Err(error) => self.unreadable(&path, &error),
            }
        }
        self.next[before..].reverse();
    }

    fn take(&mut self, path: PathBuf, entry: &DirEntry, kind: FileType) {
        let treatments = &mut self.walked.treatments;
        if kind.is_dir() {
            if !self.is_all && is_made(&entry.path()) {
                treatments.add(Treatment::SkippedFolder, &path);
            } else {
                self.next.push(Next::Folder(path));
            }
        } else if kind.is_symlink() {
            treatments.add(Treatment::SymbolicLink, &path);
        } else if kind.is_file() {
            match entry.metadata() {
                Ok(metadata) => {
                    self.next.push(Next::File(Found { path, bytes: metadata.len() }));
                }
                Err(error) => self.unreadable(&path, &error),
            }
        } else {
            treatments.add(Treatment::OtherKind, &path);
        }
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        let treatment = Treatment::UnreadableFile;
        self.walked.treatments.add_because(treatment, path, &error.to_string());
    }
}

/// True if a tool made `folder` and can regenerate it: git's folder, or cargo's build output.
fn is_made(folder: &Path) -> bool {
    let is_named = |name: &str| folder.file_name() == Some(OsStr::new(name));
    is_named(".git") || is_named("target") && folder.join("CACHEDIR.TAG").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::{TempDir, tempdir};

    /// Makes a folder with these files, each of which contains its own path.
    fn tree(files: &[&str]) -> TempDir {
        let folder = tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn walked(path: &Path, is_all: bool) -> Walked {
        walk(&Root::open(path).unwrap(), is_all, Progress::new(true))
    }

    fn paths(walked: &Walked) -> Vec<&str> {
        walked.files.iter().map(|file| file.path.to_str().unwrap()).collect()
    }

    #[test]
    fn files_come_sorted_folder_by_folder() {
        let folder = tree(&["b", "a/z", "a/b/c", "c/a", "a-b", "A"]);
        let walked = walked(folder.path(), false);
        assert_eq!(paths(&walked), ["A", "a/b/c", "a/z", "a-b", "b", "c/a"]);
        assert!(walked.files.iter().all(|file| file.bytes == file.path.as_os_str().len() as u64));
    }

    #[test]
    fn folders_that_tools_make_are_counted_and_taken_only_if_asked_for() {
        let files = ["target/CACHEDIR.TAG", "target/x", ".git/config", "a/target/y", "a/.git"];
        let folder = tree(&files);
        let without = walked(folder.path(), false);
        assert_eq!(paths(&without), ["a/.git", "a/target/y"]);
        assert_eq!(without.treatments.count(Treatment::SkippedFolder), 2);
        let with = walked(folder.path(), true);
        assert_eq!(with.files.len(), files.len());
        assert_eq!(with.treatments.count(Treatment::SkippedFolder), 0);
    }

    #[test]
    fn a_folder_that_is_named_is_walked_whatever_it_is() {
        let folder = tree(&[".git/config"]);
        assert_eq!(paths(&walked(&folder.path().join(".git"), false)), ["config"]);
    }

    #[test]
    fn a_single_file_is_found_under_its_name() {
        let folder = tree(&["a/file"]);
        let path = folder.path().join("a/file");
        let root = Root::open(&path).unwrap();
        let walked = walk(&root, false, Progress::new(true));
        assert_eq!(paths(&walked), ["file"]);
        assert_eq!(root.join(&walked.files[0].path), fs::canonicalize(&path).unwrap());
    }

    #[test]
    fn a_folder_that_vanishes_is_counted() {
        let folder = tree(&["a"]);
        let root = Root::open(folder.path()).unwrap();
        drop(folder);
        let walked = walk(&root, false, Progress::new(true));
        assert_eq!(walked.treatments.count(Treatment::UnreadableFolder), 1);
        assert!(Root::open(&root.path).is_err() && Root::open(Path::new("/dev/null")).is_err());
    }
}
