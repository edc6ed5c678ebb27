use crate::guest::Guest;
use crate::transport::Transport;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// Many times what the program takes to start on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A profile with a namespace of keys and values, one of blocks and one of zones.
const DRIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vm/drive.toml");

/// In the folder of a server.
const CONFIGURATION: &str = "server.toml";

/// A `kvasir serve` on this machine. It is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Target {
    program: Child,
    /// What it writes to standard error.
    errors: Receiver<String>,
    /// Has the profile or the configuration that it was started with, if a test has made one.
    folder: Option<TempDir>,
    device: String,
    /// Over PCIe: the state file that keeps its device, if it has one.
    state: Option<TempDir>,
    /// Over NVMe/TCP.
    pub(crate) port: u16,
    /// Over PCIe: the folder of its vfio-user socket.
    socket: Option<TempDir>,
    /// The subsystem's NVMe Qualified Name, over NVMe/TCP.
    pub(crate) name: String,
    /// Over PCIe: the address of its status.
    status: String,
}

impl Target {
    /// Starts a target on a free port, or a socket of its own.
    pub(crate) fn start(transport: Transport) -> Self {
        Self::start_by(transport, "ideal")
    }

    /// The same, with one namespace of each kind.
    pub(crate) fn start_drive(transport: Transport) -> Self {
        Self::start_by(transport, DRIVE)
    }

    /// Restarts with one namespace of each kind.
    pub(crate) fn become_drive(&mut self) {
        *self = Self::start_drive(self.transport());
    }

    /// The same of a profile with these lines more.
    pub(crate) fn become_drive_with(&mut self, lines: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.toml");
        fs::write(&path, format!("{}\n{lines}", fs::read_to_string(DRIVE).unwrap())).unwrap();
        *self = Self::start_by(self.transport(), path.to_str().expect("its name is text"));
        self.folder = Some(folder);
    }

    /// Restarts with a drive in a file.
    pub(crate) fn become_drive_in_file(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.kv");
        let drive = path.to_str().expect("its name is text");
        let format = ["format", drive, "--size", "256MiB"];
        let formatted = Command::new(env!("CARGO_BIN_EXE_kvasir")).args(format).status();
        assert!(formatted.unwrap().success());
        *self = Self::start_by(self.transport(), drive);
        self.folder = Some(folder);
    }

    /// Restarts over PCIe with a device that a state file keeps.
    pub(crate) fn become_kept(&mut self) {
        let state = Some(tempfile::tempdir().unwrap());
        *self = Self::start_with("trapped", tempfile::tempdir().unwrap(), "ideal", state);
    }

    /// Starts a server over PCIe with a drive of all kinds of namespaces for each of two sockets.
    pub(crate) fn start_pair() -> (Self, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let sockets = ["a.sock", "b.sock"].map(|name| folder.path().join(name));
        let parts = ["a", "b"].map(|name| {
            format!(
                "[[device]]\nname = \"{name}\"\ndevice = {DRIVE:?}\n[[subsystem]]\n\
                 device = \"{name}\"\nnqn = \"nqn.2026-11.org.example:{name}\"\n\
                 serial = \"{name}\"\nvfio_user = [\"{name}.sock\"]\n"
            )
        });
        let configuration = format!("server = {{ http = \":0\" }}\n{}", parts.concat());
        let path = folder.path().join(CONFIGURATION);
        fs::write(&path, configuration).unwrap();
        let mut target = Self::launch([OsStr::new("--config"), path.as_os_str()]);
        target.folder = Some(folder);
        (target, sockets)
    }

