//! QEMU's own interface, by which tests plug devices into a guest and out of it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Many times what QEMU takes for a command on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A connection to a QEMU (its QMP reference).
#[derive(Debug)]
pub(crate) struct Qmp(BufReader<UnixStream>);

impl Qmp {
    /// Connects to the QEMU that listens at `socket`, or is about to.
    pub(crate) fn connect(socket: &Path) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < deadline, "QEMU does not listen: {error}"),
            }
            sleep(Duration::from_millis(10));
        };
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut qmp = Self(BufReader::new(stream));
        assert!(qmp.message()["QMP"].is_object(), "QEMU introduces itself");
        qmp.execute("qmp_capabilities", &json!({}));
        qmp
    }

    /// Runs a command that is to succeed.
    #[track_caller]
    pub(crate) fn execute(&mut self, command: &str, arguments: &Value) {
        let line = json!({"execute": command, "arguments": arguments}).to_string() + "\n";
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        loop {
            let message = self.message();
            if message.get("return").is_some() {
                return;
            }
            assert!(message.get("error").is_none(), "{command}: {message}");
        }
    }

    #[track_caller]
    fn message(&mut self) -> Value {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        assert!(matches!(read, Ok(1..)), "QEMU says nothing: {read:?}");
        serde_json::from_str(&line).unwrap()
    }
}
