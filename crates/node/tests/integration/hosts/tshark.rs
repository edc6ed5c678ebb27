//! tshark, which has a dissector of NVMe/TCP of its own.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::process::Command;

/// Severities of its expert information: what it warns of, and more (Wireshark, `epan/proto.h`).
const WARNING: u64 = 0x0060_0000;

/// What it found in a frame: the first value of each field, and what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) fields: BTreeMap<String, u64>,
    pub(crate) complaint: Option<String>,
}

/// The frames of a capture file, from the first on, with those of `fields` that each has. `None`
/// if there is no tshark, which is said, or is a failure where it is required.
pub(crate) fn decode(file: &OsStr, fields: &[&str]) -> Option<Vec<Frame>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-d", "tcp.port==4420,nvme-tcp", "-T", "fields", "-E", "separator=/t"]);
    command.args(["-o", "nvme-tcp.check_hdgst:TRUE", "-o", "nvme-tcp.check_ddgst:TRUE"]);
    let complaints = ["_ws.malformed", "_ws.expert.severity", "_ws.expert.message"];
    for field in fields.iter().chain(&complaints) {
        command.args(["-e", field]);
    }
    let output = match command.arg("-r").arg(file).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip();
            return None;
        }
        output => output.expect("tshark runs"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark takes the file and knows the fields: {said}");
    let text = String::from_utf8(output.stdout).expect("numbers are text");
    Some(text.lines().map(|line| frame(line, fields)).collect())
}

fn skip() {
    let is_required = ["REQUIRE_TSHARK", "REQUIRE_VM"]
        .iter()
        .any(|name| env::var(name).is_ok_and(|value| value == "1"));
    assert!(!is_required, "tshark is missing");
    // Not by `eprintln`, which is kept back when a test passes.
    writeln!(io::stderr(), "skipped: tshark is missing").expect("standard error takes a line");
}

fn frame(line: &str, names: &[&str]) -> Frame {
    let columns: Vec<_> = line.split('\t').collect();
    let (values, complaints) = columns.split_at(names.len());
    let mut frame = Frame::default();
    for (name, values) in names.iter().zip(values) {
        if let Some(value) = values.split(',').next().filter(|value| !value.is_empty()) {
            frame.fields.insert((*name).to_owned(), number(name, value));
        }
    }
    let severities = complaints[1].split(',').map(|text| number("severity", text));
    let is_severe = severities.max().is_some_and(|severity| severity >= WARNING);
    // It calls its own errors malformed too.
    if !complaints[0].is_empty() || is_severe {
        frame.complaint = Some(complaints.join(" "));
    }
    frame
}

/// Fields that it shows as bytes, the first one first: here the lowest of a number.
const BYTES: [&str; 2] = ["nvme.fabrics.prop_get_set.data", "nvme.cmd.rsvd1"];

/// The value of a field as tshark shows it: in decimal, or in hexadecimal; nothing is zero.
fn number(field: &str, text: &str) -> u64 {
    let number = match text.strip_prefix("0x") {
        _ if text.is_empty() => Ok(0),
        _ if BYTES.contains(&field) => u64::from_str_radix(text, 16).map(u64::swap_bytes),
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|error| panic!("{field}, {text:?}: {error}"))
}

#[test]
fn numbers_are_read_as_tshark_shows_them() {
    assert_eq!(number("nvme-tcp.plen", "4420"), 4_420);
    assert_eq!(number("nvme-tcp.flags", "0x0A"), 10);
    assert_eq!(number("nvme.fabrics.prop_get_set.data", "6100460000000000"), 0x0046_0061);
}
