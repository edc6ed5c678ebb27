//! The commands of the README and of the guide run as printed, page by page and in order.
//!
//! A line of an indented or fenced block is a command if its first word is one of `WORDS`. The
//! shell runs it in a scratch folder, and it must end with status 0. A server runs in the
//! background until the page starts another one, or a command opens a drive by itself. Only
//! addresses differ from the print: servers take free ports, clients the ports of the page's
//! server, and `NQN` stands for the name that the server prints.

use crate::program::finished;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::env;
use std::fs::{create_dir, read_dir, read_to_string, write};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::{TempDir, tempdir};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");

/// First words of the commands of this project and its clients, and of what prepares them.
const WORDS: [&str; 10] =
    ["kvasir", "redis-cli", "cargo run", "curl", "openssl", "mkdir", "head", "echo", "ln", ":"];

/// The ports of the pages, and the scheme of the address that a server prints for each.
const PORTS: [(&str, &str); 4] =
    [("4420", "nvme-tcp"), ("6379", "resp"), ("6380", "rediss"), ("8420", "http")];

const DISK: &str = "needs a spare disk, or writes 10 GiB";
const KERNEL: &str = "needs root and a kernel's device: the tests of `vm` run it";
const MACHINE: &str = "needs another machine";
const MINUTES: &str = "takes minutes without optimisation";
const OWN_TEST: &str = "a test of its own runs it, and compares what it prints";
const SHOWN: &str = "V and Q stand for the sizes and depths of a table";

/// Commands that do not run here, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("cargo run --release -- demo", "a step of cargo xtask test runs it"),
    ("kvasir bench mixed --read-percent 95 --distribution zipfian", OWN_TEST),
    (
        "kvasir bench randread --target sim:970pro --queue-depth 1 --block-size 16KiB --span 1GiB",
        OWN_TEST,
    ),
    ("kvasir bench retrieve --rate 230000", OWN_TEST),
    ("kvasir bench retrieve --target sim:ideal", OWN_TEST),
    ("kvasir bench retrieve --target sim:lightstore --value-size 8KiB --queue-depth 1", OWN_TEST),
    ("kvasir bench retrieve --target sim:pm983-kv", OWN_TEST),
    ("kvasir bench store --queue-depth 1", OWN_TEST),
    ("kvasir bench write --target sim:zn540 --block-size 64KiB", OWN_TEST),
    ("kvasir device calibrate examples/calibration/lightstore.csv --device lightstore", OWN_TEST),
    (
        "kvasir device calibrate points.csv --device moke \\\n    \
         --knob firmware.t_read_us,nand.program_us,firmware.t_update_us=10 \\\n    \
         --output fitted.toml --plot fitted.svg",
        OWN_TEST,
    ),
    ("kvasir device sensitivity ./mine.toml --plot mine.svg", OWN_TEST),
    ("kvasir bench mixed --read-percent 0 --target sim:pm983-kv --value-size V", SHOWN),
    ("kvasir bench retrieve --target sim:lightstore --value-size 8KiB --queue-depth Q", SHOWN),
    ("kvasir bench retrieve --target sim:pm983-kv --value-size V", SHOWN),
    ("kvasir bench store --target sim:lightstore --value-size 8KiB --queue-depth Q", SHOWN),
    ("kvasir bench store --target sim:pm983-kv --value-size V", SHOWN),
    (
        "kvasir device calibrate examples/calibration/lightstore.csv --device lightstore \\\n    \
         --knob nand.read_us,nand.program_us",
        MINUTES,
    ),
    ("kvasir device calibrate examples/calibration/pm983-kv.csv --device pm983-kv", MINUTES),
    ("kvasir device sensitivity moke", MINUTES),
    ("kvasir reproduce MoKE-1c", MINUTES),
    ("kvasir reproduce MoKE-1d", MINUTES),
    ("kvasir reproduce MoKE-1d --control", MINUTES),
    ("kvasir format /dev/nvme1n1", DISK),
    ("kvasir format filled.kv --size 10GiB --fill", DISK),
    ("kvasir kv retrieve greeting --target /dev/ng0n1", KERNEL),
    ("kvasir kv store greeting value --target /dev/ng0n1", KERNEL),
    ("kvasir kv export users.archive --target resp://old-server:6379/2", MACHINE),
    ("kvasir kv import users.archive --target resp://127.0.0.1:6379/0 --verify", MACHINE),
    ("kvasir top 192.0.2.7:8420 --interval 5", MACHINE),
];

