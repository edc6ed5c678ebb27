use spec::{Command, Opcode};

/// How many bytes the commands of a queue read. The opcode alone does not decide it: Retrieve and
/// Read have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Of the Key Value command set: the length in the command (CDW10).
    Pairs,
    /// Of the NVM command set: logical blocks of this many bytes, without metadata.
    Blocks(u32),
    /// No command of the queue reads anything.
    Nothing,
}

impl Reads {
    /// Returns the most bytes that a command reads.
    pub(crate) fn of(self, command: &Command) -> u32 {
        match self {
            Self::Pairs => command.size(),
            Self::Blocks(bytes) if command.opcode() == Opcode::READ => {
                command.blocks().saturating_mul(bytes)
            }
            Self::Blocks(_) | Self::Nothing => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KV 1.0d, Retrieve command: CDW10 is the host buffer size; NVM 1.1, Read command: it is the
    /// lower half of the first block, and CDW12 has the number of blocks.
    #[test]
    fn a_number_in_the_same_place_is_bytes_of_pairs_and_a_place_of_blocks() {
        let read = Command::read(1, 4_096, 3);
        assert_eq!(Reads::Blocks(512).of(&read), 1_536);
        assert_eq!(Reads::Nothing.of(&read), 0);
        assert_eq!(Reads::Pairs.of(&Command::retrieve(1, b"key", 4_096)), 4_096);
        assert_eq!(Reads::Blocks(1 << 31).of(&read), u32::MAX, "more than any command may move");
        assert_eq!(Reads::Blocks(512).of(&Command::write(1, 4_096, 3)), 0);
    }
}
