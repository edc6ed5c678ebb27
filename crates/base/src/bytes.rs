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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_in_binary_units() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(4 * KIB), "4.0 KiB");
        assert_eq!(human_bytes(3 * GIB / 2), "1.50 GiB");
    }
}
