use crate::initramfs;
use crate::kernel::Kernel;
use crate::qmp::Qmp;
use crate::unpacked::Unpacked;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
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

/// What a guest has beside its processors, its lines and its network.
pub(crate) enum Hardware<'a> {
    Plain,
    /// Slots for devices over PCIe, with the devices at these vfio-user sockets from the start; or
    /// [`SLOTS`] empty ones.
    Slots {
        memory: Memory,
        sockets: &'a [&'a Path],
    },
}

/// QEMU's options for emulating the processors of a guest in software (TCG).
pub(crate) const IN_SOFTWARE: [&str; 4] = ["-accel", "tcg", "-cpu", "max"];

/// The memory of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A device in another process can reach it.
    Shared,
    /// QEMU's own. Only the firmware tries to use the devices: the kernel, which would wait a
    /// minute for each, does not.
    Private,
}

/// A booted Linux. It is gone when this is dropped, or this process.
#[derive(Debug)]
pub(crate) struct Guest {
    qemu: Child,
    line: BufReader<UnixStream>,
    console: File,
    /// Of a guest with slots for devices.
    qmp: Option<Qmp>,
    /// The vfio-user sockets of the devices in the first slots.
    plugged: Vec<PathBuf>,
}

/// What a script did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    /// What it printed, errors too.
    pub(crate) output: String,
}

impl Guest {
    /// Boots the kernel of one release in the QEMU of another, or of the same, with QEMU's options
    /// for processors.
    pub(crate) fn boot(
        kernel: &Unpacked,
        qemu: &Unpacked,
        hardware: &Hardware<'_>,
        accel: [&str; 4],
    ) -> Self {
        // The folder goes when the guest has started; what is open in it stays.
        let folder = tempfile::tempdir().unwrap();
        let files = Kernel::of(kernel);
        let content = initramfs::build(kernel, &files, include_str!("init.sh"));
        fs::write(folder.path().join("initramfs"), content).unwrap();
        fs::write(folder.path().join("console"), "").unwrap();
        let console = File::open(folder.path().join("console")).unwrap();
        let (line, qemus_end) = UnixStream::pair().unwrap();
        let mut command = machine(qemu, &files, folder.path(), accel);
        let mut plugged = Vec::new();
        if let Hardware::Slots { memory, sockets } = hardware {
            // Each slot takes time at the start.
            let slots = if sockets.is_empty() { SLOTS } else { sockets.len() };
            add_slots(&mut command, slots, *memory, folder.path());
            for (slot, socket) in sockets.iter().enumerate() {
                command.arg("-device").arg(device(slot, socket).to_string());
                plugged.push((*socket).to_owned());
            }
        }
        let mut command = leashed(qemu, &command);
        let qemu = command.stdin(Stdio::piped()).stdout(OwnedFd::from(qemus_end)).spawn().unwrap();
        let has_slots = matches!(hardware, Hardware::Slots { .. });
        let qmp = has_slots.then(|| Qmp::connect(&folder.path().join(QMP_SOCKET)));
        let mut guest = Self { qemu, line: BufReader::new(line), console, qmp, plugged };
        assert_eq!(guest.answer().status, 0, "the guest is ready");
        guest
    }

    fn qmp(&mut self) -> &mut Qmp {
        self.qmp.as_mut().expect("it is a guest with slots")
    }

    /// Plugs the device at a vfio-user socket into a free slot. If it is plugged in already and was
    /// removed, it comes back.
    #[track_caller]
    pub(crate) fn plug(&mut self, socket: &Path) {
        if let Some(slot) = self.plugged.iter().position(|plugged| plugged == socket) {
            self.succeed(&format!("echo 1 > /sys/bus/pci/devices/0000:00:{}/rescan", port(slot)));
            return;
        }
        self.plug_anew(socket);
    }

    /// Plugs the device at a vfio-user socket, whose server has been restarted, into a free slot.
    #[track_caller]
    pub(crate) fn plug_anew(&mut self, socket: &Path) {
        let slot = self.plugged.len();
        assert!(slot < SLOTS, "a slot is free");
        self.plugged.push(socket.to_owned());
        self.qmp().execute("device_add", &device(slot, socket));
    }

