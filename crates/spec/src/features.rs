//! Features: what a host can change of a controller, and the commands that do so.

use crate::admin::{high_half, low_half};
use crate::reserved::Reserved;
use crate::{AdminOpcode, Command};
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const SAVE: u32 = 1 << 31;

/// Which feature a Set Features or a Get Features is about (Base 2.1, Feature Identifiers).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Feature(pub u8);

impl Feature {
    /// How queues are arbitrated.
    pub const ARBITRATION: Self = Self(0x01);
    /// Which power state there is.
    pub const POWER_MANAGEMENT: Self = Self(0x02);
    /// From where on a temperature is told: see [`TemperatureThreshold`].
    pub const TEMPERATURE_THRESHOLD: Self = Self(0x04);
    /// How errors of a namespace are recovered (NVM 1.1): [`Feature::RECOVERY_LIMIT`] and
    /// [`Feature::DEALLOCATED_IS_ERROR`].
    pub const ERROR_RECOVERY: Self = Self(0x05);
    /// The volatile write cache: [`Feature::WRITE_CACHE_ENABLED`].
    pub const VOLATILE_WRITE_CACHE: Self = Self(0x06);
    /// How many I/O queues there are: see [`QueueCounts`].
    pub const NUMBER_OF_QUEUES: Self = Self(0x07);
    /// How many completions an interrupt may stand for, and how long it may take (NVMe over PCIe).
    pub const INTERRUPT_COALESCING: Self = Self(0x08);
    /// Of one interrupt vector, CDW11 bits 15:0: [`Feature::COALESCING_DISABLED`].
    pub const INTERRUPT_VECTOR: Self = Self(0x09);
    /// Whether writes are atomic beyond what outlives a loss of power (NVM 1.1):
    /// [`Feature::ATOMICITY_DISABLED`].
    pub const WRITE_ATOMICITY_NORMAL: Self = Self(0x0a);
    /// Which events the host wants: see [`AsyncEvents`](crate::AsyncEvents).
    pub const ASYNC_EVENTS: Self = Self(0x0b);
    /// How long the host may be silent, in milliseconds.
    pub const KEEP_ALIVE_TIMER: Self = Self(0x0f);
    /// What the host can do: a [`HostBehavior`], which comes as data.
    pub const HOST_BEHAVIOR: Self = Self(0x16);
    /// Bits 8:0: which of [`IoCommandSets`](crate::IoCommandSets) is selected.
    pub const COMMAND_SET_PROFILE: Self = Self(0x19);
    /// Key Value Configuration (KV 1.0d): [`Feature::DELETE_NEEDS_KEY`].
    pub const KEY_VALUE_CONFIGURATION: Self = Self(0x20);
    /// The host's identifier, which comes as data.
    pub const HOST_IDENTIFIER: Self = Self(0x81);

    /// Of [`Feature::ERROR_RECOVERY`]: for how long a command with Limited Retry is tried again, in
    /// 100 ms; 0 for no limit (TLER).
    pub const RECOVERY_LIMIT: u32 = 0xffff;
    /// Of [`Feature::ERROR_RECOVERY`]: reads of deallocated blocks fail (DULBE).
    pub const DEALLOCATED_IS_ERROR: u32 = 1 << 16;
    /// Of [`Feature::INTERRUPT_VECTOR`]: its interrupts are not coalesced (CD).
    pub const COALESCING_DISABLED: u32 = 1 << 16;
    /// Of [`Feature::WRITE_ATOMICITY_NORMAL`]: the host does without it (DN).
    pub const ATOMICITY_DISABLED: u32 = 1 << 0;
    /// Of [`Feature::VOLATILE_WRITE_CACHE`]: it is enabled (WCE).
    pub const WRITE_CACHE_ENABLED: u32 = 1 << 0;
    /// Of [`Feature::KEY_VALUE_CONFIGURATION`]: a Delete of a key that is not there fails (EDNEK).
    pub const DELETE_NEEDS_KEY: u32 = 1 << 0;
    /// Of [`Feature::HOST_IDENTIFIER`]: it has 16 bytes and not 8 (EXHID).
    pub const HOST_IDENTIFIER_IS_16_BYTES: u32 = 1 << 0;
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::ARBITRATION => "Arbitration",
            Self::POWER_MANAGEMENT => "Power Management",
            Self::TEMPERATURE_THRESHOLD => "Temperature Threshold",
            Self::ERROR_RECOVERY => "Error Recovery",
            Self::VOLATILE_WRITE_CACHE => "Volatile Write Cache",
            Self::NUMBER_OF_QUEUES => "Number of Queues",
            Self::INTERRUPT_COALESCING => "Interrupt Coalescing",
            Self::INTERRUPT_VECTOR => "Interrupt Vector Configuration",
            Self::WRITE_ATOMICITY_NORMAL => "Write Atomicity Normal",
            Self::ASYNC_EVENTS => "Asynchronous Event Configuration",
            Self::KEEP_ALIVE_TIMER => "Keep Alive Timer",
            Self::HOST_BEHAVIOR => "Host Behavior Support",
            Self::COMMAND_SET_PROFILE => "I/O Command Set Profile",
            Self::KEY_VALUE_CONFIGURATION => "Key Value Configuration",
            Self::HOST_IDENTIFIER => "Host Identifier",
            Self(other) => return write!(f, "feature {other:02X}h"),
        })
    }
}

