//! Where the data of a command is: the data pointer as a host of a fabric writes it, and the way
//! that the data goes.

use crate::{AdminOpcode, Command, SglDescriptor};

/// PSDT in bits 7:6 of a command's second byte: 01b is an SGL, and no metadata or one buffer of it.
pub(crate) const PSDT_SGL: u8 = 0b01 << 6;
const PSDT_SGL_METADATA_SEGMENT: u8 = 0b10 << 6;
pub(crate) const PSDT_MASK: u8 = 0b11 << 6;

/// SGL Data Block descriptor, whose address is an offset.
const DATA_BLOCK_OFFSET: u8 = 0x01;
/// Transport SGL Data Block descriptor, which leaves the place to the transport.
const TRANSPORT_DATA_BLOCK: u8 = 0x5a;

/// Where the data of a command is, and how much of it: the first SGL descriptor, CDW6 to CDW9 (Base
/// 2.1, SGL Data Block descriptor, Transport SGL Data Block descriptor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPointer {
    /// In the command's own capsule, behind the submission queue entry: identifier 01h.
    InCapsule {
        /// Bytes from the start of the capsule's data. An offset of more than 32 bits, which is
        /// past the end of every capsule, reads as [`u32::MAX`].
        offset: u32,
        /// Bytes of data.
        len: u32,
    },
    /// Moved by the transport's own means, when the controller asks for it: identifier 5Ah. A
    /// command without data has this, of no bytes.
    Transport {
        /// Bytes of data.
        len: u32,
    },
    /// Any other descriptor, by its identifier: descriptor type in bits 7:4, sub type in bits 3:0.
    Other(u8),
}

impl DataPointer {
    /// The descriptor's bytes. Those of [`DataPointer::Other`] are zeros but for the identifier.
    fn to_bytes(self) -> [u8; 16] {
        let (address, len, identifier) = match self {
            Self::InCapsule { offset, len } => (u64::from(offset), len, DATA_BLOCK_OFFSET),
            Self::Transport { len } => (0, len, TRANSPORT_DATA_BLOCK),
            Self::Other(identifier) => (0, 0, identifier),
        };
        zerocopy::transmute!(SglDescriptor::new(identifier, address, len))
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let descriptor: SglDescriptor = zerocopy::transmute!(bytes);
        let len = descriptor.len.get();
        match descriptor.identifier {
            DATA_BLOCK_OFFSET => Self::InCapsule {
                offset: u32::try_from(descriptor.address.get()).unwrap_or(u32::MAX),
                len,
            },
            TRANSPORT_DATA_BLOCK => Self::Transport { len },
            other => Self::Other(other),
        }
    }
}

/// The way that the data of a command goes (Base 2.1, Opcode, Data Transfer Direction).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// There is none. So it is, too, for the numbers of commands with data in both directions: none
    /// of these command sets has one.
    None,
    /// From the host.
    ToController,
    /// To the host.
    ToHost,
}

/// The data pointer (Base 2.1, Common Command Format).
impl Command {
    /// Where the data is: CDW6 to CDW9. It means nothing unless the command
    /// [`uses_sgl`](Self::uses_sgl).
    #[inline]
    pub fn data_pointer(&self) -> DataPointer {
        DataPointer::from_bytes(self.data_pointer)
    }

    /// The same command with its data at `pointer`, and marked as one that uses an SGL.
    #[inline]
    #[must_use]
    pub fn with_data_pointer(mut self, pointer: DataPointer) -> Self {
        self.flags = self.flags & !PSDT_MASK | PSDT_SGL;
        self.data_pointer = pointer.to_bytes();
        self
    }

    /// True when CDW6 to CDW9 are an SGL descriptor and no PRP entries: CDW0 bits 15:14 (PSDT) are
    /// 01b or 10b. All commands on a fabric have it so.
    #[inline]
    pub fn uses_sgl(&self) -> bool {
        matches!(self.flags & PSDT_MASK, PSDT_SGL | PSDT_SGL_METADATA_SEGMENT)
    }

