use crate::cargo::Cargo;
use crate::tally::Tally;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Part of the names of the program's tests that are too long for every day.
pub(crate) const LONG: &str = "::long::";

const SEEDS_DEFAULT: u64 = 5_000;

/// Tests with threads of their own, and those of programs that serve a drive with several cores.
/// Tests of long polls measure time, which the sanitizer takes.
const RACED: [&str; 4] = [
    "-p kvasir-reactor --test integration -- --skip long_polls",
    "-p kvasir-sim --test integration threads",
    "-p kvasir-node --test integration shared_drive",
    "-p kvasir-cli --test black_box -- killed::acknowledged reactors_on_threads \
     a_served_drive_is_whole hosts_of_nvme_and_clients_of_redis",
];

/// Parses the number of seeds in `flags`. The error is a sentence for the user.
pub(crate) fn seeds(flags: &[&str]) -> Result<u64, String> {
    match flags {
        [] => Ok(SEEDS_DEFAULT),
        ["--seeds", number] => match number.parse() {
            Ok(seeds) if seeds > 0 => Ok(seeds),
            _ => Err(format!("`--seeds` takes a number of at least 1, and was given `{number}`")),
        },
        ["--seeds"] => Err("`--seeds` takes a number".into()),
        ["--seeds", _, other, ..] | [other, ..] => {
            Err(format!("`soak` takes `--seeds N` only, and was given `{other}`"))
        }
    }
}

/// Runs the simulation's tests, with every scenario, and the sweep of hand-offs over `seeds` seeds
/// each. Prints what each went through. Then runs the experiments of the
/// papers that are too long for every day, and tests with threads under `ThreadSanitizer`.
pub(crate) fn run(root: &Path, seeds: u64) -> Result<()> {
    let mut tally = Tally::default();
    Cargo::new(root, "test --profile dist -p kvasir-sim -- --nocapture")
        .env("KVASIR_SEEDS", &seeds.to_string())
        .test(&mut tally)?;
    Cargo::new(root, "test --profile dist -p kvasir-node --lib hand_off -- --nocapture")
        .env("KVASIR_SEEDS", &seeds.to_string())
        .test(&mut tally)?;
    let long = format!("test --profile dist -p kvasir-cli --test black_box -- {LONG}");
    Cargo::new(root, &long).test(&mut tally)?;
    race(root, &mut tally)?;
    println!("{tally}");
    Ok(())
}

/// Runs the tests that have threads of their own under `ThreadSanitizer`, which fails a test with a
/// data race. It has to see what std does too, so std is built from its source.
fn race(root: &Path, tally: &mut Tally) -> Result<()> {
    if !has_source_of_std()? {
        println!("skipped: ThreadSanitizer: `rustup component add rust-src` adds what it needs");
        return Ok(());
    }
    for tests in RACED {
        let target = "--release --target x86_64-unknown-linux-gnu";
        Cargo::new(root, &format!("test -Zbuild-std {target} {tests}"))
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            // A server that a test kills reports a race only if it ends there.
            .env("TSAN_OPTIONS", "halt_on_error=1")
            .env("KVASIR_KILL_CORES", "4")
            .test(tally)?;
    }
    Ok(())
}

fn has_source_of_std() -> Result<bool> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("rustc")?;
    let sysroot = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_positive_number() {
        assert_eq!(seeds(&[]), Ok(5_000));
        assert_eq!(seeds(&["--seeds", "7"]), Ok(7));
        for flags in
            [&["--seeds"][..], &["--seeds", "0"], &["--seeds", "x"], &["7"], &["--seeds", "7", "8"]]
        {
            assert!(seeds(flags).is_err(), "{flags:?}");
        }
    }
}
