use core::time::Duration;

/// What a controller can do (Base 2.1, Controller Capabilities).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// CQR, bit 16: queues are contiguous in memory. It is so on all fabrics.
    pub const CONTIGUOUS_QUEUES: Self = Self(1 << 16);
    /// NSSRS, bit 36: NSSR resets the subsystem.
    pub const SUBSYSTEM_RESET: Self = Self(1 << 36);
    /// CSS bit 0, bit 37: the NVM command set.
    pub const NVM_COMMAND_SET: Self = Self(1 << 37);
    /// CSS bit 6, bit 43: I/O command sets by
    /// [`Configuration::ALL_COMMAND_SETS`](crate::Configuration::ALL_COMMAND_SETS).
    pub const COMMAND_SETS: Self = Self(1 << 43);
    /// CSS bit 7, bit 44: no I/O command set, only admin commands.
    pub const NO_COMMAND_SET: Self = Self(1 << 44);
    /// CRMS bit 0, bit 59: ready only with the medium, and
    /// [`ReadyTimeouts`](crate::ReadyTimeouts) are there.
    pub const READY_WITH_MEDIA: Self = Self(1 << 59);

    /// The same with `entries` at most in an I/O queue (0's based: 1,023 are 1,024): MQES.
    #[inline]
    #[must_use]
    pub const fn with_queue_entries(self, entries: u16) -> Self {
        Self(self.0 & !0xffff | entries as u64)
    }

    /// The same with at most `half_seconds` of 500 ms from enabled to ready: TO.
    #[inline]
    #[must_use]
    pub const fn with_ready_half_seconds(self, half_seconds: u8) -> Self {
        Self(self.0 & !(0xff << 24) | (half_seconds as u64) << 24)
    }

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

    /// How many entries an I/O queue has at most, 0's based: bits 15:0 (MQES).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the field has 16 bits")]
    pub const fn queue_entries(self) -> u16 {
        self.0 as u16
    }

    /// How long it takes at most from enabled to ready, and from disabled to not ready: bits 31:24
    /// (TO), in 500 ms.
    #[inline]
    pub const fn ready_timeout(self) -> Duration {
        Duration::from_millis((self.0 >> 24 & 0xff) * 500)
    }

    /// Bytes of the smallest memory page, which is the unit of MDTS: bits 51:48 (MPSMIN), 4 KiB for
    /// 0.
    #[inline]
    pub const fn page_bytes_min(self) -> u64 {
        1 << (12 + (self.0 >> 48 & 0xf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_where_the_specification_has_them() {
        // Base 2.1, Controller Capabilities: MQES 15:0, CQR 16, TO 31:24, NSSRS 36, CSS 44:37,
        // MPSMIN 51:48, CRMS 60:59. Linux wants bit 43 for a KV namespace.
        let capabilities = Capabilities::CONTIGUOUS_QUEUES
            .with_queue_entries(1023)
            .with_ready_half_seconds(15)
            .with(Capabilities::NVM_COMMAND_SET)
            .with(Capabilities::COMMAND_SETS);
        assert_eq!(capabilities.0, 0x0000_0820_0f01_03ff);
        assert_eq!(capabilities.queue_entries(), 1023);
        assert_eq!(capabilities.ready_timeout(), Duration::from_millis(7500));
        assert_eq!(capabilities.page_bytes_min(), 4096);
        assert_eq!(Capabilities(0x00f3_0000_0000_0000).page_bytes_min(), 32_768);
        assert_eq!(Capabilities::SUBSYSTEM_RESET.0, 0x10_0000_0000);
        assert_eq!(Capabilities::NO_COMMAND_SET.0, 0x1000_0000_0000);
        assert_eq!(Capabilities::READY_WITH_MEDIA.0, 0x0800_0000_0000_0000);
        assert!(capabilities.contains(Capabilities::COMMAND_SETS));
        assert!(!capabilities.contains(Capabilities::SUBSYSTEM_RESET));
        let again = capabilities.with_queue_entries(0).with_ready_half_seconds(0);
        assert_eq!(again.0, 0x0000_0820_0001_0000);
    }
}
