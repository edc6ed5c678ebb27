use std::fmt;

/// 1024 bytes.
pub const KIB: u64 = 1024;
/// 1024 KiB.
pub const MIB: u64 = 1024 * KIB;
/// 1024 MiB.
pub const GIB: u64 = 1024 * MIB;
/// 1024 GiB.
pub const TIB: u64 = 1024 * GIB;

/// `bytes` with the binary unit that a person would choose: `4.0 KiB`.
#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
pub fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} B"),
        KIB..MIB => format!("{:.1} KiB", bytes as f64 / KIB as f64),
        MIB..GIB => format!("{:.1} MiB", bytes as f64 / MIB as f64),
        GIB..TIB => format!("{:.2} GiB", bytes as f64 / GIB as f64),
        _ => format!("{:.2} TiB", bytes as f64 / TIB as f64),
    }
}

/// Why text is not a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// It is not a whole number with a unit, or more than a `u64` counts.
    Format,
    /// It is a number this small, and no unit says that bytes are meant.
    NoUnit(u64),
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => f.write_str(
                "a size is a whole number with a unit: B, KiB, MiB, GiB, TiB (powers of 1024), \
                 kB, MB, GB or TB (powers of 1000), as 10GiB",
            ),
            Self::NoUnit(number) => write!(
                f,
                "{number} has no unit: write {number}MiB for mebibytes, or {number}B for bytes"
            ),
        }
    }
}

impl std::error::Error for SizeError {}

/// Smallest number that is taken for bytes where no unit says so. Below it a size of memory, of a
/// drive or of a rate is more likely a number whose unit was forgotten.
const BARE_MIN: u64 = 4 * KIB;

/// Parses the size of memory, of a drive or of a rate, in bytes: a whole number and a unit.
///
/// A number without a unit is bytes if it is 0, or 4096 or more.
///
/// # Errors
/// [`SizeError::NoUnit`] for a smaller number without a unit; [`SizeError::Format`] for anything
/// else that is not a size, or is more than a `u64` counts.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let bytes = parse_length(text)?;
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare && (1..BARE_MIN).contains(&bytes) {
        return Err(SizeError::NoUnit(bytes));
    }
    Ok(bytes)
}

/// Parses the length of a key, a value or a block, in bytes: as [`parse_size`], but any number
/// without a unit is bytes.
///
/// Units are read in any case. `k`, `m`, `g` and `t` alone are powers of 1024.
///
/// # Errors
/// [`SizeError::Format`] for anything else, or more than a `u64` counts.
pub fn parse_length(text: &str) -> Result<u64, SizeError> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => KIB,
        "m" | "mib" => MIB,
        "g" | "gib" => GIB,
        "t" | "tib" => TIB,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(SizeError::Format),
    };
    let number: u64 = number.parse().map_err(|_| SizeError::Format)?;
    number.checked_mul(unit).ok_or(SizeError::Format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024_or_of_1000() {
        for (text, bytes) in [
            ("0", 0),
            ("16B", 16),
            ("4096", 4_096),
            ("4k", 4_096),
            ("4K", 4_096),
            ("4KiB", 4_096),
            ("2MiB", 2 << 20),
            ("2m", 2 << 20),
            ("1g", 1 << 30),
            ("3GiB", 3 << 30),
            ("5TiB", 5 << 40),
            ("1t", 1 << 40),
            ("4kB", 4_000),
            ("10MB", 10_000_000),
            ("10GB", 10_000_000_000),
            ("2TB", 2_000_000_000_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(parse_length(text), Ok(bytes), "{text}");
        }
        let many = [format!("{}g", u64::MAX), "16777216TiB".to_owned()];
        for text in ["", "k", "4 k", "-1", "+1", "1.5k", "0x10", "4kk", "4kbit", "\u{664}"] {
            assert_eq!(parse_size(text), Err(SizeError::Format), "{text}");
        }
        assert!(many.iter().all(|text| parse_length(text) == Err(SizeError::Format)));
    }

    #[test]
    fn a_small_size_needs_a_unit_and_a_small_length_does_not() {
        for number in [1, 10, 512, 4_095] {
            let text = number.to_string();
            assert_eq!(parse_size(&text), Err(SizeError::NoUnit(number)));
            assert_eq!(parse_size(&format!("{text}B")), Ok(number));
            assert_eq!(parse_length(&text), Ok(number));
        }
        let sentence = SizeError::NoUnit(10).to_string();
        assert_eq!(sentence, "10 has no unit: write 10MiB for mebibytes, or 10B for bytes");
    }

    #[test]
    fn sizes_print_in_binary_units() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(4 * KIB), "4.0 KiB");
        assert_eq!(human_bytes(3 * GIB / 2), "1.50 GiB");
        assert_eq!(human_bytes(5 * TIB / 2), "2.50 TiB");
    }
}
