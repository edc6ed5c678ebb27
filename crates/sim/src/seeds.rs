use crate::faults::RunFaults;
use crate::quiet::quietly;
use crate::scenario::Scenario;
use crate::shorten::shortened;
use crate::sweep::{Sweep, from_environment, rerun};
use crate::tally::Tally;
use crate::trace;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

/// The arguments by which cargo finds the program of the tests.
const PROGRAM: &str = "-p kvasir-sim --test integration";

/// How long a shorter plan of faults is looked for, in seconds, unless `KVASIR_SHORTEN_SECONDS`
/// says otherwise.
const SHORTEN_SECONDS: u64 = 20;

/// Names a file with the faults that a run shall have.
const FAULTS: &str = "KVASIR_FAULTS";

/// Asks for a line for each event.
const TRACE: &str = "KVASIR_TRACE";

/// Runs `run` on each seed from `KVASIR_SEED` (0) on, `KVASIR_SEEDS` (`count`) in all, and returns
/// what they went through together. With `KVASIR_SWEEP_SECONDS` a sweep that has taken so long ends
/// before its last seed, and prints how many it ran.
///
/// A seed that panics is followed by the command that runs it again: the one of the integration
/// test called `test`.
pub fn sweep(test: &str, count: u64, run: impl FnMut(u64) -> Tally) -> Tally {
    let sweep = Sweep { name: test, program: PROGRAM, count, sharing: 1 };
    sweep.run(run).1
}

/// As [`sweep`], of a scenario. With `KVASIR_TRACE` set it tells what happens, and the file that
/// `KVASIR_FAULTS` names has the faults.
///
/// A seed that panics with faults is run again with fewer of them, and the command that is printed
/// is that of the shortest plan that panics still.
pub fn sweep_scenario(test: &str, count: u64, scenario: Scenario) -> Tally {
    let given = std::env::var(FAULTS).ok().map(|path| {
        let text = std::fs::read_to_string(&path);
        RunFaults::parse(&path, &text.unwrap_or_else(|error| panic!("{path}: {error}")))
    });
    trace::set(std::env::var_os(TRACE).is_some());
    let sum = sweep(test, count, |seed| {
        let happened = Rc::default();
        let run = || scenario.run_with(seed, given.clone(), &happened);
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            if given.is_none() {
                let failure = shorten(scenario, seed, &happened.borrow());
                eprintln!("{}", failure.report(test, seed));
            }
            resume_unwind(panic)
        })
    });
    trace::set(false);
    sum
}

/// A run that fails, and what it needs for that.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why it fails, as the panic says.
    pub message: String,
    /// Faults that happened.
    pub faults: usize,
    /// The plan of fewer faults with which it fails still, one for each device in turn; empty where
    /// it needs none.
    pub plan: String,
}

/// Runs `seed` of `scenario`, and returns why it fails if it does, with as few faults as are found
/// to be needed.
pub fn failure(scenario: Scenario, seed: u64) -> Option<Failure> {
    let happened = Rc::default();
    let panic = quietly(|| scenario.run_with(seed, None, &happened)).err()?;
    let shorter = shorten(scenario, seed, &happened.borrow());
    Some(Failure { message: message_of(&*panic), ..shorter })
}

/// True when `seed` of `scenario` fails with the faults of `plan`, as [`Failure::plan`] has them.
pub fn fails_with(scenario: Scenario, seed: u64, plan: &str) -> bool {
    let given = RunFaults::parse("the plan", plan);
    quietly(|| scenario.run_with(seed, Some(given), &Rc::default())).is_err()
}

fn shorten(scenario: Scenario, seed: u64, happened: &RunFaults) -> Failure {
    let was_on = trace::is_on();
    trace::set(false);
    let fails = |faults: &RunFaults| {
        quietly(|| scenario.run_with(seed, Some(faults.clone()), &Rc::default())).is_err()
    };
    let seconds = from_environment("KVASIR_SHORTEN_SECONDS", SHORTEN_SECONDS);
    let shorter = shortened(happened, Duration::from_secs(seconds), fails);
    trace::set(was_on);
    Failure { message: String::new(), faults: happened.rules(), plan: shorter.text() }
}

impl Failure {
    /// What a reader needs to run it again.
    fn report(&self, test: &str, seed: u64) -> String {
        let Self { faults, plan, .. } = self;
        if *faults == 0 {
            return rerun_traced(seed);
        }
        if plan.is_empty() {
            return format!(
                "It needs none of its {faults} faults.\n{TRACE}=1 {FAULTS}=/dev/null {}",
                rerun(PROGRAM, seed)
            );
        }
        let path = std::env::temp_dir().join(format!("kvasir-{test}-{seed}.faults"));
        let file = std::fs::write(&path, plan)
            .map_or_else(|error| format!("FILE ({error})"), |()| path.display().to_string());
        let needed = plan.matches("[[fault]]").count();
        format!(
            "Of its {faults} faults it needs these {needed}, which are in {file}:\n{plan}\n\
             {TRACE}=1 {FAULTS}={file} {}",
            rerun(PROGRAM, seed)
        )
    }
}

fn rerun_traced(seed: u64) -> String {
    format!("{TRACE}=1 {}", rerun(PROGRAM, seed))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}
