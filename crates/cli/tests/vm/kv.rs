//! Commands of the Key Value command set, by nvme-cli's passthrough. Each is Ok with the result of
//! its completion, or an error with its status type and code.

use crate::guest::{Guest, Ran};
use std::fmt::Write;

/// The one namespace, whatever number its controller has.
const DEVICE: &str = "/dev/ng*n1";

/// KV Key Does Not Exist (KV 1.0d, Generic Command Status Values).
pub(crate) const KEY_DOES_NOT_EXIST: u32 = 0x87;

/// Invalid Key Size (KV 1.0d, Generic Command Status Values).
pub(crate) const INVALID_KEY_SIZE: u32 = 0x86;

/// KV Key Exists (KV 1.0d, Generic Command Status Values).
pub(crate) const KEY_EXISTS: u32 = 0x89;

/// Store only if the key is not there (KV 1.0d, Store command, Store Option bit 1).
const IF_ABSENT: u32 = 1 << 9;

/// Status type and code of a completion; More and Do Not Retry stand above.
const TYPE_AND_CODE: u32 = 0x7ff;

/// Stores a file of `size` bytes.
pub(crate) fn store(guest: &mut Guest, key: &str, file: &str, size: u32) -> Result<u32, u32> {
    outcome(guest, &storing(key, file, size, 0))
}

/// Stores a file of `size` bytes unless the key is there.
pub(crate) fn store_new(guest: &mut Guest, key: &str, file: &str, size: u32) -> Result<u32, u32> {
    outcome(guest, &storing(key, file, size, IF_ABSENT))
}

/// Writes `size` bytes of the value into a file. The result is the value's size.
pub(crate) fn retrieve(guest: &mut Guest, key: &str, file: &str, size: u32) -> Result<u32, u32> {
    outcome(guest, &retrieving(key, file, size))
}

/// Writes a list of all keys, `size` bytes with what pads them, into a file.
pub(crate) fn list(guest: &mut Guest, file: &str, size: u32) -> Result<u32, u32> {
    outcome(guest, &reading(0x06, "", file, size))
}

pub(crate) fn delete(guest: &mut Guest, key: &str) -> Result<u32, u32> {
    outcome(guest, &line(0x10, key, 0, 0))
}

pub(crate) fn exist(guest: &mut Guest, key: &str) -> Result<u32, u32> {
    outcome(guest, &line(0x14, key, 0, 0))
}

/// The line of a script that stores a file of `size` bytes, with `options` as they are in CDW11.
pub(crate) fn storing(key: &str, file: &str, size: u32, options: u32) -> String {
    let data = format!("--write --data-len={size} --input-file={file}");
    line(0x01, key, size, options) + &data
}

/// The line of a script that writes `size` bytes of the value into a file.
pub(crate) fn retrieving(key: &str, file: &str, size: u32) -> String {
    reading(0x02, key, file, size)
}

fn reading(opcode: u8, key: &str, file: &str, size: u32) -> String {
    let data = format!("--read --data-len={size} --raw-binary > {file}");
    line(opcode, key, size, 0) + &data
}

/// A key's first byte is the lowest of CDW2; then come CDW3, CDW14 and CDW15. Its length is in
/// CDW11 (KV 1.0d, Key).
fn line(opcode: u8, key: &str, size: u32, options: u32) -> String {
    assert!(key.len() <= 16, "a longer key is not in the command");
    let length = options | u32::try_from(key.len()).expect("a key is short");
    let mut line = format!(
        "nvme io-passthru {DEVICE} --namespace-id=1 --opcode={opcode:#04x} --cdw10={size} \
         --cdw11={length:#x} "
    );
    for (word, bytes) in [2, 3, 14, 15].into_iter().zip(key.as_bytes().chunks(4)) {
        let value = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        write!(line, "--cdw{word}={value:#x} ").expect("a string takes text");
    }
    line
}

/// nvme-cli says `... result: 0x00004e21` or `NVMe status: ...(0x4087)`.
#[track_caller]
fn outcome(guest: &mut Guest, line: &str) -> Result<u32, u32> {
    let Ran { status, output } = guest.run(line);
    let number = |before: &str| {
        let (_, rest) = output.rsplit_once(before)?;
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        u32::from_str_radix(&rest[..end], 16).ok()
    };
    let outcome = if status == 0 {
        number("result: 0x").map(Ok)
    } else {
        number("(0x").map(|status| Err(status & TYPE_AND_CODE))
    };
    outcome.unwrap_or_else(|| panic!("{line}\nended with {status}, and printed\n{output}"))
}