impl fmt::Debug for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which value a Get Features asks for (Base 2.1, Get Features command, Select).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FeatureSelect {
    /// The one that is in force.
    Current = 0b000,
    /// The one of the factory.
    Default = 0b001,
    /// The one that a reset brings back.
    Saved = 0b010,
    /// What can be done to the feature: see [`FeatureCapabilities`].
    Capabilities = 0b011,
}

impl FeatureSelect {
    const ALL: [Self; 4] = [Self::Current, Self::Default, Self::Saved, Self::Capabilities];
}

/// What can be done to a feature: the result of a Get Features with
/// [`FeatureSelect::Capabilities`] (Base 2.1, Get Features command).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureCapabilities(pub u32);

impl FeatureCapabilities {
    /// It outlives a reset.
    pub const SAVEABLE: Self = Self(1 << 0);
    /// Each namespace has its own.
    pub const NAMESPACE_SPECIFIC: Self = Self(1 << 1);
    /// It can be set.
    pub const CHANGEABLE: Self = Self(1 << 2);

    /// The same and all of `other`'s bits.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True when all of `other`'s bits are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How many I/O queues are asked for, or there are: [`Feature::NUMBER_OF_QUEUES`] as CDW11 and as
/// the result (Base 2.1, Number of Queues).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCounts {
    /// Submission queues, 0's based: bits 15:0.
    pub submission: u16,
    /// Completion queues, 0's based: bits 31:16.
    pub completion: u16,
}

impl From<u32> for QueueCounts {
    fn from(value: u32) -> Self {
        Self { submission: low_half(value), completion: high_half(value) }
    }
}

impl From<QueueCounts> for u32 {
    fn from(counts: QueueCounts) -> Self {
        Self::from(counts.completion) << 16 | Self::from(counts.submission)
    }
}

/// From where on a temperature is told: [`Feature::TEMPERATURE_THRESHOLD`] as CDW11 (Base 2.1,
/// Temperature Threshold).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemperatureThreshold(pub u32);

impl TemperatureThreshold {
    /// The composite temperature, of [`TemperatureThreshold::sensor`].
    pub const COMPOSITE: u8 = 0;
    /// All sensors that there are, of [`TemperatureThreshold::sensor`].
    pub const ALL_SENSORS: u8 = 0xf;

    /// The threshold in kelvins: bits 15:0 (TMPTH).
    #[inline]
    pub const fn kelvins(self) -> u16 {
        low_half(self.0)
    }

    /// The sensor that it is of: bits 19:16 (TMPSEL).
    #[inline]
    pub const fn sensor(self) -> u8 {
        self.0.to_le_bytes()[2] & 0xf
    }

    /// Which way it is crossed: bits 21:20 (THSEL), 0 upwards, 1 downwards.
    #[inline]
    pub const fn direction(self) -> u8 {
        self.0.to_le_bytes()[2] >> 4 & 0b11
    }
}