    /// Has the kernel give up all devices over PCIe. They stay in their slots, because QEMU 11.1
    /// aborts when it unplugs a vfio-user device.
    #[track_caller]
    pub(crate) fn remove_plugged(&mut self) {
        let remove = "if [ -e $function ]; then echo 1 > $function/remove; fi";
        self.succeed(&format!("for function in /sys/bus/pci/drivers/nvme/0*; do {remove}; done"));
    }

    /// Stops the guest's processors for a time.
    pub(crate) fn pause(&mut self, time: Duration) {
        self.qmp().execute("stop", &json!({}));
        thread::sleep(time);
        self.qmp().execute("cont", &json!({}));
    }

    /// Restarts the guest in the same QEMU.
    pub(crate) fn reboot(&mut self) {
        self.qmp().execute("set-action", &json!({"reboot": "reset"}));
        self.line.get_mut().write_all(b"reboot -f\n%\n").unwrap();
        assert_eq!(self.answer().status, 0, "the guest is ready again");
        self.qmp().execute("set-action", &json!({"reboot": "shutdown"}));
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

    /// Waits for the block device of the namespace `nsid` and returns its path. Linux numbers block
    /// devices in the order in which it finds their namespaces.
    #[track_caller]
    pub(crate) fn block_device(&mut self, nsid: u32) -> String {
        let find = format!("grep -lx {nsid} /sys/block/nvme[0-9]n*/nsid");
        let name = format!("{find} | cut -d/ -f4");
        self.wait_for(&format!("device=$({find}) && [ -b /dev/$(echo $device | cut -d/ -f4) ]"));
        format!("/dev/{}", self.succeed(&name).trim())
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

/// A QEMU with the parts that every guest has.
fn machine(qemu: &Unpacked, kernel: &Kernel, folder: &Path, accel: [&str; 4]) -> Command {
    let console = format!("file:{}", folder.join("console").display());
    let mut command = qemu.command("bin/qemu-system-x86_64");
    command
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(accel)
        .args(["-smp", "2", "-m", "512"])
        .args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="])
        .args(["-chardev", "stdio,id=line,signal=off"])
        .args(["-serial", &console, "-serial", "chardev:line"])
        .args(["-append", KERNEL_OPTIONS]);
    for (option, path) in [
        ("-L", &qemu.path("share/qemu")),
        ("-L", &qemu.path("share/seabios")),
        ("-kernel", &kernel.image),
        ("-initrd", &folder.join("initramfs")),
    ] {
        command.arg(option).arg(path);
    }
    command
}

/// Slots of a guest for devices over PCIe, more than it has tests.
const SLOTS: usize = 20;

/// In the folder of a guest.
const QMP_SOCKET: &str = "qmp";

/// Adds slots, and memory of this kind. With a graphics card the firmware moves a large part of the
/// memory that devices reach, while they are in use.
fn add_slots(command: &mut Command, slots: usize, memory: Memory, folder: &Path) {
    let object = match memory {
        Memory::Shared => "memory-backend-memfd,id=memory,size=512M,share=on",
        Memory::Private => "memory-backend-ram,id=memory,size=512M",
    };
    if memory == Memory::Private {
        command.args(["-append", &format!("{KERNEL_OPTIONS} initcall_blacklist=nvme_init")]);
    }
    command
        .args(["-object", object])
        .args(["-machine", "q35,memory-backend=memory", "-vga", "std"])
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", folder.join(QMP_SOCKET).display()));
    for slot in 0..slots {
        let port = format!("addr={},multifunction=on", port(slot));
        command.args(["-device", &format!("pcie-root-port,id=slot{slot},chassis={slot},{port}")]);
    }
}

/// The device and function of a slot's port on the first bus.
fn port(slot: usize) -> String {
    format!("{:02x}.{}", 0x10 + slot / 8, slot % 8)
}

/// QEMU's options for a device.
fn device(slot: usize, socket: &Path) -> Value {
    let socket = json!({"type": "unix", "path": socket});
    let bus = format!("slot{slot}");
    json!({"driver": "vfio-user-pci", "bus": bus, "socket": socket})
}

/// The command on a [`LEASH`].
fn leashed(qemu: &Unpacked, command: &Command) -> Command {
    let mut leashed = Command::new("sh");
    leashed.args(["-c", LEASH, "sh"]).arg(command.get_program()).args(command.get_args());
    leashed.env("QEMU_MODULE_DIR", qemu.path("lib/x86_64-linux-gnu/qemu"));
    leashed
}