/// A test for each page.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                Page::new($path).run();
            }
        )*
    };
}

pages! {
    readme_commands_run: "README.md",
    guide_commands_run: "docs/guide/README.md",
    bench_commands_run: "docs/guide/bench.md",
    blocks_commands_run: "docs/guide/blocks.md",
    cached_index_commands_run: "docs/guide/cached-index.md",
    calibrate_commands_run: "docs/guide/calibrate.md",
    ci_commands_run: "docs/guide/ci.md",
    demo_commands_run: "docs/guide/demo.md",
    devices_commands_run: "docs/guide/devices.md",
    drive_commands_run: "docs/guide/drive.md",
    faults_commands_run: "docs/guide/faults.md",
    hosts_commands_run: "docs/guide/hosts.md",
    index_commands_run: "docs/guide/index.md",
    nvme_tcp_commands_run: "docs/guide/nvme-tcp.md",
    passthrough_commands_run: "docs/guide/passthrough.md",
    profiles_commands_run: "docs/guide/profiles.md",
    redis_commands_run: "docs/guide/redis.md",
    replay_commands_run: "docs/guide/replay.md",
    reproduce_commands_run: "docs/guide/reproduce.md",
    sensitivity_commands_run: "docs/guide/sensitivity.md",
    server_commands_run: "docs/guide/server.md",
    spdk_commands_run: "docs/guide/spdk.md",
    state_commands_run: "docs/guide/state.md",
    virtual_machine_commands_run: "docs/guide/virtual-machine.md",
}

#[test]
fn guide_pages_all_have_a_test() {
    for entry in read_dir(format!("{ROOT}docs/guide")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = format!("docs/guide/{}", path.file_name().unwrap().to_str().unwrap());
            assert!(PAGES.contains(&name.as_str()), "{name} has no test");
        }
    }
}

#[test]
fn commands_left_out_are_in_a_page() {
    let commands: Vec<_> = PAGES.iter().flat_map(|path| commands(&text(path))).collect();
    for (command, reason) in LEFT_OUT {
        assert!(commands.iter().any(|found| found == command), "{command} ({reason}) is nowhere");
    }
}

#[test]
fn cargo_tests_that_the_guide_names_exist() {
    for path in PAGES {
        for block in blocks(&text(path)) {
            for line in block.iter().filter(|line| line.starts_with("cargo test ")) {
                check_cargo_test(path, line);
            }
        }
    }
}

/// Each `--test NAME` is a file or a folder of the tests of a package of the line.
#[track_caller]
fn check_cargo_test(path: &str, line: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let after = |option| {
        words.windows(2).filter(move |pair| pair[0] == option).map(|pair| pair[1].to_owned())
    };
    for test in after("--test") {
        let is_there = after("-p").any(|package| {
            let package = package.strip_prefix("kvasir-").expect("a package of this project");
            let file = format!("{ROOT}crates/{package}/tests/{test}");
            Path::new(&format!("{file}.rs")).exists() || Path::new(&file).is_dir()
        });
        assert!(is_there, "{path}: no package of {line:?} has the test {test}");
    }
}

fn text(path: &str) -> String {
    read_to_string(format!("{ROOT}{path}")).unwrap()
}

