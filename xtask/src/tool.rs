use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// A program that `test` runs, and the Debian packages that contain it.
pub(crate) struct Tool {
    program: &'static str,
    /// A command that succeeds if the program is installed, such as its `--version`.
    asked: &'static str,
    packages: &'static [&'static str],
}

/// The linker of rustc. A machine without it may have its build from a cache, and then fails only
/// at the first crate that needs linking.
pub(crate) const LINKER: Tool =
    Tool { program: "cc", asked: "--version", packages: &["gcc", "libc6-dev"] };

/// What counts instructions. The counts are part of what `test` checks.
pub(crate) const VALGRIND: Tool =
    Tool { program: "valgrind", asked: "--version", packages: &["valgrind", "binutils"] };

/// The packet dissector. Without it `test` skips the tests that use it.
pub(crate) const DISSECTOR: Tool =
    Tool { program: "tshark", asked: "--version", packages: &["tshark"] };

/// The reference for answers of the Redis protocol. Without it `test` skips the comparison.
pub(crate) const REDIS: Tool =
    Tool { program: "redis-server", asked: "--version", packages: &["redis-server"] };

/// A second implementation of TLS, as a client of the Redis service. Without it `test` skips its
/// tests.
pub(crate) const OPENSSL: Tool =
    Tool { program: "openssl", asked: "version", packages: &["openssl"] };

/// A Redis client library. Without it `test` skips its test.
pub(crate) const REDIS_PY: Tool =
    Tool { program: "/usr/bin/python3", asked: "-cimport redis", packages: &["python3-redis"] };

impl Tool {
    /// Checks that the program is installed, and installs it where possible.
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

    /// As [`Self::ensure_present`], but continues without the program on failure.
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
