use crate::cargo::Cargo;
use crate::tally::Tally;
use crate::{layers, linker, tidy};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

type Step = fn(&Path, &mut Tally) -> Result<()>;

const STEPS: [(&str, Step); 9] = [
    ("linker", |_, _| linker::ensure_present()),
    ("format", |root, _| Cargo::new(root, "fmt --all --check").run()),
    ("tidy", |root, _| tidy::run(root)),
    ("layers", |root, _| layers::run(root)),
    ("clippy", |root, _| Cargo::new(root, "clippy --workspace --all-targets -- -D warnings").run()),
    ("tests", |root, tally| Cargo::new(root, "test --workspace").test(tally)),
    ("sabotage", |root, tally| {
        let sabotage = "test -p kvasir-sim --features sabotage --test sabotage";
        Cargo::new(root, sabotage).test(tally)
    }),
    ("black box", |root, tally| {
        Cargo::new(root, "test --release -p kvasir-cli --test *").test(tally)
    }),
    ("demo", |root, _| Cargo::new(root, "run --release -- demo").run_and_see_output()),
];

/// Runs every step to the first failure. The last line printed is the sum of the tests that ran.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut tally = Tally::default();
    let outcome = STEPS.iter().try_for_each(|(name, step)| {
        println!("=== {name}");
        let start = Instant::now();
        step(root, &mut tally).with_context(|| format!("step `{name}` failed"))?;
        println!("=== {name}: {:.1} s\n", start.elapsed().as_secs_f64());
        Ok::<(), anyhow::Error>(())
    });
    let code = crate::report(outcome);
    println!("{tally}");
    code
}
