//! Counts the reads of 4 KiB a second of a Linux guest on a device over vfio-user, with trapped and
//! with mapped doorbells. QEMU, the kernel and fio are those of the tests in `crates/cli/tests/vm`.
//!
//! `cargo run --profile dist -p experiments --bin vfio_user_guest -- [--accel kvm|tcg]`, on an idle
//! machine of three cores. It needs what those tests need.

mod figure;
mod programs;

/// Makes modules of files of the tests with guests. They are code of tests: some of it is for tests
/// only, and it panics when a step fails.
macro_rules! of_tests {
    ($($module:ident $file:literal)*) => {$(
        #[path = $file]
        #[allow(dead_code, clippy::unwrap_used, reason = "it is code of tests")]
        mod $module;
    )*};
}
of_tests! {
    apt "../../crates/cli/tests/vm/apt.rs"
    guest "../../crates/cli/tests/vm/guest.rs"
    initramfs "../../crates/cli/tests/vm/initramfs.rs"
    kernel "../../crates/cli/tests/vm/kernel.rs"
    packages "../../crates/cli/tests/vm/packages.rs"
    qmp "../../crates/cli/tests/vm/qmp.rs"
    report "../../crates/cli/tests/vm/report.rs"
    unpacked "../../crates/cli/tests/vm/unpacked.rs"
}

use crate::guest::{Guest, Hardware, IN_SOFTWARE, Memory};
use figure::{Served, reads_a_second};
use node::server::Doorbells;
use std::fs::OpenOptions;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use unpacked::Unpacked;

/// QEMU 10.1 or later, which has vfio-user devices, and the kernel of the same release.
const SUITES: [&str; 2] = ["trixie", "trixie-backports"];

const USAGE: &str = "usage: vfio_user_guest [--accel kvm|tcg]";

/// Has the kernel of this machine run the processors of a guest.
const BY_KVM: [&str; 4] = ["-accel", "kvm", "-cpu", "host"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let accel = match words[..] {
        [] | ["--accel", "kvm"] => BY_KVM,
        ["--accel", "tcg"] => IN_SOFTWARE,
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match figures(accel) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("no figure: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the figures of a guest that `accel` runs. An error is a sentence.
fn figures(accel: [&'static str; 4]) -> Result<(), String> {
    let is_kvm = accel == BY_KVM;
    if is_kvm {
        let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        opened.map_err(|error| format!("KVM runs no guest here: /dev/kvm: {error}"))?;
    }
    let unpacked = Arc::new(packages::unpacked(&SUITES)?);
    for doorbells in Doorbells::ALL {
        let served = Served::start(doorbells);
        let mut guest = boot(&unpacked, &served, accel).map_err(|()| {
            let name = if is_kvm { "KVM" } else { "QEMU" };
            format!("{name} runs no guest here: Linux did not boot, as shown above")
        })?;
        let rate = reads_a_second(&mut guest);
        let by = if is_kvm { "KVM" } else { "software, many times slower than KVM" };
        let name = doorbells.name();
        println!("{name} doorbells: {rate:.0} reads of 4 KiB a second, QD 32, a guest by {by}");
        drop(guest);
        served.stop();
    }
    Ok(())
}

/// Boots a guest with the served device. Fails if Linux does not boot; the guest has said why.
fn boot(unpacked: &Arc<Unpacked>, served: &Served, accel: [&'static str; 4]) -> Result<Guest, ()> {
    let (unpacked, socket) = (unpacked.clone(), served.socket());
    // A guest that does not boot is a panic.
    let booted = thread::spawn(move || {
        let hardware = Hardware::Slots { memory: Memory::Shared, sockets: &[&socket] };
        Guest::boot(&unpacked, &unpacked, &hardware, accel)
    });
    booted.join().map_err(|_| ())
}
