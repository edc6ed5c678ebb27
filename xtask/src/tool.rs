use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// A program that `test` runs, and Debian's packages that have it.
pub(crate) struct Tool {
    program: &'static str,
    /// What succeeds if it is there: it says its version, for instance.
    asked: &'static str,
    packages: &'static [&'static str],
}

/// What rustc links with. A machine that can run this without it has its build from elsewhere, a
/// cache for instance, and fails only at the first crate that is linked anew.
pub(crate) const LINKER: Tool =
    Tool { program: "cc", asked: "--version", packages: &["gcc", "libc6-dev"] };

/// What reads captured packets. Without it the tests that show it some are skipped.
pub(crate) const DISSECTOR: Tool =
    Tool { program: "tshark", asked: "--version", packages: &["tshark"] };

/// What the answers of the door of the Redis protocol are compared with. Without it the tests that
/// do so are skipped.
pub(crate) const REDIS: Tool =
    Tool { program: "redis-server", asked: "--version", packages: &["redis-server"] };

/// Another implementation of TLS, by which that door is entered. Without it such tests are skipped.
pub(crate) const OPENSSL: Tool =
    Tool { program: "openssl", asked: "version", packages: &["openssl"] };

/// One of the clients that this door is for. Without it the test that has it ask is skipped.
pub(crate) const REDIS_PY: Tool =
    Tool { program: "/usr/bin/python3", asked: "-cimport redis", packages: &["python3-redis"] };

impl Tool {
    /// Makes sure that the program is there, and installs it where that can be done.
    pub(crate) fn ensure_present(&self) -> Result<()> {
        let Self { program, asked, packages } = self;
        let names = packages.join("` and `");
        if self.is_present() {
            return Ok(());
        }
        ensure!(
            is_root() && succeeds("apt-get", &["--version"]),
            "`{program} {asked}` fails: install what Debian has in `{names}`"
        );
        let install = [&["install", "-y", "--no-install-recommends"], *packages].concat();
        for arguments in [&["update"][..], &install] {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            let status = command.status().context("apt-get")?;
            ensure!(status.success(), "`apt-get {}` failed ({status})", arguments.join(" "));
        }
        ensure!(
            self.is_present(),
            "`{program} {asked}` fails even with Debian's `{names}` installed"
        );
        Ok(())
    }

    /// Like `ensure_present`, but does without the program if it must.
    pub(crate) fn ensure_present_if_possible(&self) {
        if let Err(error) = self.ensure_present() {
            println!("skipped: tests with `{}`: {error:#}", self.program);
        }
    }

    fn is_present(&self) -> bool {
        succeeds(self.program, &[self.asked])
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