/// What a host can do: the data of [`Feature::HOST_BEHAVIOR`] (Base 2.1, Host Behavior Support).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct HostBehavior {
    /// 1: it takes the status Command Interrupted. ACRE.
    pub advanced_retry: u8,
    /// 1: it takes extended telemetry. ETDAS.
    pub extended_telemetry: u8,
    /// 1: it takes LBA formats of extended protection. LBAFEE.
    pub extended_lba_formats: u8,
    #[doc(hidden)]
    pub reserved_3: Reserved<509>,
}

const _: () = assert!(size_of::<HostBehavior>() == 512, "what a host can do has 512 bytes");

/// Base 2.1, Set Features and Get Features commands.
impl Command {
    /// Asks that `feature` be `value`, for the namespace `nsid` where each has its own, or for 0.
    #[inline]
    pub fn set_features(feature: Feature, nsid: u32, value: u32) -> Self {
        Self::admin(AdminOpcode::SET_FEATURES, nsid, [feature.0.into(), value, 0, 0, 0, 0])
    }

    /// Asks for the value of `feature`, for the namespace `nsid` where each has its own, or for 0.
    #[inline]
    pub fn get_features(feature: Feature, nsid: u32, select: FeatureSelect) -> Self {
        let dword_10 = (select as u32) << 8 | u32::from(feature.0);
        Self::admin(AdminOpcode::GET_FEATURES, nsid, [dword_10, 0, 0, 0, 0, 0])
    }

    /// The same Set Features, to outlive a reset.
    #[inline]
    #[must_use]
    pub fn with_save(self) -> Self {
        self.with_dword::<10>(self.dword::<10>() | SAVE)
    }

    /// Which feature a Set Features or a Get Features is about: CDW10 bits 7:0 (FID).
    #[inline]
    pub fn feature_id(&self) -> Feature {
        Feature(self.dword::<10>().to_le_bytes()[0])
    }

    /// True when what a Set Features sets is to outlive a reset: CDW10 bit 31 (SV).
    #[inline]
    pub fn feature_save(&self) -> bool {
        self.dword::<10>() & SAVE != 0
    }

    /// Which value a Get Features asks for: CDW10 bits 10:8 (SEL), `None` for reserved numbers.
    #[inline]
    pub fn feature_select(&self) -> Option<FeatureSelect> {
        let number = self.dword::<10>().to_le_bytes()[1] & 0b111;
        FeatureSelect::ALL.into_iter().find(|&select| select as u8 == number)
    }

    /// What a Set Features sets, or a Get Features asks about: CDW11.
    #[inline]
    pub fn feature_value(&self) -> u32 {
        self.dword::<11>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::format;

    #[test]
    fn features_have_the_specifications_numbers_and_names() {
        // Base 2.1, Feature Identifiers; KV 1.0d, Key Value Configuration.
        for (number, name) in [
            (0x01, "Arbitration"),
            (0x02, "Power Management"),
            (0x04, "Temperature Threshold"),
            (0x05, "Error Recovery"),
            (0x06, "Volatile Write Cache"),
            (0x07, "Number of Queues"),
            (0x08, "Interrupt Coalescing"),
            (0x09, "Interrupt Vector Configuration"),
            (0x0a, "Write Atomicity Normal"),
            (0x0b, "Asynchronous Event Configuration"),
            (0x0f, "Keep Alive Timer"),
            (0x16, "Host Behavior Support"),
            (0x19, "I/O Command Set Profile"),
            (0x20, "Key Value Configuration"),
            (0x81, "Host Identifier"),
            (0x0e, "feature 0Eh"),
        ] {
            assert_eq!(format!("{}", Feature(number)), name);
        }
    }

    #[test]
    fn spdks_number_of_queues_has_the_specifications_bytes() {
        // Base 2.1, Set Features command: CDW10 FID 7:0, SV 31; Number of Queues: CDW11 NSQR 15:0,
        // NCQR 31:16. SPDK asks for 3FF03FFh, 1,024 of each.
        let counts = QueueCounts { submission: 1023, completion: 1023 };
        let command = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, counts.into());
        let mut expected = entry(&[(0, &[0x09]), (40, &[0x07, 0, 0, 0, 0xff, 0x03, 0xff, 0x03])]);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(QueueCounts::from(command.feature_value()), counts);
        assert!(!command.feature_save());
        expected[43] = 0x80;
        assert_eq!(command.with_save().as_bytes(), expected);
        assert!(command.with_save().feature_save());
        let counts = QueueCounts::from(0x0102_0304);
        assert_eq!((counts.submission, counts.completion), (0x0304, 0x0102));
        assert_eq!(u32::from(counts), 0x0102_0304);
    }

