use serde_json::Value;
use std::ffi::OsStr;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// A profile of a device that is quickly full.
pub(crate) const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/black_box/small.toml");

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The JSON that it printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Longer than any of these tests takes on processors of its own: what hangs is to fail.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Runs the program to its end.
pub(crate) fn kvasir(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    kvasir_into(arguments, Stdio::piped())
}

/// Runs the program to its end, with `stdout` for its output.
pub(crate) fn kvasir_into(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    stdout: Stdio,
) -> Ran {
    let child = Command::new(env!("CARGO_BIN_EXE_kvasir"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    finished(child)
}

/// Waits for `child` and collects its output, as far as that is piped.
pub(crate) fn finished(mut child: Child) -> Ran {
    let stdout = child.stdout.take().map(|mut pipe| spawn(move || text(&mut pipe)));
    let stderr = child.stderr.take().map(|mut pipe| spawn(move || text(&mut pipe)));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let took = started.elapsed();
        if took > TIMEOUT && took > TIMEOUT + time_without_processor(&child) {
            child.kill().unwrap();
            panic!("the program does not end");
        }
        sleep(Duration::from_millis(2));
    };
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.map_or_else(String::new, |reader| reader.join().unwrap())
    };
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Returns for how long the program could have been executed while others were. See `schedstat` in
/// proc(5); where the kernel does not keep it, 0.
fn time_without_processor(child: &Child) -> Duration {
    let figures = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id()));
    let waited = figures.ok().and_then(|text| text.split(' ').nth(1)?.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

fn text(pipe: &mut impl Read) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).unwrap();
    text
}

/// The JSON of a run that found nothing wrong and was silent beside it.
pub(crate) fn json(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
    let ran = kvasir(arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    ran.json()
}
