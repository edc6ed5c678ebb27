//! The Key Value command set: opcodes, and the fields of commands.

use crate::{Command, Opcode, StoreOptions};

/// Longest key in bytes that fits a command. A longer one travels by a transfer of its own, as
/// OpenMPDK's devices take it: the command then carries its length and no byte of it.
pub const KEY_BYTES_INLINE: usize = 16;

const KEY_BYTES_HALF: usize = KEY_BYTES_INLINE / 2;

/// The Key Value command set (KV 1.0d, opcodes for I/O commands).
impl Opcode {
    /// Writes one pair.
    pub const STORE: Self = Self(0x01);
    /// Reads the value of one key.
    pub const RETRIEVE: Self = Self(0x02);
    /// Reads keys, in the device's own order.
    pub const LIST: Self = Self(0x06);
    /// Removes one pair.
    pub const DELETE: Self = Self(0x10);
    /// Asks whether a key is there.
    pub const EXIST: Self = Self(0x14);
}

/// The Key Value command set (KV 1.0d, Store, Retrieve, List, Delete and Exist commands).
impl Command {
    /// Asks to store a value of `value_len` bytes under `key`, of at most 255 bytes.
    #[inline]
    pub fn store(nsid: u32, key: &[u8], value_len: u32, options: StoreOptions) -> Self {
        Self::about(Opcode::STORE, nsid, key, value_len).with_options(options.bits())
    }

    /// Asks for the first `buffer_len` bytes of the value of `key`.
    #[inline]
    pub fn retrieve(nsid: u32, key: &[u8], buffer_len: u32) -> Self {
        Self::about(Opcode::RETRIEVE, nsid, key, buffer_len)
    }

    /// Asks to remove `key` and its value.
    #[inline]
    pub fn delete(nsid: u32, key: &[u8]) -> Self {
        Self::about(Opcode::DELETE, nsid, key, 0)
    }

    /// Asks whether `key` is there.
    #[inline]
    pub fn exist(nsid: u32, key: &[u8]) -> Self {
        Self::about(Opcode::EXIST, nsid, key, 0)
    }

    /// Asks for as many keys as fit `buffer_len` bytes, from `start` on; an empty `start` is the
    /// device's first key.
    #[inline]
    pub fn list(nsid: u32, start: &[u8], buffer_len: u32) -> Self {
        Self::about(Opcode::LIST, nsid, start, buffer_len)
    }

    #[inline]
    fn about(opcode: Opcode, nsid: u32, key: &[u8], size: u32) -> Self {
        let key_length = u8::try_from(key.len()).expect("a key has at most 255 bytes");
        let mut inline = [[0; 4]; 4];
        if let Some(bytes) = inline.as_flattened_mut().get_mut(..key.len()) {
            bytes.copy_from_slice(key);
        }
        let [low, low_end, high, high_end] = inline;
        let [high, high_end] = [high, high_end].map(u32::from_le_bytes);
        let mut command = Self::new(opcode, nsid, [size, key_length.into(), 0, 0, high, high_end]);
        command.dwords_2_3.copy_from_slice([low, low_end].as_flattened());
        command
    }

    /// The same command with `bits` as its option byte, reserved bits included.
    #[inline]
    #[must_use]
    pub fn with_options(self, bits: u8) -> Self {
        self.with_dword::<11>(self.dword::<11>() & !0xff00 | u32::from(bits) << 8)
    }

    /// Bytes of the key, inline or not: CDW11 bits 7:0.
    #[inline]
    pub fn key_length(&self) -> u8 {
        self.dword::<11>().to_le_bytes()[0]
    }

    /// CDW11 bits 15:8: see [`StoreOptions::from_bits`] and
    /// [`RetrieveOptions::from_bits`](crate::RetrieveOptions::from_bits).
    #[inline]
    pub fn options(&self) -> u8 {
        self.dword::<11>().to_le_bytes()[1]
    }

    /// CDW2, CDW3, CDW14 and CDW15: the key if it has at most 16 bytes, followed by zeros.
    #[inline]
    pub fn inline_key(&self) -> [u8; KEY_BYTES_INLINE] {
        let mut key = [0; KEY_BYTES_INLINE];
        key[..KEY_BYTES_HALF].copy_from_slice(&self.dwords_2_3);
        let high = [self.dword::<14>(), self.dword::<15>()].map(u32::to_le_bytes);
        key[KEY_BYTES_HALF..].copy_from_slice(high.as_flattened());
        key
    }

