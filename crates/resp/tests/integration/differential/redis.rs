//! A redis-server of the test's own.

use crate::differential::answer::Answer;
use std::env;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A server that ends with the test.
pub(crate) struct Redis {
    child: Child,
    folder: PathBuf,
}

impl Redis {
    /// Starts one, if the program is there.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let folder = env::temp_dir().join(format!("kvasir-resp-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "s"]);
        let child = command.current_dir(&folder).stdout(Stdio::null()).spawn();
        let Ok(child) = child else {
            let is_required = env::var("REQUIRE_REDIS").is_ok_and(|value| value == "1");
            assert!(!is_required, "REQUIRE_REDIS=1, and there is no redis-server");
            eprintln!("skipped: no redis-server on the path");
            return None;
        };
        Some(Self { child, folder })
    }

    pub(crate) fn connect(&self) -> Client {
        for _ in 0..500 {
            if let Ok(stream) = UnixStream::connect(self.folder.join("s")) {
                return Client { stream, come: Vec::new() };
            }
            sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A connection to it.
pub(crate) struct Client {
    stream: UnixStream,
    come: Vec<u8>,
}

impl Client {
    /// Whether the connection is over, or is within a second.
    pub(crate) fn is_over(&mut self) -> bool {
        let limit = Some(Duration::from_secs(1));
        self.stream.set_read_timeout(limit).expect("it is a limit");
        let is_over = matches!(self.stream.read(&mut [0; 1]), Ok(0));
        self.stream.set_read_timeout(None).expect("there may be none");
        is_over
    }

    /// Sends `bytes`, and reads nothing.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("redis-server listens");
    }

    /// Whether the connection is over, or is within a second. Skips the bytes before its end.
    pub(crate) fn is_closed(&mut self) -> bool {
        let limit = Some(Duration::from_secs(1));
        self.stream.set_read_timeout(limit).expect("it is a limit");
        loop {
            match self.stream.read(&mut [0; 1_024]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::ConnectionReset,
            }
        }
    }

    /// Sends `bytes`, and returns so many answers.
    pub(crate) fn ask(&mut self, bytes: &[u8], answers: usize) -> Vec<Answer> {
        self.stream.write_all(bytes).expect("redis-server listens");
        let mut all = Vec::new();
        while all.len() < answers {
            if let Some((answer, len)) =
                (!self.come.is_empty()).then(|| Answer::parse(&self.come)).flatten()
            {
                self.come.drain(..len);
                all.push(answer);
                continue;
            }
            let mut part = vec![0; 65_536];
            let len = self.stream.read(&mut part).expect("redis-server answers");
            assert!(len > 0, "redis-server has ended the connection after {all:?}");
            self.come.extend_from_slice(&part[..len]);
        }
        assert!(self.come.is_empty(), "more came: {}", self.come.escape_ascii());
        all
    }
}