    /// The way that the data goes, by bits 1:0 of the opcode, or of the type of a fabrics command.
    #[inline]
    pub fn transfer(&self) -> Transfer {
        let number = match self.admin_opcode() {
            AdminOpcode::FABRICS => self.fabrics_type().0,
            opcode => opcode.0,
        };
        match number & 0b11 {
            0b01 => Transfer::ToController,
            0b10 => Transfer::ToHost,
            _ => Transfer::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use crate::{FabricsType, Opcode};
    use zerocopy::IntoBytes;

    #[test]
    fn descriptors_have_the_specifications_bytes() {
        // Base 2.1, SGL descriptors: address in bytes 7:0, length in bytes 11:8, identifier in byte
        // 15. The data pointer is in bytes 39:24 of a command, PSDT in bits 7:6 of byte 1.
        let command = Command::exist(1, b"").with_command_id(0);
        let inside = DataPointer::InCapsule { offset: 0x0102_0304, len: 0x0506_0708 };
        let parts: [(usize, &[u8]); 3] = [(0, &[0x14, 0x40]), (4, &[1]), (24, &[4, 3, 2, 1])];
        let mut expected = entry(&parts);
        expected[32..40].copy_from_slice(&[8, 7, 6, 5, 0, 0, 0, 0x01]);
        assert_eq!(command.with_data_pointer(inside).as_bytes(), expected);

        let outside = DataPointer::Transport { len: 0x0506_0708 };
        expected[24..28].fill(0);
        expected[39] = 0x5a;
        assert_eq!(command.with_data_pointer(outside).as_bytes(), expected);

        expected[32..36].fill(0);
        expected[39] = 0x40;
        assert_eq!(command.with_data_pointer(DataPointer::Other(0x40)).as_bytes(), expected);
    }

    #[test]
    fn a_linux_host_has_16_kib_of_a_value_asked_for() {
        // The SGL of a Store of 16,384 bytes, as Linux sends it.
        let mut bytes = [0; 16];
        bytes[8..12].copy_from_slice(&[0x00, 0x40, 0x00, 0x00]);
        bytes[15] = 0x5a;
        assert_eq!(DataPointer::from_bytes(bytes), DataPointer::Transport { len: 16_384 });
    }

    #[test]
    fn every_data_pointer_comes_back() {
        let other = (0..=u8::MAX)
            .filter(|id| ![DATA_BLOCK_OFFSET, TRANSPORT_DATA_BLOCK].contains(id))
            .map(DataPointer::Other);
        let sized = [0, 1, 8192, u32::MAX].into_iter().flat_map(|len| {
            [DataPointer::InCapsule { offset: len ^ 0xff, len }, DataPointer::Transport { len }]
        });
        for pointer in other.chain(sized) {
            let command = counting().with_data_pointer(pointer);
            assert_eq!(command.data_pointer(), pointer);
            assert_eq!(command.nsid(), counting().nsid(), "nothing else changes");
        }
    }

    #[test]
    fn an_offset_past_every_capsule_reads_as_the_largest() {
        let mut bytes = [0; 16];
        bytes[4] = 1;
        bytes[15] = 0x01;
        let pointer = DataPointer::InCapsule { offset: u32::MAX, len: 0 };
        assert_eq!(DataPointer::from_bytes(bytes), pointer);
    }

    #[test]
    fn only_psdt_says_whether_there_is_an_sgl() {
        for flags in 0..=u8::MAX {
            let mut command = Command::default();
            command.flags = flags;
            assert_eq!(command.uses_sgl(), matches!(flags >> 6, 1 | 2), "flags {flags:02x}");
            let with = command.with_data_pointer(DataPointer::Transport { len: 0 });
            assert_eq!(with.flags, flags & 0x3f | 0x40, "the other flags stay");
        }
    }

    #[test]
    fn data_goes_where_the_opcode_or_the_fabrics_type_says() {
        for (opcode, transfer) in [
            (AdminOpcode::KEEP_ALIVE, Transfer::None),
            (AdminOpcode::SET_FEATURES, Transfer::ToController),
            (AdminOpcode::IDENTIFY, Transfer::ToHost),
            (AdminOpcode(0x83), Transfer::None),
        ] {
            let command = Command::new(Opcode(opcode.0), 0xffff_ffff, [0; 6]);
            assert_eq!(command.transfer(), transfer, "{opcode}");
        }
        for (fabrics_type, transfer) in [
            (FabricsType::PROPERTY_SET, Transfer::None),
            (FabricsType::PROPERTY_GET, Transfer::None),
            (FabricsType::CONNECT, Transfer::ToController),
            (FabricsType::DISCONNECT, Transfer::None),
            (FabricsType(0x06), Transfer::ToHost),
        ] {
            let command = Command::new(Opcode(0x7f), fabrics_type.0.into(), [0; 6]);
            assert_eq!(command.transfer(), transfer, "{fabrics_type}");
        }
    }
}
