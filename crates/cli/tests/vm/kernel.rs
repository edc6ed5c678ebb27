use crate::unpacked::Unpacked;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a guest loads, with what that depends on.
const WANTED: [&str; 5] = ["virtio_pci", "virtio_net", "nvme", "nvme_tcp", "ext4"];

/// What it asks the kernel for by another name than a module's: later kernels have it built in.
const WANTED_IF_THERE: [&str; 1] = ["crc32c_generic"];

/// A kernel of Debian.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) image: PathBuf,
    /// Names and code, each after those that it depends on.
    pub(crate) modules: Vec<(String, Vec<u8>)>,
}

impl Kernel {
    pub(crate) fn of(unpacked: &Unpacked) -> Self {
        let folder = unpacked.path("lib/modules");
        let release = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().file_name();
        let folder = folder.join(&release);
        let mut image = folder.join("vmlinuz");
        if !image.exists() {
            image = unpacked.path(&format!("boot/vmlinuz-{}", release.to_str().unwrap()));
        }
        let mut files = Vec::new();
        walk(&folder.join("kernel"), &mut files);
        let builtin = fs::read_to_string(folder.join("modules.builtin")).unwrap();
        let builtin = builtin.lines().map(|line| name(Path::new(line))).collect();
        let mut choice = Choice { unpacked, files, builtin, modules: Vec::new() };
        for name in WANTED_IF_THERE {
            if choice.has(name) {
                choice.add(name);
            }
        }
        for name in WANTED {
            choice.add(name);
        }
        Self { image, modules: choice.modules }
    }
}

struct Choice<'a> {
    unpacked: &'a Unpacked,
    files: Vec<PathBuf>,
    builtin: Vec<String>,
    modules: Vec<(String, Vec<u8>)>,
}

impl Choice<'_> {
    fn has(&self, wanted: &str) -> bool {
        self.files.iter().any(|file| name(file) == wanted)
    }

    fn add(&mut self, wanted: &str) {
        let is_there = self.modules.iter().any(|(name, _)| name == wanted);
        if is_there || self.builtin.iter().any(|name| name == wanted) {
            return;
        }
        let file = self.files.iter().find(|file| name(file) == wanted);
        let file = file.unwrap_or_else(|| panic!("the kernel has no module {wanted}"));
        let code = self.read(file);
        for other in dependencies(&code) {
            self.add(&other);
        }
        self.modules.push((wanted.into(), code));
    }

    /// Later kernels have their modules compressed.
    fn read(&self, file: &Path) -> Vec<u8> {
        if file.extension() == Some(OsStr::new("ko")) {
            return fs::read(file).unwrap();
        }
        let mut unxz = Command::new(self.unpacked.path("bin/busybox"));
        let output = unxz.args(["unxz", "-c"]).arg(file).output().unwrap();
        assert!(output.status.success(), "{} is not compressed by xz", file.display());
        output.stdout
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// A module's name as the kernel shows it: that of its file, with each `-` as `_`.
fn name(file: &Path) -> String {
    let name = file.file_name().and_then(OsStr::to_str).unwrap();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

/// A module says what it depends on in its section `.modinfo`, of strings that end with a zero.
fn dependencies(code: &[u8]) -> Vec<String> {
    let mut strings = code.split(|byte| *byte == 0);
    let names = strings.find_map(|string| string.strip_prefix(b"depends="));
    let names = String::from_utf8_lossy(names.expect("a module says what it depends on"));
    names.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect()
}
