mod circles;
mod determinism;
mod graph;
mod modules;
mod scan;

use crate::tree::Tree;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::Command;

const FILE: &str = "docs/internals/layers.toml";
const EVERY: &str = "*";
const REACTOR: &str = "reactor";

/// The crates in the order of the data path, and their allowed dependencies.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    crates: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    name: String,
    device: bool,
    uses: Vec<String>,
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Workspace {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    #[serde(default)]
    manifest_path: String,
    dependencies: Vec<Dependency>,
    #[serde(default)]
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: String,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Prints each dependency between crates that the layers forbid, each use of the machine by a
/// device crate, and each circle of imports between files. Fails if there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let text =
        fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let layers: Layers = toml::from_str(&text).with_context(|| format!("{FILE} is malformed"))?;
    let workspace = workspace(root)?;
    let tree = Tree::read(root)?;
    let count = workspace.packages.len();
    ensure!(count > 0, "the workspace has no crate to check");
    let mut violations = order(&layers);
    violations.extend(arrows(&layers, &workspace));
    for layer in layers.crates.iter().filter(|layer| layer.device) {
        let folder = library(&workspace, root, &layer.name)
            .with_context(|| format!("the device crate `{}` has no library", layer.name))?;
        violations.extend(determinism::check(&layer.name, &folder, &tree));
    }
    let table = fs::read_to_string(root.join(circles::TABLE)).context(circles::TABLE)?;
    violations.extend(circles::check(&tree, &crates(&workspace, root), &table)?);
    for violation in &violations {
        println!("{violation}");
    }
    ensure!(violations.is_empty(), "the layers are broken in {} place(s)", violations.len());
    println!("{count} crates keep to {FILE}");
    Ok(())
}

fn workspace(root: &Path) -> Result<Workspace> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot run `cargo metadata`")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cargo metadata` failed: {errors}");
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed something else")
}

impl Layers {
    fn position(&self, name: &str) -> Option<usize> {
        self.crates.iter().position(|layer| layer.name == name)
    }

    /// True when `user` may depend on `used`, which is listed above it.
    fn allows(&self, user: usize, used: usize, is_dev: bool) -> bool {
        let (user_layer, used_layer) = (&self.crates[user], &self.crates[used]);
        let is_named = user_layer.uses.iter().any(|name| name == EVERY || *name == used_layer.name);
        used < user && (is_dev || is_named) || is_dev && used_layer.name == REACTOR
    }
}

/// Finds mistakes in the file: a crate listed twice, and one that uses a crate not above it.
fn order(layers: &Layers) -> Vec<String> {
    let mut violations = Vec::new();
    for (index, layer) in layers.crates.iter().enumerate() {
        if layers.position(&layer.name) != Some(index) {
            violations.push(format!("{FILE} lists `{}` twice", layer.name));
        }
        let names = layer.uses.iter().filter(|name| *name != EVERY);
        for name in names.filter(|name| layers.position(name).is_none_or(|used| used >= index)) {
            let sentence =
                format!("{FILE} lets `{}` use `{name}`, which is not above it", layer.name);
            violations.push(sentence);
        }
    }
    violations
}

fn arrows(layers: &Layers, workspace: &Workspace) -> Vec<String> {
    let mut violations = Vec::new();
    for package in &workspace.packages {
        let name = short(&package.name);
        let Some(user) = layers.position(name) else {
            violations.push(format!("{FILE} does not list the crate `{name}`"));
            continue;
        };
        let is_ours = |found: &&Dependency| workspace.packages.iter().any(|p| p.name == found.name);
        for dependency in package.dependencies.iter().filter(is_ours) {
            let is_dev = dependency.kind.as_deref() == Some("dev");
            let used = short(&dependency.name);
            let is_allowed = layers.position(used).is_some_and(|p| layers.allows(user, p, is_dev));
            if !is_allowed {
                let section = if is_dev { "dev-dependencies" } else { "dependencies" };
                let sentence = format!("{FILE} does not let `{name}` have `{used}` in [{section}]");
                violations.push(sentence);
            }
        }
    }
    violations
}

/// Returns the folder of the crate's library, relative to `root`, with a final `/`.
fn library(workspace: &Workspace, root: &Path, name: &str) -> Option<String> {
    let package = workspace.packages.iter().find(|package| short(&package.name) == name)?;
    let is_library = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
    let path = &package.targets.iter().find(is_library)?.src_path;
    let folder = Path::new(path).parent()?.strip_prefix(root).ok()?;
    Some(format!("{}/", folder.to_str()?))
}

/// Returns the roots of every crate's libraries and programs, relative to `root`.
fn crates(workspace: &Workspace, root: &Path) -> circles::Crates {
    let inside = |path: &str| Some(Path::new(path).strip_prefix(root).ok()?.to_str()?.to_owned());
    let mut crates = circles::Crates::new();
    for package in &workspace.packages {
        let Some(manifest) = inside(&package.manifest_path) else { continue };
        let is_code = |kind: &String| matches!(kind.as_str(), "lib" | "bin");
        let targets = package.targets.iter().filter(|target| target.kind.iter().any(is_code));
        let roots = targets.filter_map(|target| inside(&target.src_path)).collect();
        let folder = manifest.trim_end_matches("Cargo.toml").trim_end_matches('/');
        crates.insert(folder.to_owned(), roots);
    }
    crates
}

