const TABLE: [u32; 256] = table();

/// CRC-32C of `bytes` (RFC 3720, appendix B.4): what digests are.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        (crc >> 8) ^ TABLE[usize::from(low ^ byte)]
    })
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let (mut byte, mut crc) = (0, 0);
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
        crc = byte;
    }
    table
}

#[test]
fn the_oracle_gives_the_check_value_of_the_standard() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
