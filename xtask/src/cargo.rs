use crate::tally::Tally;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A cargo command at the root of the checkout. It prints itself before it runs.
pub(crate) struct Cargo {
    command: Command,
    words: String,
    /// What each line of output begins with.
    label: String,
}

impl Cargo {
    /// Splits `arguments` at spaces and passes them to cargo unchanged, `*` included.
    pub(crate) fn new(root: &Path, arguments: &str) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(root).args(arguments.split_whitespace());
        Self { command, words: format!("cargo {arguments}"), label: String::new() }
    }

    /// As [`Self::new`], with the nightly compiler, which rustup must have.
    pub(crate) fn nightly(root: &Path, arguments: &str) -> Self {
        let mut command = Command::new("rustup");
        command.current_dir(root).args(["run", "nightly", "cargo"]);
        command.args(arguments.split_whitespace());
        Self { command, words: format!("cargo +nightly {arguments}"), label: String::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self.words = format!("{name}={value} {}", self.words);
        self
    }

    /// Puts `label` before each line of output, for a command that runs beside others.
    pub(crate) fn label(mut self, label: &str) -> Self {
        self.label = format!("[{label}] ");
        self
    }

    /// Runs the command; succeeds when it does.
    pub(crate) fn run(mut self) -> Result<()> {
        println!("{}", self.words);
        let status = self.command.status().with_context(|| self.cannot_run())?;
        ensure!(status.success(), "`{}` failed ({status})", self.words);
        Ok(())
    }

    /// Runs the command; succeeds when it does and printed something.
    pub(crate) fn run_and_see_output(self) -> Result<()> {
        let mut printed = false;
        let words = self.words.clone();
        self.stream(|line| printed |= !line.trim().is_empty())?;
        ensure!(printed, "`{words}` printed nothing, so it showed nothing");
        Ok(())
    }

    /// Runs the command; succeeds when it does and ran at least one test. Adds its tests to
    /// `tally`.
    pub(crate) fn test(self, tally: &mut Tally) -> Result<()> {
        let mut ran = Tally::default();
        let words = self.words.clone();
        let outcome = self.stream(|line| ran.read(line));
        *tally += ran;
        match ran {
            Tally { passed: 0, failed: 0 } if outcome.is_ok() => bail!("`{words}` ran no test"),
            Tally { failed: 0, .. } => outcome,
            Tally { failed, .. } => bail!("`{words}` had {failed} failing test(s)"),
        }
    }

    /// Runs the command, shows its output at once, and passes each line of it to `see`.
    fn stream(mut self, mut see: impl FnMut(&str)) -> Result<()> {
        println!("{}{}", self.label, self.words);
        self.command.stdout(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| self.cannot_run())?;
        let stdout = child.stdout.take().expect("stdout is piped");
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.with_context(|| format!("cannot read from `{}`", self.words))?;
            let line = String::from_utf8_lossy(&line);
            println!("{}{line}", self.label);
            see(&line);
        }
        let status = child.wait().with_context(|| self.cannot_run())?;
        ensure!(status.success(), "`{}` failed ({status})", self.words);
        Ok(())
    }

    fn cannot_run(&self) -> String {
        format!("cannot run `{}`", self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Cargo {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Cargo { command, words: script.into(), label: String::new() }
    }

    fn tested(script: &str) -> (Tally, Result<()>) {
        let mut tally = Tally { passed: 10, failed: 0 };
        let outcome = shell(script).test(&mut tally);
        (tally, outcome)
    }

    #[test]
    fn a_test_command_without_a_test_fails() {
        let (tally, outcome) = tested("echo 'test result: ok. 0 passed; 0 failed; 3 ignored;'");
        assert!(outcome.unwrap_err().to_string().contains("ran no test"));
        assert_eq!(tally, Tally { passed: 10, failed: 0 });
        assert!(tested("true").1.is_err());
    }

    #[test]
    fn a_test_command_adds_its_sums() {
        let line = "echo 'test result: ok. 3 passed; 0 failed;'";
        let (tally, outcome) = tested(&format!("{line}; {line}"));
        assert!(outcome.is_ok());
        assert_eq!(tally, Tally { passed: 16, failed: 0 });
    }

    #[test]
    fn failing_tests_are_counted_and_fail() {
        let line = "echo 'test result: FAILED. 3 passed; 2 failed;'";
        for end in ["exit 101", "true"] {
            let (tally, outcome) = tested(&format!("{line}; {end}"));
            assert!(outcome.unwrap_err().to_string().contains("2 failing test(s)"));
            assert_eq!(tally, Tally { passed: 13, failed: 2 });
        }
    }

    #[test]
    fn a_command_that_fails_fails_whatever_it_printed() {
        assert!(tested("echo 'test result: ok. 3 passed; 0 failed;'; exit 1").1.is_err());
        assert!(shell("exit 1").run().is_err());
        assert!(shell("echo shown; exit 1").run_and_see_output().is_err());
    }

    #[test]
    fn a_command_that_prints_only_blanks_shows_nothing() {
        assert!(shell("echo ' '").run_and_see_output().is_err());
        assert!(shell("echo shown").run_and_see_output().is_ok());
    }
}