/// Returns a package's name as in `use`.
fn short(package: &str) -> &str {
    package.strip_prefix("kvasir-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = r#"crates = [
        { name = "base", device = true, uses = [] },
        { name = "nand", device = true, uses = ["base"] },
        { name = "engine", device = true, uses = ["base"] },
        { name = "reactor", device = false, uses = ["base"] },
        { name = "sim", device = false, uses = ["*"] },
        { name = "cli", device = false, uses = ["*"] },
    ]"#;

    fn layers(text: &str) -> Layers {
        toml::from_str(text).unwrap()
    }

    /// Returns the violations of a workspace of `LAYERS` and one more crate, which depends on one
    /// of them by `kind` and on an external crate.
    fn violations(user: &str, used: &str, kind: &str) -> Vec<String> {
        let others = ["base", "nand", "engine", "reactor", "sim", "cli"]
            .map(|name| format!(r#"{{"name": "kvasir-{name}", "dependencies": []}}"#));
        let json = format!(
            r#"{{"packages": [{}, {{"name": "kvasir-{user}", "dependencies": [
                {{"name": "serde", "kind": null}},
                {{"name": "kvasir-{used}", "kind": {kind}}}]}}]}}"#,
            others.join(", ")
        );
        arrows(&layers(LAYERS), &serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn a_listed_arrow_is_allowed() {
        for (user, used) in [("nand", "base"), ("sim", "engine"), ("cli", "sim")] {
            assert_eq!(violations(user, used, "null"), Vec::<String>::new());
        }
    }

    #[test]
    fn an_arrow_that_is_not_listed_is_named_by_both_ends() {
        for (user, used) in [
            ("engine", "nand"),
            ("base", "nand"),
            ("nand", "nand"),
            ("engine", "reactor"),
            ("sim", "cli"),
        ] {
            for kind in ["null", r#""build""#] {
                let found = violations(user, used, kind);
                let sentence = format!("let `{user}` have `{used}` in [dependencies]");
                assert!(found.len() == 1 && found[0].contains(&sentence), "{found:?}");
            }
        }
    }

    #[test]
    fn tests_may_use_what_is_above_and_the_reactor() {
        let dev = r#""dev""#;
        assert_eq!(violations("engine", "nand", dev), Vec::<String>::new());
        assert_eq!(violations("base", "reactor", dev), Vec::<String>::new());
        assert_eq!(violations("nand", "engine", dev).len(), 1);
        assert_eq!(violations("engine", "sim", dev).len(), 1);
    }

    #[test]
    fn a_library_is_where_cargo_says() {
        let json = r#"{"packages": [
            {"name": "kvasir-a", "dependencies": [], "targets": [
                {"kind": ["test"], "src_path": "/tree/crates/a/tests/b.rs"},
                {"kind": ["lib"], "src_path": "/tree/crates/a/src/lib.rs"}]},
            {"name": "kvasir-b", "dependencies": [], "targets": [
                {"kind": ["lib"], "src_path": "/tree/b/one.rs"}]},
            {"name": "kvasir-c", "dependencies": [], "targets": [
                {"kind": ["bin"], "src_path": "/tree/c/src/main.rs"}]}]}"#;
        let workspace = serde_json::from_str(json).unwrap();
        let library = |name| library(&workspace, Path::new("/tree"), name);
        assert_eq!(library("a").as_deref(), Some("crates/a/src/"));
        assert_eq!(library("b").as_deref(), Some("b/"));
        assert_eq!((library("c"), library("d")), (None, None));
    }

    #[test]
    fn libraries_and_programs_of_a_crate_are_checked_and_tests_are_not() {
        let json = r#"{"packages": [
            {"name": "kvasir-a", "dependencies": [], "manifest_path": "/tree/crates/a/Cargo.toml",
             "targets": [
                {"kind": ["lib"], "src_path": "/tree/crates/a/src/lib.rs"},
                {"kind": ["test"], "src_path": "/tree/crates/a/tests/b.rs"},
                {"kind": ["bin"], "src_path": "/tree/crates/a/src/main.rs"}]}]}"#;
        let workspace = serde_json::from_str(json).unwrap();
        let roots = ["lib", "main"].map(|name| format!("crates/a/src/{name}.rs")).to_vec();
        let expected = circles::Crates::from([("crates/a".into(), roots)]);
        assert_eq!(crates(&workspace, Path::new("/tree")), expected);
    }

    #[test]
    fn a_crate_that_is_not_listed_is_named() {
        let found = violations("stray", "base", "null");
        assert_eq!(found, ["docs/internals/layers.toml does not list the crate `stray`"]);
    }

    #[test]
    fn the_file_has_each_crate_once_and_arrows_that_point_up() {
        assert_eq!(order(&layers(LAYERS)), Vec::<String>::new());
        for (uses, name) in [("later", "a"), ("unknown", "a"), ("a", "a"), ("", "later")] {
            let text = format!(
                r#"crates = [{{ name = "{name}", device = true, uses = [{}] }},
                    {{ name = "later", device = false, uses = [] }}]"#,
                if uses.is_empty() { String::new() } else { format!("{uses:?}") }
            );
            assert_eq!(order(&layers(&text)).len(), 1, "{text}");
        }
        assert!(toml::from_str::<Layers>("crates = []\nextra = 1").is_err());
    }
}
