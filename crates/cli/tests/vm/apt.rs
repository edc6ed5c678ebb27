//! apt with a state of its own: it needs no rights, and the machine's packages stay as they are.

use std::env::consts::ARCH;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds that a run of apt may take.
const LIMIT: &str = "150";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Downloads `packages` and what they depend on into `folder`. Of several versions it takes that of
/// the last suite. Returns the archives; an error is a sentence.
pub(crate) fn download(
    folder: &Path,
    suites: &[&str],
    packages: &[&str],
) -> Result<Vec<PathBuf>, String> {
    if ARCH != "x86_64" {
        return Err(format!("the packages are for x86_64, and this is {ARCH}"));
    }
    let unusable = |error: io::Error| format!("{} cannot be used: {error}", folder.display());
    let options = configure(folder, &address()?, suites).map_err(unusable)?;
    apt_get(&[&options, "update"])?;
    let preferred = format!("--target-release={}", suites[suites.len() - 1]);
    let install = [&options, "install", "--download-only", "--yes", &preferred];
    apt_get(&[&install[..], packages].concat())?;
    let entries = fs::read_dir(folder.join("archives")).map_err(unusable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths = paths.collect::<io::Result<Vec<_>>>().map_err(unusable)?;
    let is_archive = |path: &PathBuf| path.extension().is_some_and(|found| found == "deb");
    Ok(paths.into_iter().filter(is_archive).collect())
}

/// Where the machine's own release comes from. Debian's other releases are there too.
fn address() -> Result<String, String> {
    let release = fs::read_to_string("/etc/os-release").map_err(|error| error.to_string())?;
    let field = |name: &str| {
        let mut lines = release.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"')
    };
    if field("ID") != "debian" {
        return Err("the packages are Debian's, and this is another system".into());
    }
    let format = "--format=$(RELEASE) $(REPO_URI)";
    let sources = apt_get(&["indextargets", "--no-release-info", format, "Created-By: Packages"])?;
    let names = [field("VERSION_CODENAME"), "stable", "oldstable", "testing", "unstable", "sid"];
    let mut sources = sources.lines().filter_map(|line| line.split_once(' '));
    let own = sources.find(|(release, _)| names.contains(release));
    own.map(|(_, address)| address.into()).ok_or("apt has no source of Debian's packages".into())
}

/// Makes the folders that apt wants, and returns the option that has it use them.
fn configure(folder: &Path, address: &str, suites: &[&str]) -> io::Result<String> {
    for name in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::write(folder.join("status"), "")?;
    let suites = suites.join(" ");
    let source = format!(
        "Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main\nSigned-By: {KEYRING}\n"
    );
    fs::write(folder.join("debian.sources"), source)?;
    let folder = folder.display();
    let configuration = format!(
        r#"
        Dir::State "{folder}";
        Dir::State::lists "{folder}/lists/";
        Dir::State::status "{folder}/status";
        Dir::Cache "{folder}";
        Dir::Cache::archives "{folder}/archives/";
        Dir::Etc::sourcelist "{folder}/debian.sources";
        Dir::Etc::sourceparts "/dev/null";
        Dir::Etc::preferences "/dev/null";
        Dir::Etc::preferencesparts "/dev/null";
        APT::Architecture "amd64";
        APT::Install-Recommends "false";
        APT::Sandbox::User "root";
        APT::Update::Error-Mode "any";
        Acquire::Languages "none";
        Acquire::http::Timeout "20";
        Acquire::https::Timeout "20";
        Debug::NoLocking "true";
        "#
    );
    let path = format!("{folder}/apt.conf");
    fs::write(&path, configuration)?;
    Ok(format!("--config-file={path}"))
}

/// What apt printed.
fn apt_get(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("timeout").args([LIMIT, "apt-get"]).args(arguments).output();
    let output = output.map_err(|error| format!("`timeout apt-get` cannot be run: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let command = arguments.iter().find(|word| !word.starts_with('-')).unwrap_or(&"");
        let error = errors.lines().next().unwrap_or("it does not say why");
        return Err(format!("`apt-get {command}` failed ({}): {error}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
