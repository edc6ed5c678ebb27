//! The Get Log Page command, and the log pages that it reads.

mod asymmetric_access;
mod discovery;
mod effects;
mod health;
mod sanitize;

pub use asymmetric_access::{AccessGroup, AccessHeader};
pub use discovery::{AddressFamily, DiscoveryEntry, DiscoveryHeader, SubsystemType, TransportType};
pub use effects::{CommandEffects, Effects, FeatureEffects, FeatureScope, SupportedLogPages};
pub use health::{ErrorEntry, FirmwareSlots, SmartLog};
pub use sanitize::SanitizeLog;

use crate::admin::{high_half, low_half};
use crate::nvm::halves;
use crate::{AdminOpcode, Command, CommandSet};
use core::fmt;

const RETAIN_EVENT: u32 = 1 << 15;
const OFFSET_IS_INDEX: u32 = 1 << 23;

/// Which log page a Get Log Page reads (Base 2.1, Log Page Identifiers).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogPage(pub u8);

impl LogPage {
    /// [`SupportedLogPages`].
    pub const SUPPORTED: Self = Self(0x00);
    /// [`ErrorEntry`]s, the newest first.
    pub const ERRORS: Self = Self(0x01);
    /// [`SmartLog`].
    pub const SMART: Self = Self(0x02);
    /// [`FirmwareSlots`].
    pub const FIRMWARE_SLOTS: Self = Self(0x03);
    /// [`NamespaceList`](crate::NamespaceList) of those that changed since it was last read.
    pub const CHANGED_NAMESPACES: Self = Self(0x04);
    /// [`CommandEffects`], of one command set.
    pub const COMMAND_EFFECTS: Self = Self(0x05);
    /// [`AccessHeader`], and [`AccessGroup`]s behind it.
    pub const ASYMMETRIC_ACCESS: Self = Self(0x0c);
    /// [`FeatureEffects`].
    pub const FEATURE_EFFECTS: Self = Self(0x12);
    /// [`DiscoveryHeader`], and [`DiscoveryEntry`]s behind it.
    pub const DISCOVERY: Self = Self(0x70);
    /// [`SanitizeLog`].
    pub const SANITIZE: Self = Self(0x81);
}

impl fmt::Display for LogPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::SUPPORTED => "Supported Log Pages",
            Self::ERRORS => "Error Information",
            Self::SMART => "SMART / Health Information",
            Self::FIRMWARE_SLOTS => "Firmware Slot Information",
            Self::CHANGED_NAMESPACES => "Changed Attached Namespace List",
            Self::COMMAND_EFFECTS => "Commands Supported and Effects",
            Self::ASYMMETRIC_ACCESS => "Asymmetric Namespace Access",
            Self::FEATURE_EFFECTS => "Feature Identifiers Supported and Effects",
            Self::DISCOVERY => "Discovery",
            Self::SANITIZE => "Sanitize Status",
            Self(other) => return write!(f, "log page {other:02X}h"),
        })
    }
}

impl fmt::Debug for LogPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Base 2.1, Get Log Page command.
impl Command {
    /// Asks for the first `bytes` of a log page, a multiple of 4 above 0; of the namespace `nsid`,
    /// or of the controller for 0 and `FFFFFFFFh`.
    #[inline]
    pub fn get_log_page(page: LogPage, nsid: u32, bytes: u32) -> Self {
        assert!(
            bytes > 0 && bytes.is_multiple_of(4),
            "a log page is read in dwords, not {bytes} B"
        );
        let count = bytes / 4 - 1;
        let dword_10 = u32::from(low_half(count)) << 16 | u32::from(page.0);
        let dword_11 = high_half(count).into();
        Self::admin(AdminOpcode::GET_LOG_PAGE, nsid, [dword_10, dword_11, 0, 0, 0, 0])
    }

    /// The same Get Log Page, from `offset` bytes on, a multiple of 4.
    #[inline]
    #[must_use]
    pub fn with_log_page_offset(self, offset: u64) -> Self {
        let [low, high] = halves(offset);
        self.with_dword::<12>(low).with_dword::<13>(high)
    }

    /// The same Get Log Page, in terms of a command set.
    #[inline]
    #[must_use]
    pub fn with_log_page_csi(self, set: CommandSet) -> Self {
        self.with_dword::<14>(self.dword::<14>() & 0x00ff_ffff | u32::from(set.0) << 24)
    }

    /// The same Get Log Page; the event that points to the log page is not done with (RAE).
    #[inline]
    #[must_use]
    pub fn with_retained_event(self) -> Self {
        self.with_dword::<10>(self.dword::<10>() | RETAIN_EVENT)
    }

    /// Which log page a Get Log Page reads: CDW10 bits 7:0 (LID).
    #[inline]
    pub fn log_page(&self) -> LogPage {
        LogPage(self.dword::<10>().to_le_bytes()[0])
    }

    /// What a Get Log Page says to its log page alone: CDW10 bits 14:8 (LSP).
    #[inline]
    pub fn log_page_specific(&self) -> u8 {
        self.dword::<10>().to_le_bytes()[1] & 0x7f
    }

