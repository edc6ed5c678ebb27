use core::ops::BitOr;

/// Conditions and hints of a Store: CDW11 bits 15:8 (KV 1.0d, Store command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions(u8);

impl StoreOptions {
    /// Store whether the key is there or not.
    pub const NONE: Self = Self(0);
    /// Store only if the key is there; otherwise [`Status::KEY_DOES_NOT_EXIST`].
    ///
    /// [`Status::KEY_DOES_NOT_EXIST`]: crate::Status::KEY_DOES_NOT_EXIST
    pub const MUST_EXIST: Self = Self(1 << 0);
    /// Store only if the key is not there; otherwise [`Status::KEY_EXISTS`].
    ///
    /// [`Status::KEY_EXISTS`]: crate::Status::KEY_EXISTS
    pub const MUST_NOT_EXIST: Self = Self(1 << 1);
    /// Keep the value as it is, without compression by the device.
    pub const NO_COMPRESS: Self = Self(1 << 2);

    /// The options that a command's [`options`](crate::Command::options) stand for, or `None` if a
    /// reserved bit is set.
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !0b111 == 0 { Some(Self(bits)) } else { None }
    }

    /// The option byte of a command.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// True when all of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for StoreOptions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a value is returned by a Retrieve: CDW11 bits 15:8 (KV 1.0d, Retrieve command).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrieveOptions(u8);

impl RetrieveOptions {
    /// Return the value as it was stored.
    pub const NONE: Self = Self(0);
    /// Return the value as the device keeps it, not decompressed.
    pub const RAW: Self = Self(1 << 0);

    /// The options that a command's [`options`](crate::Command::options) stand for, or `None` if a
    /// reserved bit is set.
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits & !0b1 == 0 { Some(Self(bits)) } else { None }
    }

    /// The option byte of a command.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_the_bits_of_command_dword_11() {
        // KV 1.0d, Store and Retrieve, CDW11 bits 8, 9 and 10, moved down to a byte.
        assert_eq!(StoreOptions::MUST_EXIST.bits(), 0x01);
        assert_eq!(StoreOptions::MUST_NOT_EXIST.bits(), 0x02);
        assert_eq!(StoreOptions::NO_COMPRESS.bits(), 0x04);
        assert_eq!(RetrieveOptions::RAW.bits(), 0x01);
    }

    #[test]
    fn reserved_bits_are_refused_and_all_others_come_back() {
        for bits in 0..=u8::MAX {
            assert_eq!(
                StoreOptions::from_bits(bits).map(StoreOptions::bits),
                (bits < 8).then_some(bits)
            );
            assert_eq!(
                RetrieveOptions::from_bits(bits).map(RetrieveOptions::bits),
                (bits < 2).then_some(bits)
            );
        }
    }

    #[test]
    fn a_set_contains_its_parts_only() {
        let both = StoreOptions::MUST_EXIST | StoreOptions::NO_COMPRESS;
        assert!(
            both.contains(StoreOptions::MUST_EXIST) && both.contains(StoreOptions::NO_COMPRESS)
        );
        assert!(!both.contains(StoreOptions::MUST_NOT_EXIST));
        assert!(both.contains(StoreOptions::NONE));
        assert!(!StoreOptions::NONE.contains(both));
    }
}
