use crate::Opcode;
use core::fmt;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A submission queue entry (Base 2.1, Common Command Format): what all command sets share.
///
/// What the rest of it means depends on the command set of the namespace. Builders and accessors of
/// each set are in a file of their own. An accessor of one set gives some number for a command of
/// another one, and never fails.
#[derive(
    Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Command {
    opcode: u8,
    pub(crate) flags: u8,
    id: U16,
    nsid: U32,
    pub(crate) dwords_2_3: [u8; 8],
    metadata_pointer: [u8; 8],
    pub(crate) data_pointer: [u8; 16],
    // Reserved parts are not to be checked: hosts are known to leave bytes of their own in them.
    dwords_10_15: [U32; 6],
}

const _: () = assert!(size_of::<Command>() == 64, "a submission queue entry has 64 bytes");

impl Command {
    /// A command with these command dwords 10 to 15 and no more.
    #[inline]
    pub(crate) fn new(opcode: Opcode, nsid: u32, dwords_10_15: [u32; 6]) -> Self {
        Self {
            opcode: opcode.0,
            flags: 0,
            id: U16::ZERO,
            nsid: nsid.into(),
            dwords_2_3: [0; 8],
            metadata_pointer: [0; 8],
            data_pointer: [0; 16],
            dwords_10_15: dwords_10_15.map(U32::new),
        }
    }

    /// The same command with `command_id`, which its completion repeats.
    #[inline]
    #[must_use]
    pub fn with_command_id(self, command_id: u16) -> Self {
        Self { id: command_id.into(), ..self }
    }

    /// The same command with `value` as command dword `N`, of 10 to 15.
    #[inline]
    #[must_use]
    pub(crate) fn with_dword<const N: usize>(mut self, value: u32) -> Self {
        self.dwords_10_15[N - 10] = value.into();
        self
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

    /// Command dword `N`, of 10 to 15.
    #[inline]
    pub(crate) fn dword<const N: usize>(&self) -> u32 {
        self.dwords_10_15[N - 10].get()
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("opcode", &self.opcode())
            .field("command_id", &self.command_id())
            .field("nsid", &self.nsid())
            .field("dwords_2_3", &format_args!("{}", self.dwords_2_3.escape_ascii()))
            .field("dwords_10_15", &format_args!("{:x?}", self.dwords_10_15.map(U32::get)))
            .finish_non_exhaustive()
    }
}

/// Tests of a command's bytes.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An entry of zeros but for `parts`, each at its offset.
    pub(crate) fn entry(parts: &[(usize, &[u8])]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for (offset, part) in parts {
            bytes[*offset..*offset + part.len()].copy_from_slice(part);
        }
        bytes
    }

    /// A command whose every byte is its own offset plus one, so that a field that is read from
    /// elsewhere differs.
    pub(crate) fn counting() -> Command {
        let bytes: [u8; 64] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        Command::read_from_bytes(&bytes).unwrap()
    }

    #[test]
    fn what_all_sets_share_is_where_the_specification_has_it() {
        // Base 2.1, Common Command Format: CDW0 opcode and command id, CDW1 namespace.
        let command = Command::new(Opcode(0x55), 0x0a0b_0c0d, [1, 2, 3, 4, 5, 0x0607_0809]);
        let expected = entry(&[
            (0, &[0x55, 0x00, 0xef, 0xbe]),
            (4, &[0x0d, 0x0c, 0x0b, 0x0a]),
            (40, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0]),
            (60, &[9, 8, 7, 6]),
        ]);
        assert_eq!(command.with_command_id(0xbeef).as_bytes(), expected);
        let command = counting();
        assert_eq!(command.opcode(), Opcode(1));
        assert_eq!(command.command_id(), 0x0403);
        assert_eq!(command.nsid(), 0x0807_0605);
        assert_eq!(command.dword::<10>(), 0x2c2b_2a29);
        assert_eq!(command.dword::<15>(), 0x403f_3e3d);
    }
}
