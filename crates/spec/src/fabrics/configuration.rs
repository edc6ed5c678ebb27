use core::fmt;

/// What a host asks of a controller as a whole (Base 2.1, Controller Configuration).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Configuration(pub u32);

/// SHN: whether and how a controller is to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// 00b.
    None,
    /// 01b: in order.
    Normal,
    /// 10b: at once.
    Abrupt,
    /// 11b.
    Reserved,
}

impl Configuration {
    /// EN, bit 0: be enabled.
    pub const ENABLE: Self = Self(1);
    /// CSS 110b: all I/O command sets that the controller has.
    pub const ALL_COMMAND_SETS: u8 = 0b110;
    /// CSS 000b: the NVM command set alone.
    pub const NVM_COMMAND_SET: u8 = 0b000;
    /// CSS 111b: no I/O command set, only admin commands.
    pub const ADMIN_ONLY: u8 = 0b111;
    /// IOSQES and IOCQES that a queue of this specification has: entries of 64 and of 16 bytes.
    pub const ENTRY_SIZES: Self = Self(6 << 16 | 4 << 20);

    /// What a host of a fabric writes to enable a controller: all command sets, entries of 64 and
    /// 16 bytes, pages of 4 KiB.
    pub const ENABLE_ALL_COMMAND_SETS: Self =
        Self(Self::ENTRY_SIZES.0 | (Self::ALL_COMMAND_SETS as u32) << 4 | Self::ENABLE.0);

    /// The same with `shutdown` as SHN.
    #[inline]
    #[must_use]
    pub const fn with_shutdown(self, shutdown: Shutdown) -> Self {
        let number = match shutdown {
            Shutdown::None => 0b00,
            Shutdown::Normal => 0b01,
            Shutdown::Abrupt => 0b10,
            Shutdown::Reserved => 0b11,
        };
        Self(self.0 & !(0b11 << 14) | number << 14)
    }

    /// Whether the controller is to be enabled: bit 0 (EN).
    #[inline]
    pub const fn is_enabled(self) -> bool {
        self.0 & Self::ENABLE.0 != 0
    }

    /// Which command sets are wanted: bits 6:4 (CSS).
    #[inline]
    pub const fn command_sets(self) -> u8 {
        self.0.to_le_bytes()[0] >> 4 & 0b111
    }

    /// The host's memory pages, 0 for 4 KiB: bits 10:7 (MPS).
    #[inline]
    pub const fn page_size(self) -> u8 {
        self.bits(7)
    }

    /// How queues are arbitrated, 0 for round robin: bits 13:11 (AMS).
    #[inline]
    pub const fn arbitration(self) -> u8 {
        self.bits(11) & 0b111
    }

    /// Whether and how the controller is to shut down: bits 15:14 (SHN).
    #[inline]
    pub const fn shutdown(self) -> Shutdown {
        match self.0 >> 14 & 0b11 {
            0b00 => Shutdown::None,
            0b01 => Shutdown::Normal,
            0b10 => Shutdown::Abrupt,
            _ => Shutdown::Reserved,
        }
    }

    /// Bytes of an I/O submission queue entry, as a power of two: bits 19:16 (IOSQES).
    #[inline]
    pub const fn submission_entry_size(self) -> u8 {
        self.bits(16)
    }

    /// Bytes of an I/O completion queue entry, as a power of two: bits 23:20 (IOCQES).
    #[inline]
    pub const fn completion_entry_size(self) -> u8 {
        self.bits(20)
    }

    /// Four bits from `low` on.
    #[inline]
    const fn bits(self, low: u32) -> u8 {
        (self.0 >> low).to_le_bytes()[0] & 0xf
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CC {:08x}h", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linuxs_configurations_mean_what_the_specification_says() {
        // Base 2.1, Controller Configuration: EN 0, CSS 6:4, MPS 10:7, AMS 13:11, SHN 15:14, IOSQES
        // 19:16, IOCQES 23:20.
        let enabled = Configuration(0x0046_0061);
        assert_eq!(Configuration::ENABLE_ALL_COMMAND_SETS, enabled);
        assert_eq!(enabled.command_sets(), Configuration::ALL_COMMAND_SETS);
        assert_eq!((enabled.page_size(), enabled.arbitration()), (0, 0));
        assert_eq!((enabled.submission_entry_size(), enabled.completion_entry_size()), (6, 4));
        assert_eq!(enabled.shutdown(), Shutdown::None);
        assert!(enabled.is_enabled());
        assert!(!Configuration(0x0046_0060).is_enabled());

        let ending = Configuration(0x0046_4061);
        assert_eq!(ending.shutdown(), Shutdown::Normal);
        assert_eq!(enabled.with_shutdown(Shutdown::Normal), ending);
        // MPS 0101b, AMS 010b, CSS 111b.
        let other = Configuration(0x0000_12f1);
        assert_eq!((other.page_size(), other.arbitration()), (0b0101, 0b010));
        assert_eq!(other.command_sets(), Configuration::ADMIN_ONLY);
        assert_eq!(Configuration(0).command_sets(), Configuration::NVM_COMMAND_SET);
    }

    #[test]
    fn every_way_to_shut_down_comes_back() {
        for (number, shutdown) in
            [Shutdown::None, Shutdown::Normal, Shutdown::Abrupt, Shutdown::Reserved]
                .into_iter()
                .enumerate()
        {
            let number = u32::try_from(number).unwrap();
            let configuration = Configuration(u32::MAX).with_shutdown(shutdown);
            assert_eq!(configuration.0, 0xffff_3fff | number << 14);
            assert_eq!(configuration.shutdown(), shutdown);
        }
    }
}
