use crate::cargo::Cargo;
use crate::soak::LONG;
use crate::tally::Tally;
use crate::tool::{DISSECTOR, LINKER, OPENSSL, REDIS, REDIS_PY, VALGRIND};
use crate::{layers, tidy};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Bounds each sweep of seeds, in seconds. `soak` has no such bound.
const SWEEP_SECONDS: &str = "20";

type Step = fn(&Path, &mut Tally) -> Result<()>;

/// Checks of the source, which run no test.
///
/// Clippy and tests use one profile and one set of features, so that cargo builds each crate once.
const LINTS: [(&str, Step); 5] = [
    ("linker", |_, _| LINKER.ensure_present()),
    ("format", |root, _| Cargo::new(root, "fmt --all --check").run()),
    ("tidy", |root, _| tidy::run(root)),
    ("layers", |root, _| layers::run(root)),
    ("clippy", |root, _| {
        Cargo::new(root, "clippy --release --workspace --all-targets -- -D warnings").run()?;
        // `--all-targets` omits them, because they do not run by default.
        let omitted = "clippy --release -p kvasir-cli --test black_box --test vm -- -D warnings";
        Cargo::new(root, omitted).run()
    }),
];

/// What the tests need, before any of them runs.
const PREPARATIONS: [(&str, Step); 2] = [
    ("programs", |_, _| {
        VALGRIND.ensure_present()?;
        DISSECTOR.ensure_present_if_possible();
        REDIS.ensure_present_if_possible();
        OPENSSL.ensure_present_if_possible();
        REDIS_PY.ensure_present_if_possible();
        Ok(())
    }),
    ("build", |root, _| {
        Cargo::new(root, "test --release --workspace --no-run").run()?;
        Cargo::new(root, "test --release -p kvasir-cli --test black_box --test vm --no-run").run()
    }),
];

/// Steps that run while the guests boot and wait for timeouts of their kernels.
const TESTS: [(&str, Step); 3] = [
    ("tests", |root, tally| {
        Cargo::new(root, "test --release --workspace")
            .env("KVASIR_SWEEP_SECONDS", SWEEP_SECONDS)
            .test(tally)
    }),
    ("black box", |root, tally| {
        let all = "test --release -p kvasir-cli --test black_box -- --skip";
        Cargo::new(root, &format!("{all} {LONG}")).test(tally)
    }),
    ("demo", |root, _| Cargo::new(root, "run --release -- demo").run_and_see_output()),
];

/// Steps that run beside [`TESTS`].
const BESIDE: [(&str, Step); 3] = [
    ("guests", |root, tally| {
        Cargo::new(root, "test --release -p kvasir-cli --test vm").label("guests").test(tally)
    }),
    // A build of its own, with the locks and atomic numbers of the model checker.
    ("loom", |root, tally| {
        let crates = "-p kvasir-engine -p kvasir-reactor -p kvasir-controller";
        // With `--target`, cargo applies these flags to no macro and build script, and uses those
        // of other steps.
        Cargo::new(root, &format!("test --release --target host-tuple {crates} --lib loom_"))
            .env("RUSTFLAGS", "--cfg loom")
            .label("loom")
            .test(tally)
    }),
    // In the profile of installed programs, whose counts the table has.
    ("instructions", |root, _| {
        let count = "run --profile dist -p experiments --bin instructions --";
        let flag = match std::env::var_os("REQUIRE_INSTRUCTIONS") {
            Some(_) => "",
            None => " --unless-other-tools",
        };
        Cargo::new(root, &format!("{count}{flag}")).label("instructions").run_and_see_output()
    }),
];

/// Runs all steps until the first failure. The last line printed is the number of tests that ran.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut tally = Tally::default();
    let prepared =
        run_all(&LINTS, root, &mut tally).and_then(|()| run_all(&PREPARATIONS, root, &mut tally));
    let outcome = prepared.and_then(|()| {
        std::thread::scope(|scope| {
            let beside = scope.spawn(|| {
                let mut tally = Tally::default();
                (run_all(&BESIDE, root, &mut tally), tally)
            });
            let tests = run_all(&TESTS, root, &mut tally);
            let (beside, ran) = beside.join().expect("a step returns its error");
            tally += ran;
            match (tests, beside) {
                (Err(tests), Err(beside)) => Err(tests.context(format!("{beside:#}"))),
                (tests, beside) => tests.and(beside),
            }
        })
    });
    let code = crate::report(outcome);
    println!("{tally}");
    code
}

/// Checks only the source.
pub(crate) fn lint(root: &Path) -> Result<()> {
    run_all(&LINTS, root, &mut Tally::default())
}

fn run_all(steps: &[(&str, Step)], root: &Path, tally: &mut Tally) -> Result<()> {
    for (name, step) in steps {
        println!("=== {name}");
        let start = Instant::now();
        step(root, tally).with_context(|| format!("step `{name}` failed"))?;
        println!("=== {name}: {:.1} s\n", start.elapsed().as_secs_f64());
    }
    Ok(())
}
