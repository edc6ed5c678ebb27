use crate::guest::{Guest, Hardware, IN_SOFTWARE, Memory};
use crate::packages;
use crate::report::say;
use crate::target::Target;
use crate::transport::Transport;
use crate::unpacked::Unpacked;
use std::env;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// A release of Debian.
struct Release {
    /// Where its packages are; the last one is preferred.
    suites: &'static [&'static str],
    packages: OnceLock<Result<Unpacked, String>>,
}

/// Linux 6.1 and QEMU 7.2.
static BOOKWORM: Release = Release::new(&["bookworm"]);

/// The newest kernel and QEMU that were built for a stable release.
static TRIXIE: Release = Release::new(&["trixie", "trixie-backports"]);

/// A kernel in a QEMU, and a guest of both once a test has needed one.
pub(crate) struct Debian {
    kernel: &'static Release,
    qemu: &'static Release,
    transport: Transport,
    guest: Mutex<Option<Guest>>,
}

pub(crate) static DEBIAN_12: Debian = Debian::new(&BOOKWORM, &BOOKWORM, Transport::Tcp);

pub(crate) static BACKPORTS: Debian = Debian::new(&TRIXIE, &TRIXIE, Transport::Tcp);

/// QEMU 7.2 has no vfio-user device.
pub(crate) static DEBIAN_12_WITH_SLOT: Debian = Debian::new(&BOOKWORM, &TRIXIE, Transport::Pcie);

pub(crate) static BACKPORTS_WITH_SLOT: Debian = Debian::new(&TRIXIE, &TRIXIE, Transport::Pcie);

impl Release {
    const fn new(suites: &'static [&'static str]) -> Self {
        Self { suites, packages: OnceLock::new() }
    }

    fn name(&self) -> &'static str {
        self.suites[self.suites.len() - 1]
    }

    /// Its packages. Without them it says so, or panics if guests are required.
    fn unpacked(&self) -> Option<&Unpacked> {
        match self.packages.get_or_init(|| packages::unpacked(self.suites)) {
            Ok(unpacked) => Some(unpacked),
            Err(reason) => {
                let is_required = env::var("REQUIRE_VM").is_ok_and(|value| value == "1");
                assert!(!is_required, "no guest of {}: {reason}", self.name());
                say(&format!("skipped: no guest of {}: {reason}", self.name()));
                None
            }
        }
    }
}

impl Debian {
    const fn new(kernel: &'static Release, qemu: &'static Release, transport: Transport) -> Self {
        Self { kernel, qemu, transport, guest: Mutex::new(None) }
    }

    fn hardware(&self) -> Hardware<'static> {
        match self.transport {
            Transport::Tcp => Hardware::Plain,
            Transport::Pcie => Hardware::Slots { memory: Memory::Shared, sockets: &[] },
        }
    }

    /// Runs `check` on the guest and a new target. Boots the guest first if it is not running,
    /// unless it cannot be booted. The guest is locked for the check, and is shut down if the check
    /// panics.
    pub(crate) fn lend(&self, check: fn(&mut Guest, &mut Target)) {
        let mut place = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        let mut guest = match place.take() {
            Some(guest) => guest,
            None => match self.boot(&self.hardware()) {
                Some(guest) => guest,
                None => return,
            },
        };
        let mut target = Target::start(self.transport);
        check(&mut guest, &mut target);
        // A host whose target is gone takes a minute to give up on saying goodbye.
        match self.transport {
            Transport::Tcp => drop(guest.succeed("nvme disconnect-all")),
            Transport::Pcie => guest.remove_plugged(),
        }
        guest.wait_for("[ -z \"$(ls /sys/class/nvme)\" ]");
        *place = Some(guest);
    }

    /// Boots a guest of its own with this hardware, if there are packages.
    pub(crate) fn boot(&self, hardware: &Hardware<'_>) -> Option<Guest> {
        let (kernel, qemu) = (self.kernel.unpacked()?, self.qemu.unpacked()?);
        let started = Instant::now();
        let mut guest = Guest::boot(kernel, qemu, hardware, IN_SOFTWARE);
        let release = guest.succeed("uname -r");
        let seconds = started.elapsed().as_secs_f64();
        let name = self.kernel.name();
        say(&format!("Linux {} of {name} booted in {seconds:.1} s", release.trim()));
        Some(guest)
    }
}