    /// Bytes of the value of a Store, or of the host's buffer for a Retrieve or List: CDW10.
    #[inline]
    pub fn size(&self) -> u32 {
        self.dword::<10>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::vec;
    use zerocopy::IntoBytes;

    #[test]
    fn a_store_has_the_specifications_bytes() {
        // KV 1.0d, Store command: CDW2, 3, 14 and 15 key, CDW10 value size, CDW11 options and key
        // length.
        let options = StoreOptions::MUST_NOT_EXIST | StoreOptions::NO_COMPRESS;
        let command = Command::store(0x0a0b_0c0d, b"0123456789abcdef", 0x0012_3456, options);
        let expected = entry(&[
            (0, &[0x01, 0x00, 0xef, 0xbe]),
            (4, &[0x0d, 0x0c, 0x0b, 0x0a]),
            (8, b"01234567"),
            (40, &[0x56, 0x34, 0x12, 0x00]),
            (44, &[16, 0x06]),
            (56, b"89abcdef"),
        ]);
        assert_eq!(command.with_command_id(0xbeef).as_bytes(), expected);
    }

    #[test]
    fn the_other_commands_have_the_specifications_bytes() {
        // KV 1.0d, Retrieve, Delete, Exist and List commands: CDW10 is the host buffer size or
        // reserved.
        let key =
            |opcode| entry(&[(0, &[opcode]), (4, &[1]), (8, b"abcdefgh"), (44, &[9]), (56, b"i")]);
        let sized = |mut bytes: [u8; 64]| {
            bytes[41] = 0x10;
            bytes
        };
        assert_eq!(Command::retrieve(1, b"abcdefghi", 4096).as_bytes(), sized(key(0x02)));
        assert_eq!(Command::list(1, b"abcdefghi", 4096).as_bytes(), sized(key(0x06)));
        assert_eq!(Command::delete(1, b"abcdefghi").as_bytes(), key(0x10));
        assert_eq!(Command::exist(1, b"abcdefghi").as_bytes(), key(0x14));
    }

    #[test]
    fn a_list_from_the_first_key_has_no_key() {
        let expected = entry(&[(0, &[0x06]), (4, &[7]), (40, &[0x00, 0x02])]);
        assert_eq!(Command::list(7, b"", 512).as_bytes(), expected);
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.size(), 0x2c2b_2a29);
        assert_eq!(command.key_length(), 45);
        assert_eq!(command.options(), 46);
        assert_eq!(
            command.inline_key(),
            [9, 10, 11, 12, 13, 14, 15, 16, 57, 58, 59, 60, 61, 62, 63, 64]
        );
    }

    #[test]
    fn a_key_of_up_to_16_bytes_is_inline_and_a_longer_one_is_only_its_length() {
        for len in 0..=255_u8 {
            let key = vec![0xa5; usize::from(len)];
            let command = Command::exist(1, &key);
            let mut expected = [0; 16];
            if len <= 16 {
                expected[..key.len()].fill(0xa5);
            }
            assert_eq!((command.key_length(), command.inline_key()), (len, expected));
        }
    }

    #[test]
    fn options_take_any_byte() {
        let command = Command::retrieve(1, b"k", 0).with_options(0xf8);
        assert_eq!((command.options(), command.key_length()), (0xf8, 1));
    }

    #[test]
    #[should_panic(expected = "a key has at most 255 bytes")]
    fn a_key_of_256_bytes_is_refused() {
        let _ = Command::exist(1, &[0; 256]);
    }

    #[test]
    fn the_low_two_bits_give_the_direction_of_the_data() {
        // Base 2.1, opcode: 00b no data, 01b host to controller, 10b controller to host.
        assert_eq!(Opcode::STORE.0 & 0b11, 0b01);
        assert_eq!(Opcode::RETRIEVE.0 & 0b11, 0b10);
        assert_eq!(Opcode::LIST.0 & 0b11, 0b10);
        assert_eq!(Opcode::DELETE.0 & 0b11, 0b00);
        assert_eq!(Opcode::EXIST.0 & 0b11, 0b00);
    }
}
