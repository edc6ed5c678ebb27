//! The first file system of a guest, in the format that Linux calls newc.

use crate::kernel::Kernel;
use crate::programs;
use crate::unpacked::Unpacked;
use std::collections::BTreeSet;
use std::fs;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;
const CHARACTERS: u32 = 0o020_600;

/// The programs of the release beside busybox.
const PROGRAMS: [&str; 5] =
    ["sbin/nvme", "sbin/mkfs.ext4", "sbin/fsck.ext4", "sbin/blkzone", "bin/fio"];

/// By what a guest identifies itself. From 6.12 on Linux wants both, and always the same pair.
const HOST_ID: &str = "6b766173-6972-4000-8000-00000000000a";

/// A busybox, programs of the release, those of this checkout, the kernel's modules, and `init`.
pub(crate) fn build(unpacked: &Unpacked, kernel: &Kernel, init: &str) -> Vec<u8> {
    let mut archive = Archive(Vec::new());
    for folder in ["bin", "dev", "etc", "etc/nvme", "lib", "modules", "proc", "sys", "tmp"] {
        archive.add(folder, FOLDER, (0, 0), b"");
    }
    for folder in programs::folders() {
        archive.add(folder, FOLDER, (0, 0), b"");
    }
    for (path, content) in programs::files() {
        archive.add(path, PROGRAM, (0, 0), content);
    }
    // Without it the kernel has no console for `init`.
    archive.add("dev/console", CHARACTERS, (5, 1), b"");
    archive.add("init", PROGRAM, (0, 0), init.as_bytes());
    archive.add("bin/sh", LINK, (0, 0), b"busybox");
    archive.add("lib64", LINK, (0, 0), b"lib");
    let mut libraries = BTreeSet::new();
    for program in ["bin/busybox"].into_iter().chain(PROGRAMS) {
        let name = program.rsplit('/').next().unwrap_or(program);
        let bytes = fs::read(unpacked.path(program)).unwrap();
        archive.add(&format!("bin/{name}"), PROGRAM, (0, 0), &bytes);
    }
    for program in PROGRAMS {
        libraries.extend(unpacked.libraries(program));
    }
    for library in libraries {
        let name = library.file_name().unwrap().to_str().unwrap().to_owned();
        archive.add(&format!("lib/{name}"), PROGRAM, (0, 0), &fs::read(library).unwrap());
    }
    for (place, (name, code)) in kernel.modules.iter().enumerate() {
        archive.add(&format!("modules/{place:02}-{name}.ko"), PROGRAM, (0, 0), code);
    }
    archive.add("etc/nvme/hostid", PROGRAM, (0, 0), HOST_ID.as_bytes());
    let name = format!("nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}");
    archive.add("etc/nvme/hostnqn", PROGRAM, (0, 0), name.as_bytes());
    archive.add("TRAILER!!!", 0, (0, 0), b"");
    archive.0
}

struct Archive(Vec<u8>);

impl Archive {
    /// A file: its path, its type and rights, the numbers of a device, its content.
    fn add(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let number = u32::try_from(self.0.len()).expect("the archive is below 4 GiB");
        let length = u32::try_from(content.len()).expect("a file is below 4 GiB");
        let path_length = u32::try_from(path.len() + 1).expect("a path is short");
        let (major, minor) = device;
        self.0.extend(b"070701");
        for field in [number, mode, 0, 0, 1, 0, length, 0, 0, major, minor, path_length, 0] {
            self.0.extend(format!("{field:08x}").bytes());
        }
        self.0.extend(path.bytes());
        self.0.push(0);
        self.pad();
        self.0.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}
