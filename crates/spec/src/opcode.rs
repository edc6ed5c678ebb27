use core::fmt;

/// The first byte of a command: what is asked for (KV 1.0d, opcodes for I/O commands).
///
/// An opcode means this only in a KV namespace: Store and Retrieve have the numbers of the NVM
/// command set's Write and Read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

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

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::STORE => f.pad("Store"),
            Self::RETRIEVE => f.pad("Retrieve"),
            Self::LIST => f.pad("List"),
            Self::DELETE => f.pad("Delete"),
            Self::EXIST => f.pad("Exist"),
            Self(other) => write!(f, "opcode {other:02X}h"),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn opcodes_have_the_specifications_numbers_and_names() {
        // KV 1.0d, opcodes for I/O commands.
        for (number, name) in
            [(0x01, "Store"), (0x02, "Retrieve"), (0x06, "List"), (0x10, "Delete"), (0x14, "Exist")]
        {
            assert_eq!(format!("{}", Opcode(number)), name);
        }
        assert_eq!(format!("{:?}", Opcode(0x7f)), "opcode 7Fh");
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
