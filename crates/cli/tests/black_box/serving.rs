//! A `kvasir serve` that the tests start, signal and stop.

use crate::program::{Ran, kvasir};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Timeout: many times the program's longest step on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Timeout for the next line of a program that has failed.
const SAYING: Duration = Duration::from_secs(2);

/// A running server; dropping this kills it.
pub(crate) struct Serving {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: Receiver<String>,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

/// Output of a server that has ended.
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) stopped: Value,
    /// Rest of its standard output after the line that it was ready.
    pub(crate) stdout: String,
    /// Lines of its standard error that no test has taken.
    pub(crate) stderr: Vec<String>,
}

impl Serving {
    /// Starts `kvasir serve --json` with `arguments`.
    #[track_caller]
    pub(crate) fn start(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        Self::start_with(&[], arguments)
    }

    /// Starts it with `variables` added to its environment.
    #[track_caller]
    pub(crate) fn start_with(
        variables: &[(&str, &str)],
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kvasir"))
            .args(["serve", "--json"])
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, stderr) = channel();
        thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line);
        let ready = ready.unwrap_or_else(|_| {
            let said = std::iter::from_fn(|| stderr.recv_timeout(SAYING).ok());
            panic!("it is not ready: {:?}", said.collect::<Vec<_>>())
        });
        Self { child, stdout, stderr, ready }
    }

    /// Starts it with a file of this content, which is in `folder` then.
    #[track_caller]
    pub(crate) fn with_file(folder: &std::path::Path, text: &str) -> Self {
        Self::with_file_and(&[], folder, text)
    }

    /// Starts it with a file and with `variables` added to its environment.
    #[track_caller]
    pub(crate) fn with_file_and(
        variables: &[(&str, &str)],
        folder: &std::path::Path,
        text: &str,
    ) -> Self {
        let path = folder.join("server.toml");
        std::fs::write(&path, text).unwrap();
        Self::start_with(variables, [OsStr::new("--config"), path.as_os_str()])
    }

    /// The first target of subsystem `place`.
    pub(crate) fn uri(&self, place: usize) -> String {
        self.ready["subsystems"][place]["uris"][0].as_str().unwrap().to_owned()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let listener = &self.ready["listeners"][0];
        let ip = listener["address"].as_str().unwrap().parse().unwrap();
        SocketAddr::new(ip, listener["port"].as_u64().unwrap().try_into().unwrap())
    }

    /// Its process, which is there until this is dropped.
    pub(crate) fn process(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).unwrap();
    }

    /// The next line of its standard error.
    #[track_caller]
    pub(crate) fn error_line(&self) -> String {
        self.stderr.recv_timeout(TIMEOUT).unwrap()
    }

    /// Ends it by `signal`.
    pub(crate) fn end(mut self, signal: Signal) -> Left {
        self.signal(signal);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        let code = self.child.wait().unwrap().code();
        let stopped = serde_json::from_str(&rest).unwrap_or(Value::Null);
        let stderr = self.stderr.iter().collect();
        Left { code, stopped, stdout: rest, stderr }
    }

    /// Ends it as it should be ended, without a word on standard error.
    #[track_caller]
    pub(crate) fn stop(self) -> Value {
        let Left { code, stopped, stderr, .. } = self.end(Signal::TERM);
        assert_eq!((code, stderr), (Some(0), Vec::<String>::new()));
        stopped
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `kvasir kv` with `words` on `target`.
pub(crate) fn kv(words: &str, target: &str) -> Ran {
    kvasir(["kv"].into_iter().chain(words.split(' ')).chain(["--target", target]))
}

/// Stores the file of this test program's manifest under `key`.
#[track_caller]
pub(crate) fn store(key: &str, target: &str) {
    let ran = kv(&format!("store {key} Cargo.toml"), target);
    assert_eq!((ran.code, &ran.stderr[..]), (Some(0), ""));
}

/// The keys that are there, sorted.
#[track_caller]
pub(crate) fn keys(target: &str) -> Vec<String> {
    let ran = kv("list", target);
    assert_eq!((ran.code, &ran.stderr[..]), (Some(0), ""));
    let mut keys: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    keys.sort();
    keys
}
