use crate::initramfs;
use crate::kernel::Kernel;
use crate::unpacked::Unpacked;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Many times what a boot or a script takes on a busy machine: what hangs is to fail.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Gives QEMU one socket as input and output, and ends it when the shell's own input ends, which
/// happens even if this process is killed.
const LEASH: &str = r#""$@" <&1 & exec >&2; read -r line; kill -KILL $!"#;

/// On a busy machine a guest's timer can be too late for the check that it is there at all. And
/// Linux 7 compares the clocks of its processors with interrupts off, in a loop that ends after a
/// time: when the clock is still counted by interrupts, and the other processor waits for this one
/// to change it, the loop never ends.
const KERNEL_OPTIONS: &str = "console=ttyS0 panic=-1 no_timer_check tsc=reliable";

/// Lines of the kernel's that a failing test shows.
const LINES_SHOWN: usize = 60;

/// A booted Linux. It is gone when this is dropped, or this process.
#[derive(Debug)]
pub(crate) struct Guest {
    qemu: Child,
    line: BufReader<UnixStream>,
    console: File,
}

/// What a script did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    /// What it printed, errors too.
    pub(crate) output: String,
}

impl Guest {
    /// Boots the release's kernel in its QEMU.
    pub(crate) fn boot(unpacked: &Unpacked) -> Self {
        // The folder goes when the guest has started; what is open in it stays.
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::of(unpacked);
        let files = initramfs::build(unpacked, &kernel, include_str!("init.sh"));
        fs::write(folder.path().join("initramfs"), files).unwrap();
        fs::write(folder.path().join("console"), "").unwrap();
        let console = File::open(folder.path().join("console")).unwrap();
        let (line, qemus_end) = UnixStream::pair().unwrap();
        let mut qemu = qemu(unpacked, &kernel, folder.path());
        let qemu = qemu.stdin(Stdio::piped()).stdout(OwnedFd::from(qemus_end)).spawn().unwrap();
        let mut guest = Self { qemu, line: BufReader::new(line), console };
        assert_eq!(guest.answer().status, 0, "the guest is ready");
        guest
    }

    /// Runs a script of the guest's shell to its end.
    pub(crate) fn run(&mut self, script: &str) -> Ran {
        assert!(script.lines().all(|line| line != "%"), "the line is the end of a script");
        self.line.get_mut().write_all(format!("{script}\n%\n").as_bytes()).unwrap();
        self.answer()
    }

    /// Runs a script that is to succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn succeed(&mut self, script: &str) -> String {
        let Ran { status, output } = self.run(script);
        assert_eq!(status, 0, "{script}\nprinted\n{output}");
        output
    }

    /// Waits until a script succeeds.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let script =
            format!("for i in $(seq 200); do {condition} && exit; sleep 0.1; done; exit 1");
        let Ran { status, output } = self.run(&script);
        assert_eq!(status, 0, "in vain: {condition}\nprinted\n{output}");
    }

    /// Makes a file of random bytes in the guest.
    pub(crate) fn make(&mut self, file: &str, size: u32) {
        self.succeed(&format!("head -c {size} /dev/urandom > {file}"));
    }

    #[track_caller]
    fn answer(&mut self) -> Ran {
        let deadline = Instant::now() + TIMEOUT;
        let mut output = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the guest does not end after\n{output}");
            self.line.get_ref().set_read_timeout(Some(left)).unwrap();
            let mut line = Vec::new();
            match self.line.read_until(b'\n', &mut line) {
                Ok(0) => panic!("the guest died after\n{output}"),
                Ok(_) => {}
                Err(error) => panic!("{error}: the guest hangs after\n{output}"),
            }
            let line = String::from_utf8_lossy(&line);
            match line.strip_prefix("% ") {
                Some(status) => return Ran { status: status.trim().parse().unwrap(), output },
                None => output.push_str(&line),
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        drop(self.qemu.stdin.take());
        let _ = self.qemu.wait();
        if thread::panicking() {
            let mut console = Vec::new();
            let _ = self.console.read_to_end(&mut console);
            let console = String::from_utf8_lossy(&console);
            let lines: Vec<_> = console.lines().collect();
            let last = &lines[lines.len().saturating_sub(LINES_SHOWN)..];
            eprintln!("the guest's kernel said last\n{}", last.join("\n"));
        }
    }
}

fn qemu(unpacked: &Unpacked, kernel: &Kernel, folder: &Path) -> Command {
    let console = format!("file:{}", folder.join("console").display());
    let mut qemu = unpacked.command("bin/qemu-system-x86_64");
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "512"])
        .args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="])
        .args(["-chardev", "stdio,id=line,signal=off"])
        .args(["-serial", &console, "-serial", "chardev:line"])
        .args(["-append", KERNEL_OPTIONS]);
    for (option, path) in [
        ("-L", &unpacked.path("share/qemu")),
        ("-L", &unpacked.path("share/seabios")),
        ("-kernel", &kernel.image),
        ("-initrd", &folder.join("initramfs")),
    ] {
        qemu.arg(option).arg(path);
    }
    let mut leashed = Command::new("sh");
    leashed.args(["-c", LEASH, "sh"]).arg(qemu.get_program()).args(qemu.get_args());
    leashed.env("QEMU_MODULE_DIR", unpacked.path("lib/x86_64-linux-gnu/qemu"));
    leashed
}
