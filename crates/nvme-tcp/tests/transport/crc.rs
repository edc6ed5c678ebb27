/// CRC-32C of `bytes`, bit by bit (RFC 3720, appendix B.4): what digests are.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

#[test]
fn the_oracle_gives_the_check_value_of_the_standard() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
