use crate::apt;
use crate::report::say;
use crate::unpacked::Unpacked;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

/// What a guest is made of.
const PACKAGES: [&str; 7] = [
    "busybox-static",
    "e2fsprogs",
    "fio",
    "linux-image-cloud-amd64",
    "nvme-cli",
    "qemu-system-x86",
    "util-linux",
];

/// Unpacks the packages of a release; the last of its suites is preferred. Later calls use the
/// cached result; one process at a time fetches a release. An error is a sentence.
pub(crate) fn unpacked(suites: &[&str]) -> Result<Unpacked, String> {
    let cache = cache()?;
    let unusable = |error: io::Error| format!("{} cannot be used: {error}", cache.display());
    fs::create_dir_all(&cache).map_err(unusable)?;
    let release = suites[suites.len() - 1];
    let folder = cache.join(format!("{release}_{}", PACKAGES.join("_")));
    let lock = File::create(cache.join(format!("{release}.lock"))).map_err(unusable)?;
    lock.lock().map_err(unusable)?;
    if !folder.exists() {
        let started = Instant::now();
        let scratch = tempfile::tempdir_in(&cache).map_err(unusable)?;
        let archives = apt::download(scratch.path(), suites, &PACKAGES)?;
        let fetched = started.elapsed().as_secs_f64();
        let root = scratch.path().join("root");
        fs::create_dir(&root).map_err(unusable)?;
        unpack_all(&archives, &root)?;
        // It has its name only when it is whole.
        fs::rename(&root, &folder).map_err(unusable)?;
        let unpacked = started.elapsed().as_secs_f64() - fetched;
        let count = archives.len();
        say(&format!(
            "{count} packages of {release} fetched in {fetched:.1} s, unpacked in {unpacked:.1} s"
        ));
    }
    Ok(Unpacked::new(folder))
}

/// Outside the checkout, so that it outlives it.
fn cache() -> Result<PathBuf, String> {
    let given = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let usual = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = given.or_else(usual).ok_or("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(folder.join("kvasir").join("vm"))
}

fn unpack_all(archives: &[PathBuf], root: &Path) -> Result<(), String> {
    let (some, others) = archives.split_at(archives.len() / 2);
    thread::scope(|scope| {
        let beside = scope.spawn(|| some.iter().try_for_each(|archive| unpack(archive, root)));
        let here = others.iter().try_for_each(|archive| unpack(archive, root));
        here.and(beside.join().expect("unpacking does not panic"))
    })
}

fn unpack(archive: &Path, root: &Path) -> Result<(), String> {
    let output = Command::new("dpkg-deb").arg("--extract").args([archive, root]).output();
    let output = output.map_err(|error| format!("`dpkg-deb` cannot be run: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} cannot be unpacked: {}", archive.display(), errors.trim()));
    }
    Ok(())
}
