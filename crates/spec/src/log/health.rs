use crate::Text;
use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One error: an entry of log page 01h, 64 bytes (Base 2.1, Error Information log page).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ErrorEntry {
    /// How many errors there were until this one, 0 for an entry that means nothing.
    pub count: U64,
    /// The submission queue of the command, or `FFFFh`.
    pub queue_id: U16,
    /// The command, or `FFFFh`.
    pub command_id: U16,
    /// The status field of its completion, phase bit included: DW3 bits 31:16.
    pub status: U16,
    /// Where the command is wrong: byte in bits 7:0 and bit of it in bits 10:8, or `FFFFh`.
    pub location: U16,
    /// The first logical block that is concerned.
    pub lba: U64,
    /// The namespace.
    pub nsid: U32,
    /// Which log page of the vendor tells more, 80h and above, or 0 for none.
    pub vendor_log_page: u8,
    /// The transport, as of a [`DiscoveryEntry`](crate::DiscoveryEntry), or 0. TRTYPE.
    pub transport_type: u8,
    /// The command set of the command: CSI.
    pub command_set: u8,
    /// The opcode of the command: OPC.
    pub opcode: u8,
    /// What depends on the command.
    pub command_specific: U64,
    /// What depends on the transport.
    pub transport_specific: U16,
    #[doc(hidden)]
    pub reserved_42: Reserved<21>,
    /// 1: the command set and the opcode mean something. LPVER.
    pub version: u8,
}

const _: () = assert!(size_of::<ErrorEntry>() == 64, "an entry of log page 01h has 64 bytes");

/// How the device is: log page 02h (Base 2.1, SMART / Health Information log page).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct SmartLog {
    /// [`SmartLog::SPARE_LOW`] and its siblings: CW.
    pub critical_warning: u8,
    /// Composite temperature in kelvins: CTEMP.
    pub temperature: U16,
    /// Spare that is left in per cent: AVSP.
    pub available_spare: u8,
    /// Spare below which there is an event, in per cent: AVSPT.
    pub spare_threshold: u8,
    /// Share of its life that is used in per cent, up to 255: PUSED.
    pub percentage_used: u8,
    /// Critical warnings of endurance groups: EGCWS.
    pub endurance_group_warning: u8,
    #[doc(hidden)]
    pub reserved_7: Reserved<25>,
    /// Data that hosts read in units of 512,000 bytes, rounded up: DUR.
    pub data_units_read: U128,
    /// Data that hosts wrote in units of 512,000 bytes, rounded up: DUW.
    pub data_units_written: U128,
    /// Read commands that were completed: HRC.
    pub host_reads: U128,
    /// Write commands that were completed: HWC.
    pub host_writes: U128,
    /// Minutes in which the controller was busy: CBT.
    pub busy_minutes: U128,
    /// Power cycles: PWRC.
    pub power_cycles: U128,
    /// Hours with power: POH.
    pub power_on_hours: U128,
    /// Losses of power without a shutdown: UPL.
    pub unexpected_power_losses: U128,
    /// Errors of the medium and of data integrity that were not corrected: MDIE.
    pub media_errors: U128,
    /// Entries of the error log in the controller's life: NEILE.
    pub error_entries: U128,
    /// Minutes above the warning temperature: WCTT.
    pub warning_minutes: U32,
    /// Minutes above the critical temperature: CCTT.
    pub critical_minutes: U32,
    /// Temperatures of sensors 1 to 8 in kelvins, 0 for none.
    pub sensors: [U16; 8],
    /// How often, and then for how many seconds, each of two states of throttling was entered:
    /// TMT1TC, TMT2TC, TTTMT1, TTTMT2.
    pub throttling: [U32; 4],
    #[doc(hidden)]
    pub reserved_232: Reserved<280>,
}

const _: () = assert!(size_of::<SmartLog>() == 512, "log page 02h has 512 bytes");

impl SmartLog {
    /// Spare is below its threshold: bit 0.
    pub const SPARE_LOW: u8 = 1 << 0;
    /// A temperature has crossed a threshold: bit 1.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// The subsystem has become less reliable: bit 2.
    pub const UNRELIABLE: u8 = 1 << 2;
    /// The medium can be read and not written: bit 3.
    pub const READ_ONLY: u8 = 1 << 3;
}

/// Which firmware there is: log page 03h (Base 2.1, Firmware Slot Information log page).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct FirmwareSlots {
    /// Bits 2:0 the slot that runs, from 1; bits 6:4 the one that runs after a reset, or 0. AFI.
    pub active: u8,
    #[doc(hidden)]
    pub reserved_1: Reserved<7>,
    /// Revision of each slot, zeros for an empty one: FRS1 to FRS7.
    pub revisions: [Text<8>; 7],
    #[doc(hidden)]
    pub reserved_64: Reserved<448>,
}