/// The indented and fenced blocks of a page, each as its lines.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks = vec![Vec::new()];
    let mut is_fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            blocks.push(Vec::new());
        } else if is_fenced {
            blocks.last_mut().unwrap().push(line);
        } else if let Some(line) = line.strip_prefix("    ") {
            blocks.last_mut().unwrap().push(line);
        } else {
            blocks.push(Vec::new());
        }
    }
    blocks
}

/// The commands of a page, in order. A block with a job in the background is one script.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in blocks(text) {
        if block.iter().any(|line| line.ends_with(" &")) {
            commands.push(block.join("\n"));
            continue;
        }
        let mut lines = block.into_iter();
        while let Some(line) = lines.next() {
            if WORDS.iter().any(|word| line.starts_with(&format!("{word} ")) || line == *word) {
                let mut command = line.to_owned();
                while command.ends_with('\\') {
                    command += "\n";
                    command += lines.next().expect("a line continues");
                }
                commands.push(command);
            }
        }
    }
    commands
}

/// Whether the shell finds `program`; says so if it does not, or fails where it must be there.
fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let is_there = found.unwrap().status.success();
    if !is_there {
        let is_required = env::var("REQUIRE_REDIS").is_ok_and(|value| value == "1");
        assert!(!(is_required && program == "redis-cli"), "REQUIRE_REDIS=1, but no {program}");
        eprintln!("skipped: no {program} on the path");
    }
    is_there
}

/// A page whose commands run in a folder of their own.
struct Page {
    path: &'static str,
    folder: TempDir,
    server: Option<Background>,
    /// What `kvasir top` without an end left running.
    watchers: Vec<Background>,
    /// The ports of the last server, by the port that the page prints.
    ports: BTreeMap<&'static str, String>,
    nqn: String,
}

impl Page {
    fn new(path: &'static str) -> Self {
        let folder = tempdir().unwrap();
        symlink(format!("{ROOT}examples"), folder.path().join("examples")).unwrap();
        create_dir(folder.path().join("Pictures")).unwrap();
        write(folder.path().join("Pictures/picture"), "a picture").unwrap();
        let page = Self {
            path,
            folder,
            server: None,
            watchers: Vec::new(),
            ports: BTreeMap::new(),
            nqn: String::new(),
        };
        page.write_files();
        page
    }

    /// Files that the page tells its reader to write.
    fn write_files(&self) {
        let text = text(self.path);
        if let Some((_, rest)) = text.split_once("    [server]\n") {
            let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
            let file = lines.fold("[server]\n".to_owned(), |file, line| file + line.trim() + "\n");
            let file = file.replace(":4420", ":0");
            let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
            let file = if has_ipv6 { file } else { file.replace(", \"[::1]:0\"", "") };
            write(self.folder.path().join("server.toml"), file).unwrap();
        }
        if text.contains("./your-tests") {
            let script = "#!/bin/sh\nexec kvasir kv info --target \"$KV_TARGET\"\n";
            write(self.folder.path().join("your-tests"), script).unwrap();
            self.ended("chmod +x your-tests");
        }
    }

    fn run(mut self) {
        for command in commands(&text(self.path)) {
            if LEFT_OUT.iter().any(|(left_out, _)| *left_out == command) {
                continue;
            }
            let needed = ["redis-cli", "openssl", "curl", "jq"];
            let mut needed = needed.iter().filter(|program| command.contains(*program));
            if !needed.all(|program| has(program)) {
                // Later commands of the page may need what this one would have made.
                return;
            }
            self.step(&command);
        }
        self.stop();
    }

    fn step(&mut self, command: &str) {
        let opens_drive = ["file:", "kvasir inspect", "kvasir check", "kvasir format"];
        if command.starts_with("kvasir serve ") && !command.contains("--check") {
            self.stop();
            self.serve(command);
        } else if command.starts_with("kvasir top") && !command.contains("--once") {
            let mut watcher = self.start(&self.adapted(command));
            let line = watcher.line();
            assert!(!line.is_empty(), "{}: {command} prints nothing", self.path);
            self.watchers.push(watcher);
        } else {
            if opens_drive.iter().any(|words| command.contains(words)) {
                self.stop();
            }
            self.ended(&self.adapted(command));
        }
    }