    /// One as a configuration says, with one subsystem.
    pub(crate) fn become_server(&mut self, configuration: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONFIGURATION);
        fs::write(&path, configuration).unwrap();
        *self = Self::launch([OsStr::new("--config"), path.as_os_str()]);
        self.folder = Some(folder);
    }

    /// Has a server read another configuration.
    pub(crate) fn change(&self, configuration: &str) {
        let folder = self.folder.as_ref().expect("it is a server of a configuration");
        fs::write(folder.path().join(CONFIGURATION), configuration).unwrap();
        kill_process(Pid::from_child(&self.program), Signal::HUP).unwrap();
        let said = self.errors.recv_timeout(TIMEOUT).expect("the target says what it has read");
        assert!(said.contains("reloaded "), "{said}");
    }

    /// Whether guests reach it over NVMe/TCP, and not over PCIe.
    pub(crate) fn is_over_tcp(&self) -> bool {
        self.transport() == Transport::Tcp
    }

    fn transport(&self) -> Transport {
        if self.socket.is_some() { Transport::Pcie } else { Transport::Tcp }
    }

    fn start_by(transport: Transport, device: &str) -> Self {
        match transport {
            Transport::Tcp => Self::start_on(0, device),
            Transport::Pcie => Self::start_at(tempfile::tempdir().unwrap(), device),
        }
    }

    fn start_on(port: u16, device: &str) -> Self {
        let address = format!("127.0.0.1:{port}");
        let mut target = Self::launch(["--device", device, "--nvme-tcp", &address]);
        device.clone_into(&mut target.device);
        target
    }

    fn start_at(folder: TempDir, device: &str) -> Self {
        Self::start_with("trapped", folder, device, None)
    }

    /// A target over PCIe, whose doorbells the guest maps.
    pub(crate) fn start_mapped(device: &str) -> Self {
        Self::start_with("mapped", tempfile::tempdir().unwrap(), device, None)
    }

    fn start_with(doorbells: &str, folder: TempDir, device: &str, state: Option<TempDir>) -> Self {
        let socket = socket_in(&folder);
        let arguments = ["--device", device, "--http", ":0", "--doorbells", doorbells];
        let arguments = arguments.into_iter().map(OsStr::new);
        let socket = [OsStr::new("--vfio-user"), socket.as_os_str()];
        let kept = state.as_ref().map(|folder| folder.path().join("device.state"));
        let kept = kept.iter().flat_map(|path| [OsStr::new("--state"), path.as_os_str()]);
        let mut target = Self::launch(arguments.chain(socket).chain(kept));
        target.state = state;
        device.clone_into(&mut target.device);
        target.socket = Some(folder);
        target
    }

    /// What `kvasir top` shows of it.
    pub(crate) fn shown(&self) -> String {
        let top = ["top", &self.status, "--once"];
        let ran = Command::new(env!("CARGO_BIN_EXE_kvasir")).args(top).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Returns how many other processes have its doorbells mapped.
    pub(crate) fn maps_of_doorbells(&self) -> usize {
        let own = self.program.id();
        let inode = inode_of_doorbells(own).expect("it has made the doorbells");
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
        let processes = processes.filter_map(|name| name.to_str()?.parse().ok());
        let others = processes.filter(|process| *process != own);
        others.filter(|process| inode_of_doorbells(*process).as_ref() == Some(&inode)).count()
    }

    /// The path of its vfio-user socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(self.socket.as_ref().expect("it is a target over PCIe"))
    }

    fn launch(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut program = Command::new(env!("CARGO_BIN_EXE_kvasir"))
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = lines(program.stdout.take().expect("its output is piped"), |_| ());
        let errors =
            lines(program.stderr.take().expect("its errors are piped"), |line| eprintln!("{line}"));
        let (folder, state, socket, port) = (None, None, None, 0);
        let (device, name, status) = (String::new(), String::new(), String::new());
        let mut target =
            Self { program, errors, folder, device, state, port, socket, name, status };
        while target.name.is_empty() {
            let line = output.recv_timeout(TIMEOUT).expect("the target says where it is");
            if let Some(address) = line.strip_prefix("status: kvasir top ") {
                address.clone_into(&mut target.status);
                break;
            }
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

    /// Connects the guest and waits for its namespace. Over PCIe there are no options.
    #[track_caller]
    pub(crate) fn connect(&self, guest: &mut Guest, options: &str) {
        match self.transport() {
            Transport::Tcp => {
                let (address, name) = (self.address(), &self.name);
                guest.succeed(&format!("nvme connect {address} --nqn={name} {options}"));
            }
            Transport::Pcie => guest.plug(&self.socket()),
        }
        guest.wait_for("[ -e /dev/ng*n1 ]");
    }

    /// Disconnects the guest and waits until it has no namespace left.
    #[track_caller]
    pub(crate) fn disconnect(&self, guest: &mut Guest) {
        match self.transport() {
            Transport::Tcp => drop(guest.succeed(&format!("nvme disconnect --nqn={}", self.name))),
            Transport::Pcie => guest.remove_plugged(),
        }
        guest.wait_for("[ ! -e /dev/ng*n1 ]");
    }

    /// The same, and returns the block device of the namespace `nsid`, which appears a little
    /// later.
    #[track_caller]
    pub(crate) fn connect_block(&self, guest: &mut Guest, nsid: u32) -> String {
        self.connect(guest, "--nr-io-queues=2");
        guest.block_device(nsid)
    }

    /// Ends it with no chance to say goodbye. What it had in memory is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }

    /// Ends it as a user does. It saves a device that has a state file.
    pub(crate) fn stop(&mut self) {
        kill_process(Pid::from_child(&self.program), Signal::TERM).unwrap();
        assert!(self.program.wait().unwrap().success());
    }

    /// Starts it on the port or the socket that it had before it ended.
    pub(crate) fn start_again(&mut self) {
        let (folder, state) = (self.folder.take(), self.state.take());
        *self = match self.socket.take() {
            Some(socket) => Self::start_with("trapped", socket, &self.device, state),
            None => Self::start_on(self.port, &self.device),
        };
        self.folder = folder;
    }

    /// Returns the next line of its standard error.
    #[track_caller]
    pub(crate) fn error_line(&self) -> String {
        self.errors.recv_timeout(TIMEOUT).expect("the target says something")
    }

    /// Returns how many connections to it are established. Servers of other tests, which have
    /// stopped listening, may have connections on a port of the same number. The kernel repeats
    /// lines of a table that changes while it is read.
    pub(crate) fn connections(&self) -> usize {
        const ESTABLISHED: &str = "01";
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let (own, sockets) = (format!("0100007F:{:04X}", self.port), self.sockets());
        let own_socket = |line| {
            let fields: Vec<_> = str::split_whitespace(line).collect();
            let is_own =
                fields[1] == own && fields[3] == ESTABLISHED && sockets.contains(fields[9]);
            is_own.then(|| fields[9])
        };
        table.lines().skip(1).filter_map(own_socket).collect::<BTreeSet<_>>().len()
    }

    /// Returns the inodes of its sockets: see `proc_pid_fd`(5).
    fn sockets(&self) -> BTreeSet<String> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.program.id())).unwrap();
        let links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let inode = |link: PathBuf| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        };
        links.filter_map(inode).collect()
    }
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("vm.sock")
}

/// Returns the lines of a running program's output, which this reads to its end.
fn lines(
    output: impl Read + Send + 'static,
    show: impl Fn(&str) + Send + 'static,
) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            show(&line);
            let _ = sender.send(line);
        }
    });
    receiver
}

impl Drop for Target {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the inode of the doorbells that a process has mapped, if it is there and has.
fn inode_of_doorbells(process: u32) -> Option<String> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let line = maps.lines().find(|line| line.contains("/memfd:kvasir-doorbells"))?;
    line.split_whitespace().nth(4).map(str::to_owned)
}
