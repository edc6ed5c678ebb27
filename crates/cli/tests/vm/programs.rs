//! Programs of this checkout for a guest, which has other libraries than this machine: `kvasir`
//! comes with its own in a folder of their own, the example in C without any.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Where in a guest `kvasir` is, and what it needs.
const FOLDER: &str = "kvasir";

/// A file of a guest: its path and its content.
pub(crate) type Content = (String, Vec<u8>);

/// The files of all programs, made once.
pub(crate) fn files() -> &'static [Content] {
    static FILES: OnceLock<Vec<Content>> = OnceLock::new();
    FILES.get_or_init(|| {
        let scratch = tempfile::tempdir().unwrap();
        let mut files = kvasir(scratch.path());
        files.push(("bin/passthrough".into(), example(scratch.path())));
        files
    })
}

/// The folders of [`files`] beside those that every guest has.
pub(crate) fn folders() -> [&'static str; 1] {
    [FOLDER]
}

/// The program without what only a debugger reads, its libraries and their loader, and a script
/// that starts it.
fn kvasir(scratch: &Path) -> Vec<Content> {
    let program = Path::new(env!("CARGO_BIN_EXE_kvasir"));
    let stripped = scratch.join("kvasir");
    output(Command::new("strip").arg("-o").arg(&stripped).arg(program));
    let mut files = vec![(format!("{FOLDER}/kvasir"), fs::read(stripped).unwrap())];
    let mut loader = None;
    for library in libraries(program) {
        let name = library.file_name().unwrap().to_str().unwrap().to_owned();
        let path = format!("{FOLDER}/{name}");
        if name.starts_with("ld-linux") {
            loader = Some(path.clone());
        }
        files.push((path, fs::read(library).unwrap()));
    }
    let loader = loader.expect("a program is started by a loader");
    let start =
        format!("#!/bin/sh\nexec /{loader} --library-path /{FOLDER} /{FOLDER}/kvasir \"$@\"\n");
    files.push(("bin/kvasir".into(), start.into_bytes()));
    files
}

/// What `program` needs on this machine: words of ldd's that are paths.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listing = output(Command::new("ldd").arg(program));
    let words = listing.lines().flat_map(str::split_whitespace);
    words.filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// The example of the guide.
fn example(scratch: &Path) -> Vec<u8> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hosts/passthrough.c");
    let program = scratch.join("passthrough");
    output(Command::new("cc").args(["-static", "-O2", "-o"]).arg(&program).arg(source));
    fs::read(program).unwrap()
}

/// What a command that succeeds prints.
fn output(command: &mut Command) -> String {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}
