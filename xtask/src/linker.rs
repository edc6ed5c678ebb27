use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

/// Makes sure of `cc`, which rustc links with. A machine that can run this without it has its build
/// from elsewhere, a cache for instance, and fails only at the first crate that is linked anew.
pub(crate) fn ensure_present() -> Result<()> {
    if succeeds("cc", &["--version"]) {
        return Ok(());
    }
    ensure!(
        is_root() && succeeds("apt-get", &["--version"]),
        "there is no C linker `cc`: install your system's C compiler (Debian's package `gcc`)"
    );
    for arguments in [&["update"][..], &["install", "-y", "gcc", "libc6-dev"]] {
        let status = Command::new("apt-get").args(arguments).status().context("apt-get")?;
        ensure!(status.success(), "`apt-get {}` failed ({status})", arguments.join(" "));
    }
    ensure!(succeeds("cc", &["--version"]), "there is no `cc` even with Debian's `gcc` installed");
    Ok(())
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
