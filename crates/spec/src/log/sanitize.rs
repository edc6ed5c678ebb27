use crate::SanitizeOptions;
use crate::reserved::Reserved;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How far the subsystem is with a Sanitize, or how the last one ended: log page 81h (Base 2.1,
/// Sanitize Status log page).
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SanitizeLog {
    /// How much is done in parts of 65,536, or [`SanitizeLog::NO_PROGRESS`]: SPROG.
    pub progress: U16,
    /// [`SanitizeLog::NEVER`] and its siblings, and [`SanitizeLog::ALL_ERASED`]: SSTAT.
    pub status: U16,
    /// The [`SanitizeOptions`] of the command that began it: SCDW10.
    pub options: U32,
    /// Seconds that overwriting, block erase and crypto erase take, then the same without
    /// deallocation, then deallocation after verification: ETO to ETPVDS.
    pub estimates: [U32; 7],
    /// Bits 3:0: [`SanitizeLog::IDLE`] and its siblings (SANS); bits 7:4: in which of them it
    /// failed (FAILS). SSI.
    pub state: u8,
    reserved_37: Reserved<475>,
}

const _: () = assert!(size_of::<SanitizeLog>() == 512, "log page 81h has 512 bytes");

impl SanitizeLog {
    /// Of `progress`: none is under way.
    pub const NO_PROGRESS: u16 = 0xffff;
    /// Of `estimates`: it is not said.
    pub const NO_ESTIMATE: u32 = 0xffff_ffff;
    /// Of `status`, bits 2:0: none was ever begun.
    pub const NEVER: u16 = 0b000;
    /// Of `status`, bits 2:0: the last one succeeded.
    pub const DONE: u16 = 0b001;
    /// Of `status`, bits 2:0: one is under way.
    pub const UNDER_WAY: u16 = 0b010;
    /// Of `status`, bits 2:0: the last one failed.
    pub const FAILED: u16 = 0b011;
    /// Of `status`, bit 8: nothing was written since the last one that succeeded (GDE).
    pub const ALL_ERASED: u16 = 1 << 8;
    /// Of `state`: none is under way, and none failed that was not given up.
    pub const IDLE: u8 = 0;
    /// Of `state`: one is under way whose failure cannot be given up.
    pub const RESTRICTED: u8 = 1;
    /// Of `state`: it failed.
    pub const RESTRICTED_FAILURE: u8 = 2;
    /// Of `state`: one is under way whose failure can be given up.
    pub const UNRESTRICTED: u8 = 3;
    /// Of `state`: it failed.
    pub const UNRESTRICTED_FAILURE: u8 = 4;

    /// Without estimates.
    pub fn new(progress: u16, status: u16, options: SanitizeOptions, state: u8) -> Self {
        Self {
            progress: progress.into(),
            status: status.into(),
            options: options.0.into(),
            estimates: [Self::NO_ESTIMATE.into(); 7],
            state,
            reserved_37: Reserved::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_specifications_bytes() {
        // Base 2.1, Sanitize Status log page: SPROG 1:0, SSTAT 3:2, SCDW10 7:4, seven estimates
        // from byte 8 on, SSI 36.
        let status = SanitizeLog::DONE | SanitizeLog::ALL_ERASED;
        let log = SanitizeLog::new(0x1234, status, SanitizeOptions(0x0506_0708), 0x21);
        let mut expected = [0; 512];
        expected[..8].copy_from_slice(&[0x34, 0x12, 0x01, 0x01, 8, 7, 6, 5]);
        expected[8..36].fill(0xff);
        expected[36] = 0x21;
        assert_eq!(log.as_bytes(), expected);
        assert_eq!((SanitizeLog::UNDER_WAY, SanitizeLog::FAILED), (2, 3));
        assert_eq!((SanitizeLog::RESTRICTED_FAILURE, SanitizeLog::UNRESTRICTED_FAILURE), (2, 4));
    }
}