    /// Starts the server of `command` and learns where it can be reached.
    fn serve(&mut self, command: &str) {
        let options = ["--nvme-tcp", "--resp ", "--resp-tls ", "--http"];
        let mut adapted = command.to_owned();
        let mut awaited = 0;
        for ((port, _), option) in PORTS.into_iter().zip(options) {
            adapted = adapted.replace(&format!(":{port}"), ":0");
            awaited += usize::from(command.contains(option));
        }
        if adapted.ends_with("--http") {
            adapted += " :0";
        }
        let mut server = self.start(&adapted);
        self.ports.clear();
        // One with a file has hosts alone.
        while self.ports.len() < awaited.max(1) {
            let line = server.line();
            assert!(!line.is_empty(), "{}: {command} is not ready", self.path);
            let Some((scheme, address)) = line.trim_end().split_once("://") else { continue };
            let Some((port, _)) = PORTS.iter().find(|(_, known)| *known == scheme) else {
                continue;
            };
            let (host, name) = address.split_once('/').unwrap_or((address, ""));
            let (_, number) = host.rsplit_once(':').expect("an address has a port");
            self.ports.insert(*port, number.to_owned());
            if scheme == "nvme-tcp" {
                name.clone_into(&mut self.nqn);
            }
        }
        self.server = Some(server);
    }

    /// The command with the addresses of the page's server in place of those that are printed.
    fn adapted(&self, command: &str) -> String {
        let mut adapted = command.replace("NQN", &self.nqn);
        for (port, number) in &self.ports {
            for before in [":", "-p "] {
                adapted = adapted.replace(&format!("{before}{port}"), &format!("{before}{number}"));
            }
        }
        if let (Some(number), Some(rest)) =
            (self.ports.get("6379"), adapted.strip_prefix("redis-cli "))
        {
            adapted = format!("redis-cli -p {number} {rest}");
        }
        if let (Some(number), Some(rest)) =
            (self.ports.get("8420"), adapted.strip_prefix("kvasir top"))
        {
            adapted = format!("kvasir top :{number}{rest}");
        }
        adapted
    }

    /// A shell in the folder, that finds the program.
    fn shell(&self, command: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_kvasir"));
        let folder = program.parent().unwrap().to_str().unwrap();
        let path = env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.folder.path())
            .env("PATH", format!("{folder}:{path}"))
            .env("HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        shell
    }

    /// Runs `command` to its end, which must be a good one.
    #[track_caller]
    fn ended(&self, command: &str) {
        let ran = finished(self.shell(command).spawn().unwrap());
        assert_eq!(ran.code, Some(0), "{}: {command}\n{}{}", self.path, ran.stdout, ran.stderr);
    }

    fn start(&self, command: &str) -> Background {
        let mut child = self.shell(&format!("exec {command}")).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Background { child, stdout }
    }

    /// Stops the server as its users do. Who watches it sees it end.
    fn stop(&mut self) {
        self.watchers.clear();
        if let Some(server) = self.server.take() {
            server.stop(self.path);
        }
    }
}

/// A program that runs until it is dropped.
struct Background {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Background {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    #[track_caller]
    fn stop(mut self, page: &str) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let code = self.child.wait().unwrap().code();
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!(code, Some(0), "{page}: the server ended with {errors}");
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn pages_are_read_as_blocks_and_commands() {
    let page = "text\n\n    kvasir a \\\n        --b\n    output\n\n```text\nredis-cli c\n```\n\
                kvasir not\n\n    kvasir: an error\n    x &\n    y\n";
    let expected = ["kvasir a \\\n    --b", "redis-cli c", "kvasir: an error\nx &\ny"];
    assert_eq!(commands(page), expected);
}
