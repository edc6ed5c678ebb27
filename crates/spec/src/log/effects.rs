use super::LogPage;
use crate::reserved::Reserved;
use crate::{AdminOpcode, Feature, Opcode};
use core::ops::BitOr;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const LOG_PAGE_SUPPORTED: u32 = 1 << 0;
const FEATURE_SUPPORTED: u32 = 1 << 0;

/// What a command does beside its answer (Base 2.1, Commands Supported and Effects data structure).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects(pub u32);

impl Effects {
    /// Bit 0: there is such a command (CSUPP).
    pub const SUPPORTED: Self = Self(1 << 0);
    /// Bit 1: it may change data of a namespace (LBCC).
    pub const CHANGES_DATA: Self = Self(1 << 1);
    /// Bit 2: it may change what a namespace can do (NCC).
    pub const CHANGES_NAMESPACE: Self = Self(1 << 2);
    /// Bit 3: it may change which namespaces there are (NIC).
    pub const CHANGES_INVENTORY: Self = Self(1 << 3);
    /// Bit 4: it may change what the controller can do (CCC).
    pub const CHANGES_CONTROLLER: Self = Self(1 << 4);

    /// True when all of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Effects {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which commands there are and what they do, for the I/O commands of one command set: log page 05h
/// (Base 2.1, Commands Supported and Effects log page).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct CommandEffects {
    admin: [U32; 256],
    io: [U32; 256],
    reserved_2048: Reserved<2048>,
}

const _: () = assert!(size_of::<CommandEffects>() == 4096, "log page 05h has 4,096 bytes");

impl CommandEffects {
    /// The same with an admin command that is supported and has `effects`.
    #[must_use]
    pub fn with_admin(mut self, opcode: AdminOpcode, effects: Effects) -> Self {
        self.admin[usize::from(opcode.0)] = (effects | Effects::SUPPORTED).0.into();
        self
    }

    /// The same with an I/O command that is supported and has `effects`.
    #[must_use]
    pub fn with_io(mut self, opcode: Opcode, effects: Effects) -> Self {
        self.io[usize::from(opcode.0)] = (effects | Effects::SUPPORTED).0.into();
        self
    }

    /// What an admin command does.
    pub fn admin(&self, opcode: AdminOpcode) -> Effects {
        Effects(self.admin[usize::from(opcode.0)].get())
    }

    /// What an I/O command does.
    pub fn io(&self, opcode: Opcode) -> Effects {
        Effects(self.io[usize::from(opcode.0)].get())
    }
}

impl Default for CommandEffects {
    /// No command.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// Which log pages there are: log page 00h (Base 2.1, Supported Log Pages log page).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct SupportedLogPages([U32; 256]);

impl SupportedLogPages {
    /// With these, and no offset of any that counts entries.
    pub fn of(pages: &[LogPage]) -> Self {
        let mut supported = Self::default();
        for page in pages {
            supported.0[usize::from(page.0)] = LOG_PAGE_SUPPORTED.into();
        }
        supported
    }

    /// True when there is this log page.
    pub fn contains(&self, page: LogPage) -> bool {
        self.0[usize::from(page.0)] & LOG_PAGE_SUPPORTED != 0
    }
}

impl Default for SupportedLogPages {
    /// No log page.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

/// What a Set Features may change (Base 2.1, FID Supported and Effects data structure, bits 31:20,
/// FSP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FeatureScope {
    /// One namespace (NSCPE).
    Namespace = 1 << 20,
    /// One controller (CSCPE).
    Controller = 1 << 21,
}

/// Which features there are and what they are of: log page 12h (Base 2.1, Feature Identifiers
/// Supported and Effects log page).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct FeatureEffects([U32; 256]);

impl FeatureEffects {
    /// The same with a feature of this scope.
    #[must_use]
    pub fn with(mut self, feature: Feature, scope: FeatureScope) -> Self {
        self.0[usize::from(feature.0)] = (FEATURE_SUPPORTED | scope as u32).into();
        self
    }

    /// True when there is this feature.
    pub fn contains(&self, feature: Feature) -> bool {
        self.0[usize::from(feature.0)] & FEATURE_SUPPORTED != 0
    }
}

impl Default for FeatureEffects {
    /// No feature.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_have_the_specifications_bytes() {
        // Base 2.1, Commands Supported and Effects log page: admin commands from byte 0 on, I/O
        // commands from byte 1,024 on, 4 bytes each.
        let changes = Effects::CHANGES_DATA
            | Effects::CHANGES_NAMESPACE
            | Effects::CHANGES_INVENTORY
            | Effects::CHANGES_CONTROLLER;
        let effects = CommandEffects::default()
            .with_admin(AdminOpcode::IDENTIFY, Effects::default())
            .with_io(Opcode::STORE, Effects::CHANGES_DATA)
            .with_io(Opcode(0xff), changes);
        let mut expected = [0; 4096];
        expected[6 * 4] = 0x01;
        expected[1024 + 4] = 0x03;
        expected[1024 + 255 * 4] = 0x1f;
        assert_eq!(effects.as_bytes(), expected);
        assert_eq!(effects.admin(AdminOpcode::IDENTIFY), Effects::SUPPORTED);
        assert!(effects.io(Opcode::STORE).contains(Effects::CHANGES_DATA));
        assert!(!effects.io(Opcode::RETRIEVE).contains(Effects::SUPPORTED));
        assert!(!effects.admin(AdminOpcode(1)).contains(Effects::SUPPORTED));
    }

    #[test]
    fn features_have_the_specifications_bytes() {
        // Base 2.1, Feature Identifiers Supported and Effects log page: 4 bytes for each, FSUPP in
        // bit 0, FSP in bits 31:20 with NSCPE 0 and CSCPE 1.
        let features = FeatureEffects::default()
            .with(Feature::ARBITRATION, FeatureScope::Controller)
            .with(Feature::ERROR_RECOVERY, FeatureScope::Namespace);
        let mut expected = [0; 1024];
        expected[4..8].copy_from_slice(&[1, 0, 0x20, 0]);
        expected[20..24].copy_from_slice(&[1, 0, 0x10, 0]);
        assert_eq!(features.as_bytes(), expected);
        assert!(features.contains(Feature::ARBITRATION) && !features.contains(Feature(0)));
    }

    #[test]
    fn supported_log_pages_have_the_specifications_bytes() {
        // Base 2.1, Supported Log Pages log page: 4 bytes for each, LSUPP in bit 0.
        let pages = SupportedLogPages::of(&[LogPage::SUPPORTED, LogPage::DISCOVERY]);
        let mut expected = [0; 1024];
        expected[0] = 1;
        expected[0x70 * 4] = 1;
        assert_eq!(pages.as_bytes(), expected);
        assert!(pages.contains(LogPage::DISCOVERY) && !pages.contains(LogPage::SMART));
    }
}
