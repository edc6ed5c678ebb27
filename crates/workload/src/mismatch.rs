use base::Buf;
use serde::Serialize;
use std::fmt::{self, Write};

/// What the first operation found that found other data than its run stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// `key` and its bytes in hexadecimal, or `block` and the number of its first logical block.
    pub place: String,
    /// Value that the run stored there.
    pub expected: String,
    /// Value that was read.
    pub found: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, expected, found } = self;
        write!(f, "{place}: expected {expected}, found {found}")
    }
}

/// What a value of `len` bytes is called that begins with `tag`, or is as much of it as fits.
pub(crate) fn described(len: u32, tag: u64) -> String {
    let bytes = tag.to_le_bytes();
    match len as usize {
        0 => "an empty value".to_owned(),
        len if len <= bytes.len() => format!("the {len} bytes {}", hex(&bytes[..len])),
        len => format!("{len} bytes that begin with {}", hex(&bytes)),
    }
}

/// What `value`, which came back, is called.
pub(crate) fn described_value(value: &Buf) -> String {
    let Some(bytes) = value.bytes() else { return described(value.len(), value.checksum()) };
    let mut tag = [0; size_of::<u64>()];
    let len = bytes.len().min(tag.len());
    tag[..len].copy_from_slice(&bytes[..len]);
    described(value.len(), u64::from_le_bytes(tag))
}

/// `bytes` as two digits each.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a string takes any text");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_by_its_length_and_its_first_bytes() {
        for (bytes, told) in [
            (&[][..], "an empty value"),
            (&[1, 0xab], "the 2 bytes 01ab"),
            (&[9; 8], "the 8 bytes 0909090909090909"),
            (&[7; 9], "9 bytes that begin with 0707070707070707"),
        ] {
            assert_eq!(described_value(&Buf::copy_from(bytes)), told);
        }
        assert_eq!(
            described_value(&Buf::phantom(9, 1)),
            "9 bytes that begin with 0100000000000000"
        );
    }
}
