use core::fmt;

/// How a controller is (Base 2.1, Controller Status).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ControllerStatus(pub u32);

/// SHST: how far a controller's shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownStatus {
    /// 00b: none was asked for.
    None,
    /// 01b: under way.
    Occurring,
    /// 10b: done.
    Complete,
    /// 11b.
    Reserved,
}

impl ControllerStatus {
    /// RDY, bit 0: takes commands.
    pub const READY: Self = Self(1 << 0);
    /// CFS, bit 1: failed for good.
    pub const FATAL: Self = Self(1 << 1);
    /// NSSRO, bit 4: the subsystem was reset; a host that writes it clears it.
    pub const SUBSYSTEM_RESET: Self = Self(1 << 4);

    /// The same with `ready` as RDY.
    #[inline]
    #[must_use]
    pub const fn with_ready(self, ready: bool) -> Self {
        Self(self.0 & !Self::READY.0 | ready as u32)
    }

    /// The same with `shutdown` as SHST.
    #[inline]
    #[must_use]
    pub const fn with_shutdown(self, shutdown: ShutdownStatus) -> Self {
        let number = match shutdown {
            ShutdownStatus::None => 0b00,
            ShutdownStatus::Occurring => 0b01,
            ShutdownStatus::Complete => 0b10,
            ShutdownStatus::Reserved => 0b11,
        };
        Self(self.0 & !(0b11 << 2) | number << 2)
    }

    /// Whether the controller takes commands: bit 0 (RDY).
    #[inline]
    pub const fn is_ready(self) -> bool {
        self.0 & Self::READY.0 != 0
    }

    /// Whether the controller failed for good: bit 1 (CFS).
    #[inline]
    pub const fn is_fatal(self) -> bool {
        self.0 & Self::FATAL.0 != 0
    }

    /// The same with `was_reset` as NSSRO.
    #[inline]
    #[must_use]
    pub const fn with_subsystem_reset(self, was_reset: bool) -> Self {
        Self(self.0 & !Self::SUBSYSTEM_RESET.0 | (was_reset as u32) << 4)
    }

    /// Whether the subsystem was reset: bit 4 (NSSRO).
    #[inline]
    pub const fn is_subsystem_reset(self) -> bool {
        self.0 & Self::SUBSYSTEM_RESET.0 != 0
    }

    /// How far a shutdown is: bits 3:2 (SHST).
    #[inline]
    pub const fn shutdown(self) -> ShutdownStatus {
        match self.0 >> 2 & 0b11 {
            0b00 => ShutdownStatus::None,
            0b01 => ShutdownStatus::Occurring,
            0b10 => ShutdownStatus::Complete,
            _ => ShutdownStatus::Reserved,
        }
    }
}

impl fmt::Debug for ControllerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CSTS {:08x}h", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_after_a_shutdown_is_the_one_that_linux_waits_for() {
        // Base 2.1, Controller Status: RDY 0, CFS 1, SHST 3:2. Linux reads 9h in the end.
        let status = ControllerStatus::READY.with_shutdown(ShutdownStatus::Complete);
        assert_eq!(status, ControllerStatus(0x9));
        assert!(status.is_ready() && !status.is_fatal());
        assert!(ControllerStatus::FATAL.is_fatal() && !ControllerStatus::FATAL.is_ready());
        assert_eq!(status.with_ready(false), ControllerStatus(0x8));
        assert_eq!(status.with_ready(false).with_ready(true), status);
        // NSSRO is bit 4.
        assert_eq!(status.with_subsystem_reset(true), ControllerStatus(0x19));
        assert_eq!(ControllerStatus(0x19).with_subsystem_reset(false), status);
        assert!(ControllerStatus(0x10).is_subsystem_reset() && !status.is_subsystem_reset());
        for (number, shutdown) in [
            (0x0, ShutdownStatus::None),
            (0x4, ShutdownStatus::Occurring),
            (0x8, ShutdownStatus::Complete),
            (0xc, ShutdownStatus::Reserved),
        ] {
            assert_eq!(ControllerStatus(number).shutdown(), shutdown);
            let status = ControllerStatus(u32::MAX).with_shutdown(shutdown);
            assert_eq!(status.0, 0xffff_fff3 | number);
        }
    }
}
