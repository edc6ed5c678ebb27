//! The Sanitize command.

use crate::{AdminOpcode, Command};
use core::ops::BitOr;

/// What a Sanitize does: SANACT (Base 2.1, Sanitize command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SanitizeAction(pub u8);

impl SanitizeAction {
    /// A sanitize operation that failed is given up.
    pub const EXIT_FAILURE: Self = Self(0b001);
    /// Begins to erase all blocks.
    pub const BLOCK_ERASE: Self = Self(0b010);
    /// Begins to overwrite all blocks.
    pub const OVERWRITE: Self = Self(0b011);
    /// Begins to change the keys by which all is encrypted.
    pub const CRYPTO_ERASE: Self = Self(0b100);
}

/// What a Sanitize asks for: CDW10 (Base 2.1, Sanitize command).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SanitizeOptions(pub u32);

impl SanitizeOptions {
    /// AUSE, bit 3: if the operation fails, its failure may be given up.
    pub const UNRESTRICTED: Self = Self(1 << 3);
    /// NDAS, bit 9: what was erased is not to be deallocated.
    pub const NO_DEALLOCATE: Self = Self(1 << 9);
    /// EMVS, bit 10: the host wants to read what was erased.
    pub const VERIFY: Self = Self(1 << 10);

    /// Those of an action, and nothing else.
    #[inline]
    pub const fn of(action: SanitizeAction) -> Self {
        Self(action.0 as u32 & 0b111)
    }

    /// What is to be done: bits 2:0.
    #[inline]
    pub const fn action(self) -> SanitizeAction {
        SanitizeAction(self.0.to_le_bytes()[0] & 0b111)
    }

    /// True when all of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for SanitizeOptions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Command {
    /// Asks that all data of the subsystem be gone for good.
    #[inline]
    pub fn sanitize(options: SanitizeOptions) -> Self {
        Self::admin(AdminOpcode::SANITIZE, 0, [options.0, 0, 0, 0, 0, 0])
    }

    /// What a Sanitize asks for.
    #[inline]
    pub fn sanitize_options(&self) -> SanitizeOptions {
        SanitizeOptions(self.dword::<10>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use zerocopy::IntoBytes;

    #[test]
    fn the_command_has_the_specifications_bytes() {
        // Base 2.1, Sanitize command 84h: CDW10 SANACT 2:0, AUSE 3, NDAS 9, EMVS 10.
        let erase = SanitizeOptions::of(SanitizeAction::BLOCK_ERASE);
        let command = Command::sanitize(erase);
        assert_eq!(command.as_bytes(), entry(&[(0, &[0x84]), (40, &[2])]));
        let all = erase
            | SanitizeOptions::UNRESTRICTED
            | SanitizeOptions::NO_DEALLOCATE
            | SanitizeOptions::VERIFY;
        let command = Command::sanitize(all);
        assert_eq!(command.as_bytes(), entry(&[(0, &[0x84]), (40, &[0x0a, 0x06])]));
        assert_eq!(command.sanitize_options(), all);
        assert_eq!(all.action(), SanitizeAction::BLOCK_ERASE);
        assert!(all.contains(SanitizeOptions::VERIFY) && !erase.contains(SanitizeOptions::VERIFY));
        for (number, action) in [
            (1, SanitizeAction::EXIT_FAILURE),
            (3, SanitizeAction::OVERWRITE),
            (4, SanitizeAction::CRYPTO_ERASE),
        ] {
            assert_eq!(SanitizeOptions::of(action), SanitizeOptions(number));
        }
        assert_eq!(counting().sanitize_options(), SanitizeOptions(0x2c2b_2a29));
        assert_eq!(counting().sanitize_options().action(), SanitizeAction(0b001));
    }
}