    #[test]
    fn a_get_features_has_the_specifications_bytes() {
        // Base 2.1, Get Features command: CDW10 FID 7:0, SEL 10:8.
        let feature = Feature::KEY_VALUE_CONFIGURATION;
        for (number, select) in [
            (0, FeatureSelect::Current),
            (1, FeatureSelect::Default),
            (2, FeatureSelect::Saved),
            (3, FeatureSelect::Capabilities),
        ] {
            let command = Command::get_features(feature, 7, select);
            let expected = entry(&[(0, &[0x0a]), (4, &[7]), (40, &[0x20, number])]);
            assert_eq!(command.as_bytes(), expected);
            assert_eq!((command.feature_id(), command.feature_select()), (feature, Some(select)));
        }
        for number in 4..8 {
            let command = Command::default().with_dword::<10>(number << 8);
            assert_eq!(command.feature_select(), None);
        }
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.feature_id(), Feature(0x29));
        assert_eq!(command.feature_select(), Some(FeatureSelect::Saved), "2Ah is 010b");
        assert_eq!(command.feature_value(), 0x302f_2e2d);
        assert!(!command.feature_save(), "2Ch has no bit 7");
    }

    #[test]
    fn values_have_the_specifications_bits() {
        // Base 2.1, Temperature Threshold: TMPTH 15:0, TMPSEL 19:16, THSEL 21:20; Get Features,
        // supported capabilities: bits 0 to 2; KV 1.0d, EDNEK: bit 0; NVM 1.1, Error Recovery: TLER
        // 15:0, DULBE 16, Write Atomicity Normal: DN 0.
        assert_eq!((Feature::RECOVERY_LIMIT, Feature::DEALLOCATED_IS_ERROR), (0xffff, 0x1_0000));
        assert_eq!(Feature::ATOMICITY_DISABLED, 1);
        let threshold = TemperatureThreshold(0x001f_0157);
        assert_eq!((threshold.kelvins(), threshold.direction()), (0x157, 1));
        assert_eq!(threshold.sensor(), TemperatureThreshold::ALL_SENSORS);
        assert_eq!(TemperatureThreshold(0xffc0_0000).sensor(), TemperatureThreshold::COMPOSITE);
        assert_eq!(TemperatureThreshold(0xffc0_0000).direction(), 0);
        let all = FeatureCapabilities::SAVEABLE
            .with(FeatureCapabilities::NAMESPACE_SPECIFIC)
            .with(FeatureCapabilities::CHANGEABLE);
        assert_eq!(all, FeatureCapabilities(0b111));
        assert!(!FeatureCapabilities(0b101).contains(FeatureCapabilities::NAMESPACE_SPECIFIC));
        assert!(FeatureCapabilities(0b101).contains(FeatureCapabilities::CHANGEABLE));
        assert_eq!(Feature::DELETE_NEEDS_KEY, 1);
        assert_eq!(Feature::HOST_IDENTIFIER_IS_16_BYTES, 1);
    }

    #[test]
    fn what_a_host_can_do_has_the_specifications_bytes() {
        // Base 2.1, Host Behavior Support: ACRE 0, ETDAS 1, LBAFEE 2.
        let behavior = HostBehavior {
            advanced_retry: 1,
            extended_telemetry: 2,
            extended_lba_formats: 3,
            ..HostBehavior::default()
        };
        assert_eq!(behavior.as_bytes()[..4], [1, 2, 3, 0]);
    }
}
