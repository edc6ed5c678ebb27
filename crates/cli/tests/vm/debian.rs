use crate::guest::Guest;
use crate::packages;
use crate::report::say;
use crate::target::Target;
use crate::unpacked::Unpacked;
use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// A release of Debian, and a guest of its kernel once a test has needed one.
pub(crate) struct Debian {
    /// Where its packages are; the last one is preferred.
    suites: &'static [&'static str],
    packages: OnceLock<Result<Unpacked, String>>,
    guest: Mutex<Option<Guest>>,
}

/// Linux 6.1 in QEMU 7.2.
pub(crate) static DEBIAN_12: Debian = Debian::new(&["bookworm"]);

/// The newest kernel and QEMU that were built for a stable release.
pub(crate) static BACKPORTS: Debian = Debian::new(&["trixie", "trixie-backports"]);

impl Debian {
    const fn new(suites: &'static [&'static str]) -> Self {
        Self { suites, packages: OnceLock::new(), guest: Mutex::new(None) }
    }

    fn name(&self) -> &'static str {
        self.suites[self.suites.len() - 1]
    }

    /// Runs `check` on the guest and a new target. Boots the guest first if it is not running,
    /// unless it cannot be booted. The guest is locked for the check, and is shut down if the check
    /// panics.
    pub(crate) fn lend(&self, check: fn(&mut Guest, &mut Target)) {
        let mut place = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut guest = match place.take() {
            Some(guest) => guest,
            None => match self.boot() {
                Some(guest) => guest,
                None => return,
            },
        };
        let mut target = Target::start();
        check(&mut guest, &mut target);
        // A host whose target is gone takes a minute to give up on saying goodbye.
        guest.succeed("nvme disconnect-all");
        guest.wait_for("[ -z \"$(ls /sys/class/nvme)\" ]");
        *place = Some(guest);
    }

    fn boot(&self) -> Option<Guest> {
        let unpacked = match self.packages.get_or_init(|| packages::unpacked(self.suites)) {
            Ok(unpacked) => unpacked,
            Err(reason) => {
                let is_required = env::var("REQUIRE_VM").is_ok_and(|value| value == "1");
                assert!(!is_required, "no guest of {}: {reason}", self.name());
                say(&format!("skipped: no guest of {}: {reason}", self.name()));
                return None;
            }
        };
        let started = Instant::now();
        let mut guest = Guest::boot(unpacked);
        let kernel = guest.succeed("uname -r");
        let seconds = started.elapsed().as_secs_f64();
        say(&format!("Linux {} of {} booted in {seconds:.1} s", kernel.trim(), self.name()));
        Some(guest)
    }
}
