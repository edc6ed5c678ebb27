use crate::{Command, Opcode};

/// FUSE in bits 1:0 of a command's second byte.
const MASK: u8 = 0b11;

/// The place of a command in a fused operation (Base 2.1, Fused Operation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fuse {
    /// Not fused.
    Normal = 0b00,
    /// The first command.
    First = 0b01,
    /// The second command.
    Second = 0b10,
    /// A reserved value.
    Reserved = 0b11,
}

/// Fused operations: two adjacent commands of a submission queue (Base 2.1, Fused Operations). NVM
/// 1.1 defines one, Compare and Write.
impl Command {
    /// The place in a fused operation: CDW0 bits 9:8 (FUSE).
    #[inline]
    pub fn fuse(&self) -> Fuse {
        match self.flags & MASK {
            0b00 => Fuse::Normal,
            0b01 => Fuse::First,
            0b10 => Fuse::Second,
            _ => Fuse::Reserved,
        }
    }

    /// The same command at this place of a fused operation.
    #[inline]
    #[must_use]
    pub fn with_fuse(mut self, fuse: Fuse) -> Self {
        self.flags = self.flags & !MASK | fuse as u8;
        self
    }

    /// True for a fused command, and for the reserved value of FUSE.
    #[inline]
    pub fn is_fused(&self) -> bool {
        self.flags & MASK != 0
    }

    /// True for the Compare of a Compare and Write.
    #[inline]
    pub fn begins_compare_and_write(&self) -> bool {
        self.fuse() == Fuse::First && self.opcode() == Opcode::COMPARE
    }

    /// True for the Write of a Compare and Write.
    #[inline]
    pub fn ends_compare_and_write(&self) -> bool {
        self.fuse() == Fuse::Second && self.opcode() == Opcode::WRITE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::entry;
    use zerocopy::IntoBytes;

    #[test]
    fn fuse_has_the_specifications_bits() {
        // Base 2.1, Command Dword 0: FUSE in bits 9:8.
        let all = [Fuse::Normal, Fuse::First, Fuse::Second, Fuse::Reserved];
        for flags in 0..=u8::MAX {
            let mut command = Command::default();
            command.flags = flags;
            assert_eq!(command.fuse(), all[usize::from(flags & 3)], "flags {flags:02x}");
            assert_eq!(command.is_fused(), flags & 3 != 0, "flags {flags:02x}");
            let second = command.with_fuse(Fuse::Second);
            assert_eq!(second.flags, flags & 0xfc | 2, "the other flags stay");
        }
        let first = Command::compare(1, 0, 1).with_fuse(Fuse::First);
        assert_eq!(first.as_bytes(), entry(&[(0, &[0x05, 0x01]), (4, &[1])]));
    }

    #[test]
    fn a_compare_and_write_is_a_first_compare_and_a_second_write() {
        for fuse in [Fuse::Normal, Fuse::First, Fuse::Second, Fuse::Reserved] {
            let [compare, write] = [Command::compare(1, 0, 1), Command::write(1, 0, 1)]
                .map(|command| command.with_fuse(fuse));
            assert_eq!(compare.begins_compare_and_write(), fuse == Fuse::First);
            assert_eq!(write.ends_compare_and_write(), fuse == Fuse::Second);
            assert!(!write.begins_compare_and_write() && !compare.ends_compare_and_write());
        }
    }
}
