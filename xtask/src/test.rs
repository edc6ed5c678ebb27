use crate::cargo::Cargo;
use crate::soak::LONG;
use crate::tally::Tally;
use crate::tool::{DISSECTOR, LINKER, OPENSSL, REDIS, REDIS_PY};
use crate::{layers, tidy};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Bounds each sweep of seeds, in seconds. `soak` has no such bound.
const SWEEP_SECONDS: &str = "20";

type Step = fn(&Path, &mut Tally) -> Result<()>;

const STEPS: [(&str, Step); 10] = [
    ("linker", |_, _| LINKER.ensure_present()),
    ("format", |root, _| Cargo::new(root, "fmt --all --check").run()),
    ("tidy", |root, _| tidy::run(root)),
    ("layers", |root, _| layers::run(root)),
    ("clippy", |root, _| {
        Cargo::new(root, "clippy --workspace --all-targets -- -D warnings").run()?;
        // `--all-targets` omits them, because they do not run by default.
        Cargo::new(root, "clippy -p kvasir-cli --test black_box --test vm -- -D warnings").run()
    }),
    ("programs", |_, _| {
        DISSECTOR.ensure_present_if_possible();
        REDIS.ensure_present_if_possible();
        OPENSSL.ensure_present_if_possible();
        REDIS_PY.ensure_present_if_possible();
        Ok(())
    }),
    ("tests", |root, tally| {
        // Adds the test of deliberate mistakes to this run, because alone it would need its own
        // build.
        Cargo::new(root, "test --workspace --features kvasir-sim/sabotage")
            .env("KVASIR_SWEEP_SECONDS", SWEEP_SECONDS)
            .test(tally)
    }),
    ("black box", |root, tally| {
        let all = "test --release -p kvasir-cli --test black_box -- --skip";
        Cargo::new(root, &format!("{all} {LONG}")).test(tally)
    }),
    ("demo", |root, _| Cargo::new(root, "run --release -- demo").run_and_see_output()),
    ("guests", |root, tally| {
        Cargo::new(root, "test --release -p kvasir-cli --test vm").test(tally)
    }),
];

/// Runs all steps until the first failure. The last line printed is the number of tests that ran.
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