const _: () = assert!(size_of::<FirmwareSlots>() == 512, "log page 03h has 512 bytes");

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn an_error_has_the_specifications_bytes() {
        // Base 2.1, Error Information log page: bytes 7:0, 9:8, 11:10, 13:12, 15:14, 23:16, 27:24,
        // 28, 29, 30, 31, 39:32, 41:40 and 63.
        let error = ErrorEntry {
            count: 0x0807_0605_0403_0201.into(),
            queue_id: 0x0a09.into(),
            command_id: 0x0c0b.into(),
            status: 0x0e0d.into(),
            location: 0x100f.into(),
            lba: 0x1817_1615_1413_1211.into(),
            nsid: 0x1c1b_1a19.into(),
            vendor_log_page: 0x1d,
            transport_type: 0x1e,
            command_set: 0x1f,
            opcode: 0x20,
            command_specific: 0x2827_2625_2423_2221.into(),
            transport_specific: 0x2a29.into(),
            version: 0x40,
            ..ErrorEntry::default()
        };
        let expected: [u8; 64] = core::array::from_fn(|at| match at {
            42..63 => 0,
            at => u8::try_from(at + 1).unwrap(),
        });
        assert_eq!(error.as_bytes(), expected);
        assert_eq!(ErrorEntry::read_from_bytes(&expected), Ok(error));
    }

    #[test]
    fn fields_of_the_health_log_are_where_the_specification_has_them() {
        // Base 2.1, SMART / Health Information log page.
        for (offset, specified) in [
            (offset_of!(SmartLog, critical_warning), 0),
            (offset_of!(SmartLog, temperature), 1),
            (offset_of!(SmartLog, available_spare), 3),
            (offset_of!(SmartLog, spare_threshold), 4),
            (offset_of!(SmartLog, percentage_used), 5),
            (offset_of!(SmartLog, endurance_group_warning), 6),
            (offset_of!(SmartLog, data_units_read), 32),
            (offset_of!(SmartLog, data_units_written), 48),
            (offset_of!(SmartLog, host_reads), 64),
            (offset_of!(SmartLog, host_writes), 80),
            (offset_of!(SmartLog, busy_minutes), 96),
            (offset_of!(SmartLog, power_cycles), 112),
            (offset_of!(SmartLog, power_on_hours), 128),
            (offset_of!(SmartLog, unexpected_power_losses), 144),
            (offset_of!(SmartLog, media_errors), 160),
            (offset_of!(SmartLog, error_entries), 176),
            (offset_of!(SmartLog, warning_minutes), 192),
            (offset_of!(SmartLog, critical_minutes), 196),
            (offset_of!(SmartLog, sensors), 200),
            (offset_of!(SmartLog, throttling), 216),
            (offset_of!(SmartLog, reserved_232), 232),
        ] {
            assert_eq!(offset, specified);
        }
        let bits =
            [SmartLog::SPARE_LOW, SmartLog::TEMPERATURE, SmartLog::UNRELIABLE, SmartLog::READ_ONLY];
        assert_eq!(bits, [0x01, 0x02, 0x04, 0x08]);
    }

    #[test]
    fn a_health_log_has_the_specifications_bytes() {
        // 300 K is 012Ch, in bytes 2:1; bytes 47:32 count what was read.
        let log = SmartLog {
            temperature: 300.into(),
            available_spare: 100,
            spare_threshold: 10,
            data_units_read: 0x0102.into(),
            ..SmartLog::default()
        };
        let mut expected = [0; 512];
        expected[1..5].copy_from_slice(&[0x2c, 0x01, 100, 10]);
        expected[32..34].copy_from_slice(&[0x02, 0x01]);
        assert_eq!(log.as_bytes(), expected);
    }

    #[test]
    fn firmware_slots_have_the_specifications_bytes() {
        // Base 2.1, Firmware Slot Information log page: AFI 0, FRS1 15:8, FRS7 63:56.
        let mut slots = FirmwareSlots { active: 1, ..FirmwareSlots::default() };
        slots.revisions[0] = Text::new("0.1.0");
        slots.revisions[6] = Text::new("7");
        let mut expected = [0; 512];
        expected[0] = 1;
        expected[8..16].copy_from_slice(b"0.1.0   ");
        expected[56..64].copy_from_slice(b"7       ");
        assert_eq!(slots.as_bytes(), expected);
    }
}
