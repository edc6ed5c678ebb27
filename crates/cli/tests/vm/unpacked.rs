use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const LOADER: &str = "ld-linux-x86-64.so.2";

/// A release's packages, unpacked into a folder.
#[derive(Debug)]
pub(crate) struct Unpacked {
    root: PathBuf,
}

impl Unpacked {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where `path` is, whether the release has it in `/` or, as later ones do, in `/usr`.
    #[track_caller]
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let places = [self.root.join(path), self.root.join("usr").join(path)];
        let found = places.into_iter().find(|place| place.exists());
        found.unwrap_or_else(|| panic!("{} has no {path}", self.root.display()))
    }

    /// A program of the release, which runs here with the libraries of the release.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.loader();
        command.arg(self.path(program));
        command
    }

    /// The loader and the libraries that a program of the release needs.
    pub(crate) fn libraries(&self, program: &str) -> Vec<PathBuf> {
        let output = self.loader().arg("--list").arg(self.path(program)).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        let listing = String::from_utf8(output.stdout).unwrap();
        let words = listing.lines().flat_map(str::split_whitespace);
        let paths = words.filter(|word| Path::new(word).starts_with(&self.root));
        paths.map(PathBuf::from).collect()
    }

    fn loader(&self) -> Command {
        let mut command = Command::new(self.path(&format!("lib64/{LOADER}")));
        // The last one is of libraries that only fio's other libraries need.
        let folders =
            ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/ceph"];
        let folders = folders.map(|folder| self.root.join(folder).into_os_string());
        command.arg("--library-path").arg(folders.join(&OsString::from(":")));
        command
    }
}
