use std::fmt;

/// 1024 bytes.
pub const KIB: u64 = 1024;
/// 1024 KiB.
pub const MIB: u64 = 1024 * KIB;
/// 1024 MiB.
pub const GIB: u64 = 1024 * MIB;

/// `bytes` with the binary unit that a person would choose: `4.0 KiB`.
#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{:.1} KiB", bytes as f64 / KIB as f64),
        MIB..GIB => format!("{:.1} MiB", bytes as f64 / MIB as f64),
        _ => format!("{:.2} GiB", bytes as f64 / GIB as f64),
    }
}

/// Text that is no number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeError;

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size is a number of bytes, KiB, MiB or GiB, as 4096, 4KiB or 4k")
    }
}

impl std::error::Error for SizeError {}

/// The bytes that `text` writes: a number, and a unit of 1024 or a power of it.
///
/// # Errors
/// When it is anything else, or more than a `u64` counts.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => MIB,
        "g" | "gib" => GIB,
        _ => return Err(SizeError),
    };
    let number: u64 = number.parse().map_err(|_| SizeError)?;
    number.checked_mul(unit).ok_or(SizeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, bytes) in [
            ("0", 0),
            ("16", 16),
            ("16B", 16),
            ("4k", 4_096),
            ("4K", 4_096),
            ("4KiB", 4_096),
            ("2MiB", 2 << 20),
            ("2m", 2 << 20),
            ("1g", 1 << 30),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        let many = format!("{}g", u64::MAX);
        for text in ["", "k", "4kb", "4 k", "-1", "+1", "1.5k", "0x10", "4kk", "\u{664}", &many] {
            assert_eq!(parse_size(text), Err(SizeError), "{text}");
        }
    }

    #[test]
    fn sizes_print_in_binary_units() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(4 * KIB), "4.0 KiB");
        assert_eq!(human_bytes(3 * GIB / 2), "1.50 GiB");
    }
}
