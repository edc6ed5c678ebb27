use crate::cargo::Cargo;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

const SECONDS_DEFAULT: u64 = 60;

/// The most seconds for an input that takes milliseconds, on a busy machine.
const SECONDS_EACH_MAX: u64 = 20;

/// The most bytes of an input: more than its actions use.
const BYTES_MAX: u64 = 2_000;

/// The targets to run, and the time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wish<'a> {
    /// `None`: every target.
    target: Option<&'a str>,
    /// The time of each target.
    seconds: u64,
}

/// Parses `arguments`. The error is a sentence for the user.
pub(crate) fn wish<'a>(arguments: &[&'a str]) -> Result<Wish<'a>, String> {
    let (target, flags) = match arguments {
        [target, flags @ ..] if !target.starts_with('-') => (Some(*target), flags),
        flags => (None, flags),
    };
    let seconds = match flags {
        [] => SECONDS_DEFAULT,
        ["--seconds", number] => match number.parse() {
            Ok(seconds) if seconds > 0 => seconds,
            _ => {
                return Err(format!(
                    "`--seconds` takes a number of at least 1, and was given `{number}`"
                ));
            }
        },
        ["--seconds"] => return Err("`--seconds` takes a number".into()),
        ["--seconds", _, other, ..] | [other, ..] => {
            return Err(format!(
                "`fuzz` takes one target and `--seconds N`, and was given `{other}`"
            ));
        }
    };
    Ok(Wish { target, seconds })
}

/// Searches for inputs that fail, starting from `fuzz/corpus`. Leaves new inputs in `fuzz/found`,
/// which git ignores, and failing ones in `fuzz/artifacts`.
pub(crate) fn run(root: &Path, wish: &Wish<'_>) -> Result<()> {
    let names = targets(root)?;
    let wanted: Vec<&String> =
        names.iter().filter(|name| wish.target.is_none_or(|target| target == *name)).collect();
    let all = names.join("`, `");
    ensure!(!wanted.is_empty(), "there is no such target; there are `{all}`");
    Cargo::nightly(root, "fuzz --version").run().context(
        "fuzzing needs a nightly compiler and cargo-fuzz: install them by `rustup toolchain \
         install nightly --profile minimal` and `cargo install cargo-fuzz`",
    )?;
    for name in wanted {
        fs::create_dir_all(root.join("fuzz/found").join(name)).context("cannot make fuzz/found")?;
        Cargo::nightly(root, &words(name, wish.seconds)).run()?;
    }
    Ok(())
}

/// Returns the arguments of cargo-fuzz. No sanitizer: it makes a run seven times as long, and the
/// tested code has no `unsafe`.
fn words(name: &str, seconds: u64) -> String {
    format!(
        "fuzz run --sanitizer none {name} fuzz/found/{name} fuzz/corpus/{name} -- \
         -max_total_time={seconds} -timeout={SECONDS_EACH_MAX} -max_len={BYTES_MAX} \
         -print_final_stats=1"
    )
}

/// Returns the names of the targets, in order.
fn targets(root: &Path) -> Result<Vec<String>> {
    const FOLDER: &str = "fuzz/fuzz_targets";
    let mut names = Vec::new();
    for file in fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot list {FOLDER}"))? {
        let path = file.with_context(|| format!("cannot list {FOLDER}"))?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_and_seconds_may_be_given_or_not() {
        assert_eq!(wish(&[]), Ok(Wish { target: None, seconds: 60 }));
        assert_eq!(wish(&["io"]), Ok(Wish { target: Some("io"), seconds: 60 }));
        assert_eq!(wish(&["--seconds", "7"]), Ok(Wish { target: None, seconds: 7 }));
        assert_eq!(wish(&["io", "--seconds", "7"]), Ok(Wish { target: Some("io"), seconds: 7 }));
        for wrong in [
            &["--seconds"][..],
            &["--seconds", "0"],
            &["io", "--seconds", "x"],
            &["io", "admin"],
            &["--seconds", "7", "io"],
            &["--fast"],
        ] {
            assert!(wish(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_target_has_inputs_and_a_name_that_is_told() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let names = targets(root).unwrap();
        assert!(names.iter().any(|name| name == "stream"), "{names:?}");
        for name in &names {
            assert!(root.join("fuzz/corpus").join(name).is_dir(), "{name}");
        }
        let wish = Wish { target: Some("none"), seconds: 1 };
        let sentence = run(root, &wish).unwrap_err().to_string();
        assert!(sentence.contains("`admin`, `capsule`"), "{sentence}");
    }
}