    /// True when the event that points to the log page is not done with: CDW10 bit 15 (RAE).
    #[inline]
    pub fn retains_event(&self) -> bool {
        self.dword::<10>() & RETAIN_EVENT != 0
    }

    /// How many bytes a Get Log Page asks for, a multiple of 4 above 0: CDW10 bits 31:16 and CDW11
    /// bits 15:0 (NUMD), 0's based dwords.
    #[inline]
    pub fn log_page_bytes(&self) -> u64 {
        let [low, high] = [high_half(self.dword::<10>()), low_half(self.dword::<11>())];
        4 * ((u64::from(high) << 16 | u64::from(low)) + 1)
    }

    /// The first byte that a Get Log Page asks for: CDW12 and CDW13 (LPO).
    #[inline]
    pub fn log_page_offset(&self) -> u64 {
        u64::from(self.dword::<13>()) << 32 | u64::from(self.dword::<12>())
    }

    /// True when the offset counts entries of the log page, and not bytes: CDW14 bit 23 (OT).
    #[inline]
    pub fn log_page_offset_is_index(&self) -> bool {
        self.dword::<14>() & OFFSET_IS_INDEX != 0
    }

    /// The command set of a Get Log Page: CDW14 bits 31:24 (CSI).
    #[inline]
    pub fn log_page_csi(&self) -> CommandSet {
        CommandSet(self.dword::<14>().to_le_bytes()[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::format;
    use zerocopy::IntoBytes;

    #[test]
    fn log_pages_have_the_specifications_numbers_and_names() {
        // Base 2.1, Log Page Identifiers.
        for (number, name) in [
            (0x00, "Supported Log Pages"),
            (0x01, "Error Information"),
            (0x02, "SMART / Health Information"),
            (0x03, "Firmware Slot Information"),
            (0x04, "Changed Attached Namespace List"),
            (0x05, "Commands Supported and Effects"),
            (0x12, "Feature Identifiers Supported and Effects"),
            (0x70, "Discovery"),
            (0x81, "Sanitize Status"),
            (0x0c, "Asymmetric Namespace Access"),
            (0x0d, "log page 0Dh"),
        ] {
            assert_eq!(format!("{}", LogPage(number)), name);
        }
    }

    #[test]
    fn linuxs_question_for_the_effects_of_kv_commands_has_the_specifications_bytes() {
        // Base 2.1, Get Log Page command: CDW10 LID 7:0, LSP 14:8, RAE 15, NUMDL 31:16. Linux asks
        // for 4,096 bytes of log page 05h with CSI 1 in CDW14 bits 31:24.
        let command = Command::get_log_page(LogPage::COMMAND_EFFECTS, 0, 4096)
            .with_log_page_csi(CommandSet::KEY_VALUE);
        let expected = entry(&[(0, &[0x02]), (40, &[0x05, 0, 0xff, 0x03]), (59, &[0x01])]);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(command.log_page(), LogPage::COMMAND_EFFECTS);
        assert_eq!(command.log_page_bytes(), 4096);
        assert_eq!(command.log_page_csi(), CommandSet::KEY_VALUE);
        assert!(!command.retains_event());
    }

    #[test]
    fn a_part_of_a_log_page_has_the_specifications_bytes() {
        // NUMDU in CDW11 bits 15:0, LPOL in CDW12, LPOU in CDW13: 4 x 0102_0304h dwords.
        let command = Command::get_log_page(LogPage::DISCOVERY, 0xffff_ffff, 0x0408_0c14)
            .with_log_page_offset(0x0102_0304_0506_0708)
            .with_retained_event();
        let expected = entry(&[
            (0, &[0x02]),
            (4, &[0xff; 4]),
            (40, &[0x70, 0x80, 0x04, 0x03, 0x02, 0x01, 0, 0]),
            (48, &[8, 7, 6, 5, 4, 3, 2, 1]),
        ]);
        assert_eq!(command.as_bytes(), expected);
        assert_eq!(command.log_page_bytes(), 0x0408_0c14);
        assert_eq!(command.log_page_offset(), 0x0102_0304_0506_0708);
        assert!(command.retains_event());
        assert_eq!(command.log_page_specific(), 0, "RAE is no part of it");
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.log_page(), LogPage(0x29));
        assert_eq!(command.log_page_specific(), 0x2a);
        assert_eq!(command.log_page_bytes(), 4 * 0x2e2d_2c2c);
        assert_eq!(command.log_page_offset(), 0x3837_3635_3433_3231);
        assert_eq!(command.log_page_csi(), CommandSet(0x3c));
        assert!(!command.retains_event() && !command.log_page_offset_is_index());
        let most = command.with_dword::<10>(0xffff_0000).with_dword::<11>(u32::MAX);
        assert_eq!(most.log_page_bytes(), 1 << 34);
        assert!(command.with_dword::<14>(0x0080_0000).log_page_offset_is_index());
    }

    #[test]
    #[should_panic(expected = "a log page is read in dwords, not 6 B")]
    fn bytes_that_are_no_dwords_are_refused() {
        let _ = Command::get_log_page(LogPage::SMART, 0, 6);
    }
}
