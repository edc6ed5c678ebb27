use core::fmt;

/// The first byte of a command: what is asked for.
///
/// It means nothing without the command set of the namespace: 01h is a Store in a KV namespace and
/// a Write in a block namespace. So its constants stand in the file of their set, and it has no
/// name of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opcode {:02X}h", self.0)
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
    fn opcodes_have_the_specifications_numbers() {
        // KV 1.0d, NVM 1.1 and ZNS 1.1a, opcodes for I/O commands.
        let numbers = [
            (0x01, Opcode::STORE),
            (0x02, Opcode::RETRIEVE),
            (0x06, Opcode::LIST),
            (0x10, Opcode::DELETE),
            (0x14, Opcode::EXIST),
            (0x00, Opcode::FLUSH),
            (0x01, Opcode::WRITE),
            (0x02, Opcode::READ),
            (0x05, Opcode::COMPARE),
            (0x08, Opcode::WRITE_ZEROES),
            (0x09, Opcode::DATASET_MANAGEMENT),
            (0x0c, Opcode::VERIFY),
            (0x19, Opcode::COPY),
            (0x79, Opcode::ZONE_MANAGEMENT_SEND),
            (0x7a, Opcode::ZONE_MANAGEMENT_RECEIVE),
            (0x7d, Opcode::ZONE_APPEND),
        ];
        for (number, opcode) in numbers {
            assert_eq!(opcode, Opcode(number));
        }
        assert_eq!(format!("{:?}", Opcode(0x7f)), "opcode 7Fh");
    }
}
