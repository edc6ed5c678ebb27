//! The sockets of `kvasir serve --vfio-user`, as their files and users see them. What a virtual
//! machine sees is tested in `vm`.

use crate::program::{Ran, json, kvasir};
use crate::serving::{Serving, keys, store};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Signal;
use serde_json::json as value;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};
use vfio_user_client::Client;

/// Many times what the server needs on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

fn serve(socket: &Path) -> Serving {
    Serving::start(["--device", "ideal", "--vfio-user", socket.to_str().unwrap()])
}

/// A folder, and the path of a socket in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let socket = folder.path().join("vm.sock");
    (folder, socket)
}

#[test]
fn socket_is_for_its_user_only_and_goes_with_the_server() {
    let (_folder, socket) = place();
    let served = serve(&socket);
    let file = fs::symlink_metadata(&socket).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    served.stop();
    assert!(!socket.exists(), "the file is gone");
}

#[test]
fn output_has_the_sockets_and_the_options_of_qemu() {
    let (folder, socket) = place();
    let other = folder.path().join("it's.sock");
    let paths = [&socket, &other].map(|path| path.to_str().unwrap());
    let served =
        Serving::start(["--device", "ideal", "--vfio-user", paths[0], "--vfio-user", paths[1]]);
    assert_eq!(served.ready["subsystems"][0]["vfio_user"], value!(paths));
    assert_eq!(served.ready["listeners"], value!([]), "it has no other listener");
    served.stop();

    let config = folder.path().join("server.toml");
    fs::write(&config, file("vfio_user = [\"vm.sock\", \"it's.sock\"]")).unwrap();
    let config = config.to_str().unwrap();
    let Ran { code, stdout, stderr } = kvasir(["serve", "--config", config, "--check"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    let memory = "-m 2G -object memory-backend-memfd,id=mem,size=2G,share=on -machine \
                  memory-backend=mem";
    for path in [paths[0], &paths[1].replace('\'', r"'\''")] {
        let device = format!(
            r#"-device '{{"driver":"vfio-user-pci","socket":{{"path":"{path}","type":"unix"}}}}'"#
        );
        let line = format!("in QEMU 10.1 or later: {memory} {device}\n");
        assert!(stdout.contains(&line), "{stdout}");
    }
    let checked = json(["serve", "--config", config, "--check", "--json"]);
    assert_eq!(checked["subsystems"][0]["vfio_user"], value!(paths));
    assert!(!socket.exists(), "a check makes no socket");
}

#[test]
fn output_says_how_doorbells_are_written() {
    let (_folder, socket) = place();
    let of_socket = ["--device", "ideal", "--vfio-user", socket.to_str().unwrap()];
    let doorbells = |options: &[&str]| {
        let served = Serving::start(of_socket.iter().chain(options));
        let subsystem = served.ready["subsystems"][0].clone();
        served.stop();
        subsystem["doorbells"].clone()
    };
    assert_eq!(doorbells(&[]), "trapped");
    assert_eq!(doorbells(&["--doorbells", "mapped"]), "mapped");
    let served = Serving::start(["--device", "ideal", "--nvme-tcp", ":0"]);
    assert_eq!(served.ready["subsystems"][0].get("doorbells"), None);
    served.stop();
    let Ran { code, stderr, .. } =
        kvasir(["serve", "--device", "ideal", "--nvme-tcp", ":0", "--doorbells", "mapped"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--vfio-user <SOCK>"), "{stderr}");
    let folder = tempdir().unwrap();
    let config = folder.path().join("server.toml");
    fs::write(&config, file("vfio_user = [\"vm.sock\"]\ndoorbells = \"mapped\"")).unwrap();
    let checked = kvasir(["serve", "--config", config.to_str().unwrap(), "--check"]);
    let line = "mapped doorbells: a thread does not sleep while a VM uses the device\n";
    assert!(checked.stdout.contains(line), "{}", checked.stdout);
}

/// A server of one device, whose subsystem has these keys too.
fn file(keys: &str) -> String {
    format!(
        "[server]
clock = \"none\"

[[device]]
name = \"fast\"
device = \"mem:64MiB\"

[[subsystem]]
device = \"fast\"
{keys}
"
    )
}

#[test]
fn socket_of_a_killed_server_is_replaced() {
    let (_folder, socket) = place();
    let left = serve(&socket).end(Signal::KILL);
    assert_eq!(left.code, None);
    assert!(socket.exists(), "a killed server leaves its file");
    let served = serve(&socket);
    drop(UnixStream::connect(&socket).unwrap());
    served.stop();
    assert!(!socket.exists());
}

#[test]
fn socket_that_cannot_be_is_refused_with_a_sentence() {
    let (folder, socket) = place();
    let served = serve(&socket);
    let regular = folder.path().join("file");
    fs::write(&regular, "content").unwrap();
    let [live, file] = [&socket, &regular].map(|path| path.to_str().unwrap());
    let nowhere = folder.path().join("none/vm.sock");
    let nowhere = nowhere.to_str().unwrap();
    let long = format!("/{}", "v".repeat(107));
    for (path, sentence) in [
        (live, "another process serves this socket: stop it, or use another path"),
        (
            file,
            "cannot listen at this socket: a file that is no socket is there: choose another \
                path",
        ),
        (nowhere, "cannot listen at this socket: its folder does not exist: create it"),
        (
            &long,
            "the path of a socket has at most 107 bytes, and this one has 108: use a shorter \
                 path, for example in /run",
        ),
    ] {
        let ran = kvasir(["serve", "--device", "ideal", "--vfio-user", path]);
        let expected = (Some(2), String::new(), format!("kvasir: {path}: {sentence}\n"));
        assert_eq!((ran.code, ran.stdout, ran.stderr), expected);
    }
    assert_eq!(fs::read_to_string(&regular).unwrap(), "content");
    drop(UnixStream::connect(&socket).expect("the first server still listens"));
    let new = folder.path().join("new.sock");
    let new = new.to_str().unwrap();
    let twice = kvasir(["serve", "--device", "ideal", "--vfio-user", new, "--vfio-user", new]);
    let sentence =
        format!("kvasir: {new}: this socket is given twice: each needs a path of its own\n");
    assert_eq!((twice.code, twice.stderr), (Some(2), sentence));
    served.stop();
}

/// Returns a connection that the server holds, or none if it has closed it at once.
fn held(socket: &Path) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(socket).unwrap();
    // The server waits for the first message, so silence means that it is held.
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    stream.read(&mut [0]).is_err().then_some(stream)
}

#[test]
fn socket_serves_one_virtual_machine_after_the_other() {
    let (_folder, socket) = place();
    let served = serve(&socket);
    let first = held(&socket).expect("it is served");
    let mut second = UnixStream::connect(&socket).unwrap();
    second.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_eq!(second.read(&mut [0]).unwrap(), 0, "it is closed");
    let sentence = "a second connection was closed: a socket is for one virtual machine";
    assert_eq!(served.error_line(), format!("kvasir: {}: {sentence}", socket.display()));
    drop(first);
    let third = held(&socket).expect("the first has left");
    let stopped = served.stop();
    assert_eq!(stopped["connections"], 2);
    drop(third);
}

#[test]
fn sockets_of_a_file_are_served_beside_nvme_tcp_on_any_number_of_cores() {
    for cores in [1, 3] {
        let folder = tempdir().unwrap();
        let text = format!(
            "{}\n[[device]]\nname = \"ideal\"\ndevice = \"ideal\"\n\n[[subsystem]]\n\
             device = \"ideal\"\nvfio_user = [\"ideal.sock\"]\n",
            file("vfio_user = [\"fast.sock\"]")
        );
        let listening = format!("[server]\ncores = {cores}\nnvme_tcp = [\":0\"]\n");
        let served = Serving::with_file(folder.path(), &text.replace("[server]\n", &listening));
        let streams =
            ["fast.sock", "ideal.sock"].map(|name| held(&folder.path().join(name)).unwrap());
        for subsystem in [0, 1] {
            store("key", &served.uri(subsystem));
            assert_eq!(keys(&served.uri(subsystem)), ["key"]);
        }
        served.stop();
        for mut stream in streams {
            assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it ends with the server");
        }
    }
}

/// Addresses of the admin queues in the memory of a [`Machine`].
const SUBMISSION: u64 = 0x1000;
const COMPLETION: u64 = 0x2000;

/// A virtual machine as its server sees it: a client of another implementation, and memory.
struct Machine {
    client: Client,
    memory: File,
}

impl Machine {
    /// Attaches the device at `socket` as soon as it is free, and enables its controller.
    fn attach(socket: &Path) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        let mut client = loop {
            match Client::new(socket) {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < deadline, "it is not free: {error}"),
            }
            thread::sleep(Duration::from_millis(5));
        };
        let memory = File::from(memfd_create("machine", MemfdFlags::CLOEXEC).unwrap());
        memory.set_len(0x3000).unwrap();
        client.dma_map(0, 0, 0x3000, memory.as_raw_fd()).unwrap();
        // Bus Master Enable, in configuration space.
        client.region_write(7, 0x04, &[0b110]).unwrap();
        // AQA, ASQ and ACQ; then CC with all command sets, and entries of 64 and 16 bytes.
        client.region_write(0, 0x24, &0x000f_000f_u32.to_le_bytes()).unwrap();
        client.region_write(0, 0x28, &SUBMISSION.to_le_bytes()).unwrap();
        client.region_write(0, 0x30, &COMPLETION.to_le_bytes()).unwrap();
        client.region_write(0, 0x14, &0x0046_0061_u32.to_le_bytes()).unwrap();
        let mut status = [0; 4];
        client.region_read(0, 0x1c, &mut status).unwrap();
        assert_eq!(u32::from_le_bytes(status) & 3, 1, "it is ready, and not fatal");
        Self { client, memory }
    }

    /// Executes Keep Alive, the first command of the admin queue.
    fn keep_alive(&mut self) {
        let mut command = [0; 64];
        (command[0], command[2]) = (0x18, 7);
        self.memory.write_all_at(&command, SUBMISSION).unwrap();
        let doorbells = self.client.region(0).unwrap().file_offset.as_ref();
        match doorbells {
            Some(file) => file.file().write_all_at(&[1], 0x1000).unwrap(),
            None => self.client.region_write(0, 0x1000, &1_u32.to_le_bytes()).unwrap(),
        }
        let (deadline, mut completion) = (Instant::now() + TIMEOUT, [0; 16]);
        while completion[14] & 1 == 0 {
            assert!(Instant::now() < deadline, "it is not completed");
            self.memory.read_exact_at(&mut completion, COMPLETION).unwrap();
        }
        assert_eq!(completion[12..], [7, 0, 1, 0], "the command's id, the phase, and success");
    }
}

#[test]
fn machines_come_and_go_and_leave_nothing() {
    for doorbells in ["trapped", "mapped"] {
        let folder = tempdir().unwrap();
        let keys = format!("vfio_user = [\"vm.sock\"]\ndoorbells = \"{doorbells}\"");
        // One controller that stayed would be one too many.
        let text = format!("{}\n[limits]\nassociations = 1\n", file(&keys));
        let served = Serving::with_file(folder.path(), &text);
        let socket = folder.path().join("vm.sock");
        let process = served.process().as_raw_nonzero();
        let files = || fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        Machine::attach(&socket).keep_alive();
        let mut left = Vec::new();
        for _ in 0..30 {
            let mut machine = Machine::attach(&socket);
            machine.keep_alive();
            left.push(files());
        }
        assert!(left.iter().all(|files| *files == left[0]), "open files: {left:?}");
        let stopped = served.end(Signal::TERM);
        assert_eq!(stopped.code, Some(0));
        assert_eq!(stopped.stopped["connections"], 31);
    }
}
