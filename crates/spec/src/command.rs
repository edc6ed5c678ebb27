use crate::{Opcode, StoreOptions};
use core::fmt;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Longest key in bytes that fits a command. A longer one travels by a transfer of its own, as
/// OpenMPDK's devices take it: the command then carries its length and no byte of it.
pub const KEY_BYTES_INLINE: usize = 16;

const KEY_BYTES_HALF: usize = KEY_BYTES_INLINE / 2;

/// A submission queue entry of the KV command set (KV 1.0d, Store, Retrieve, List, Delete and Exist
/// commands; Base 2.1, Common Command Format).
#[derive(
    Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Command {
    opcode: u8,
    flags: u8,
    id: U16,
    nsid: U32,
    key_low: [u8; KEY_BYTES_HALF],
    metadata_pointer: [u8; 8],
    data_pointer: [u8; 16],
    size: U32,
    key_length: u8,
    options: u8,
    dword11_high: [u8; 2],
    // Reserved, and not to be checked: hosts are known to leave bytes of their own in it.
    dword12_13: [u8; 8],
    key_high: [u8; KEY_BYTES_HALF],
}

const _: () = assert!(size_of::<Command>() == 64, "a submission queue entry has 64 bytes");

impl Command {
    /// Asks to store a value of `value_len` bytes under `key`, of at most 255 bytes.
    #[inline]
    pub fn store(nsid: u32, key: &[u8], value_len: u32, options: StoreOptions) -> Self {
        Self::new(Opcode::STORE, nsid, key, value_len).with_options(options.bits())
    }

    /// Asks for the first `buffer_len` bytes of the value of `key`.
    #[inline]
    pub fn retrieve(nsid: u32, key: &[u8], buffer_len: u32) -> Self {
        Self::new(Opcode::RETRIEVE, nsid, key, buffer_len)
    }

    /// Asks to remove `key` and its value.
    #[inline]
    pub fn delete(nsid: u32, key: &[u8]) -> Self {
        Self::new(Opcode::DELETE, nsid, key, 0)
    }

    /// Asks whether `key` is there.
    #[inline]
    pub fn exist(nsid: u32, key: &[u8]) -> Self {
        Self::new(Opcode::EXIST, nsid, key, 0)
    }

    /// Asks for as many keys as fit `buffer_len` bytes, from `start` on; an empty `start` is the
    /// device's first key.
    #[inline]
    pub fn list(nsid: u32, start: &[u8], buffer_len: u32) -> Self {
        Self::new(Opcode::LIST, nsid, start, buffer_len)
    }

    #[inline]
    fn new(opcode: Opcode, nsid: u32, key: &[u8], size: u32) -> Self {
        let key_length = u8::try_from(key.len()).expect("a key has at most 255 bytes");
        let mut inline = [[0; KEY_BYTES_HALF]; 2];
        if let Some(bytes) = inline.as_flattened_mut().get_mut(..key.len()) {
            bytes.copy_from_slice(key);
        }
        let [key_low, key_high] = inline;
        Self {
            opcode: opcode.0,
            flags: 0,
            id: U16::ZERO,
            nsid: nsid.into(),
            key_low,
            metadata_pointer: [0; 8],
            data_pointer: [0; 16],
            size: size.into(),
            key_length,
            options: 0,
            dword11_high: [0; 2],
            dword12_13: [0; 8],
            key_high,
        }
    }

    /// The same command with `command_id`, which its completion repeats.
    #[inline]
    #[must_use]
    pub fn with_command_id(self, command_id: u16) -> Self {
        Self { id: command_id.into(), ..self }
    }

    /// The same command with `bits` as its option byte, reserved bits included.
    #[inline]
    #[must_use]
    pub fn with_options(self, bits: u8) -> Self {
        Self { options: bits, ..self }
    }

    /// What is asked for: CDW0 bits 7:0.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        Opcode(self.opcode)
    }

    /// The host's name for this command: CDW0 bits 31:16.
    #[inline]
    pub fn command_id(&self) -> u16 {
        self.id.get()
    }

    /// The namespace that is asked: CDW1.
    #[inline]
    pub fn nsid(&self) -> u32 {
        self.nsid.get()
    }

    /// Bytes of the key, inline or not: CDW11 bits 7:0.
    #[inline]
    pub fn key_length(&self) -> u8 {
        self.key_length
    }

    /// CDW11 bits 15:8: see [`StoreOptions::from_bits`] and
    /// [`RetrieveOptions::from_bits`](crate::RetrieveOptions::from_bits).
    #[inline]
    pub fn options(&self) -> u8 {
        self.options
    }

    /// CDW2, CDW3, CDW14 and CDW15: the key if it has at most 16 bytes, followed by zeros.
    #[inline]
    pub fn inline_key(&self) -> [u8; KEY_BYTES_INLINE] {
        let mut key = [0; KEY_BYTES_INLINE];
        key[..KEY_BYTES_HALF].copy_from_slice(&self.key_low);
        key[KEY_BYTES_HALF..].copy_from_slice(&self.key_high);
        key
    }

    /// Bytes of the value of a Store, or of the host's buffer for a Retrieve or List: CDW10.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size.get()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("opcode", &self.opcode())
            .field("command_id", &self.command_id())
            .field("nsid", &self.nsid())
            .field("key_length", &self.key_length)
            .field("inline_key", &format_args!("{}", self.inline_key().escape_ascii()))
            .field("options", &self.options)
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    /// An entry of zeros but for `parts`, each at its offset.
    fn entry(parts: &[(usize, &[u8])]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (offset, part) in parts {
            bytes[*offset..*offset + part.len()].copy_from_slice(part);
        }
        bytes
    }

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
        // Every byte is its own offset plus one, so that a field read from elsewhere differs.
        let bytes: [u8; 64] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        let command = Command::read_from_bytes(&bytes).unwrap();
        assert_eq!(command.opcode(), Opcode(1));
        assert_eq!(command.command_id(), 0x0403);
        assert_eq!(command.nsid(), 0x0807_0605);
        assert_eq!(command.size(), 0x2c2b_2a29);
        assert_eq!(command.key_length(), 45);
        assert_eq!(command.options(), 46);
        assert_eq!(
            command.inline_key(),
            [9, 10, 11, 12, 13, 14, 15, 16, 57, 58, 59, 60, 61, 62, 63, 64]
        );
        assert_eq!(command.as_bytes(), bytes);
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
}
