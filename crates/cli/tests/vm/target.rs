use crate::guest::Guest;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Many times what the program takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A profile with a namespace of keys and values, one of blocks and one of zones.
const DRIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vm/drive.toml");

/// A `kvasir serve` on this machine. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Target {
    program: Child,
    device: &'static str,
    pub(crate) port: u16,
    /// The subsystem's NVMe Qualified Name.
    pub(crate) name: String,
}

impl Target {
    /// On a port that nobody has.
    pub(crate) fn start() -> Self {
        Self::start_on(0, "ideal")
    }

    /// One with a namespace of each kind, in its place.
    pub(crate) fn become_drive(&mut self) {
        *self = Self::start_on(0, DRIVE);
    }

    fn start_on(port: u16, device: &'static str) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kvasir"))
            .args(["serve", "--device", device, "--nvme-tcp", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(program.stdout.take().expect("its output is piped"));
        let (sender, receiver) = channel();
        thread::spawn(move || {
            // The program goes on printing, so this goes on reading.
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut target = Self { program, device, port, name: String::new() };
        while target.name.is_empty() {
            let line = receiver.recv_timeout(PATIENCE).expect("the target says where it is");
            if let Some((_, place)) = line.split_once("nvme-tcp://127.0.0.1:") {
                let (port, name) = place.split_once('/').expect("a port and a name");
                target.port = port.parse().unwrap();
                target.name = name.split_whitespace().next().expect("a name").to_owned();
            }
        }
        target
    }

    /// Where it is for a guest, as nvme-cli wants it.
    pub(crate) fn address(&self) -> String {
        format!("--transport=tcp --traddr=10.0.2.2 --trsvcid={}", self.port)
    }

    /// Connects the guest and waits for its namespace.
    #[track_caller]
    pub(crate) fn connect(&self, guest: &mut Guest, options: &str) {
        let (address, name) = (self.address(), &self.name);
        guest.succeed(&format!("nvme connect {address} --nqn={name} {options}"));
        guest.wait_for("[ -e /dev/ng*n1 ]");
    }

    /// The same, and returns the block device of the namespace `nsid`, which appears a little
    /// later. Its number is of the order in which the host came upon its namespaces.
    #[track_caller]
    pub(crate) fn connect_block(&self, guest: &mut Guest, nsid: u32) -> String {
        self.connect(guest, "--nr-io-queues=2");
        let find = format!("grep -lx {nsid} /sys/block/nvme[0-9]n*/nsid");
        guest.wait_for(&format!("device=$({find}) && [ -b /dev/$(echo $device | cut -d/ -f4) ]"));
        format!("/dev/{}", guest.succeed(&format!("{find} | cut -d/ -f4")).trim())
    }

    /// Ends it with no chance to say goodbye. What it had in memory is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }

    /// Starts it on the port that it had before it was killed.
    pub(crate) fn start_again(&mut self) {
        *self = Self::start_on(self.port, self.device);
    }

    /// How many connections to it are established.
    pub(crate) fn connections(&self) -> usize {
        const ESTABLISHED: &str = "01";
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let own = format!("0100007F:{:04X}", self.port);
        let is_own = |line: &&str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            fields[1] == own && fields[3] == ESTABLISHED
        };
        table.lines().skip(1).filter(is_own).count()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.kill();
    }
}
