use core::fmt;
use core::time::Duration;

/// A property of a controller, by its offset in bytes (Base 2.1, Controller Properties).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Property(pub u32);

impl Property {
    /// Controller Capabilities: see [`Capabilities`](crate::Capabilities).
    pub const CAP: Self = Self(0x00);
    /// Version: see [`Version`].
    pub const VS: Self = Self(0x08);
    /// Controller Configuration: see [`Configuration`](crate::Configuration).
    pub const CC: Self = Self(0x14);
    /// Controller Status: see [`ControllerStatus`](crate::ControllerStatus).
    pub const CSTS: Self = Self(0x1c);
    /// NVM Subsystem Reset: [`Property::RESET_SUBSYSTEM`] resets the subsystem.
    pub const NSSR: Self = Self(0x20);
    /// Admin Queue Attributes, of controllers on PCIe: the sizes of the admin queues.
    pub const AQA: Self = Self(0x24);
    /// Admin Submission Queue Base Address, of controllers on PCIe.
    pub const ASQ: Self = Self(0x28);
    /// Admin Completion Queue Base Address, of controllers on PCIe.
    pub const ACQ: Self = Self(0x30);
    /// Controller Ready Timeouts: see [`ReadyTimeouts`].
    pub const CRTO: Self = Self(0x68);

    /// What is written to NSSR to reset the subsystem: "NVMe".
    pub const RESET_SUBSYSTEM: u32 = 0x4e56_4d65;

    /// True for the properties here that have 8 bytes and not 4.
    #[inline]
    pub const fn is_8_bytes(self) -> bool {
        matches!(self, Self::CAP | Self::ASQ | Self::ACQ)
    }
}

impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::CAP => "CAP",
            Self::VS => "VS",
            Self::CC => "CC",
            Self::CSTS => "CSTS",
            Self::NSSR => "NSSR",
            Self::AQA => "AQA",
            Self::ASQ => "ASQ",
            Self::ACQ => "ACQ",
            Self::CRTO => "CRTO",
            Self(other) => return write!(f, "property {other:X}h"),
        })
    }
}

/// The version of the specification that a controller keeps to (Base 2.1, Version).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// 2.1: of "Base 2.1".
    pub const V2_1: Self = Self(2 << 16 | 1 << 8);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [tertiary, minor, ..] = self.0.to_le_bytes();
        write!(f, "{}.{minor}.{tertiary}", self.0 >> 16)
    }
}

/// How long a controller takes at most to become ready (Base 2.1, Controller Ready Timeouts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyTimeouts(pub u32);

impl ReadyTimeouts {
    /// Of these times in 500 ms: with the medium, and independent of the medium.
    #[inline]
    pub const fn new(with_media: u16, independent: u16) -> Self {
        Self((independent as u32) << 16 | with_media as u32)
    }

    /// Until it is ready and its medium too: bits 15:0 (CRWMT), in 500 ms.
    #[inline]
    pub const fn with_media(self) -> Duration {
        Duration::from_millis((self.0 & 0xffff) as u64 * 500)
    }

    /// Until it is ready, its medium or not: bits 31:16 (CRIMT), in 500 ms.
    #[inline]
    pub const fn independent(self) -> Duration {
        Duration::from_millis((self.0 >> 16) as u64 * 500)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn properties_have_the_specifications_offsets() {
        // Base 2.1, Property Definition.
        for (offset, name, bytes) in [
            (0x00, "CAP", 8),
            (0x08, "VS", 4),
            (0x14, "CC", 4),
            (0x1c, "CSTS", 4),
            (0x20, "NSSR", 4),
            (0x68, "CRTO", 4),
            (0x24, "AQA", 4),
            (0x28, "ASQ", 8),
            (0x30, "ACQ", 8),
            (0x2c, "property 2Ch", 4),
        ] {
            assert_eq!(format!("{:?}", Property(offset)), name);
            assert_eq!(Property(offset).is_8_bytes(), bytes == 8);
        }
        assert_eq!(Property::RESET_SUBSYSTEM.to_be_bytes(), *b"NVMe");
    }

    #[test]
    fn versions_and_timeouts_have_the_specifications_bits() {
        // Base 2.1, Version: MJR 31:16, MNR 15:8, TER 7:0; Controller Ready Timeouts: CRWMT 15:0,
        // CRIMT 31:16.
        assert_eq!(Version::V2_1.0, 0x0002_0100);
        assert_eq!(format!("{}", Version(0x0001_0302)), "1.3.2");
        let timeouts = ReadyTimeouts::new(20, 2);
        assert_eq!(timeouts.0, 0x0002_0014);
        assert_eq!(timeouts.with_media(), Duration::from_secs(10));
        assert_eq!(timeouts.independent(), Duration::from_secs(1));
    }
}
