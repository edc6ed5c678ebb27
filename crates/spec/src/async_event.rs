use crate::LogPage;
use core::fmt;
use core::ops::BitOr;

const ERROR: u32 = 0;
const SMART: u32 = 1;
const NOTICE: u32 = 2;
const COMMAND_SET: u32 = 6;

/// What happened: the result of an Asynchronous Event Request, DW0 (Base 2.1, Asynchronous Event
/// Request command).
///
/// An event of a type is not told again until its log page has been read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsyncEvent(pub u32);

impl AsyncEvent {
    /// The controller failed, for good.
    pub const PERSISTENT_ERROR: Self = Self::new(ERROR, 0x03, LogPage::ERRORS);
    /// The controller failed and recovered.
    pub const TRANSIENT_ERROR: Self = Self::new(ERROR, 0x04, LogPage::ERRORS);
    /// The subsystem has become less reliable.
    pub const RELIABILITY: Self = Self::new(SMART, 0x00, LogPage::SMART);
    /// A temperature has crossed a threshold.
    pub const TEMPERATURE: Self = Self::new(SMART, 0x01, LogPage::SMART);
    /// Spare is below its threshold.
    pub const SPARE: Self = Self::new(SMART, 0x02, LogPage::SMART);
    /// Namespaces were attached, detached or changed.
    pub const NAMESPACES_CHANGED: Self = Self::new(NOTICE, 0x00, LogPage::CHANGED_NAMESPACES);
    /// Subsystems came or went: of a discovery controller.
    pub const DISCOVERY_CHANGED: Self = Self::new(NOTICE, 0xf0, LogPage::DISCOVERY);
    /// A Sanitize that the controller was asked for has ended.
    pub const SANITIZED: Self = Self::new(COMMAND_SET, 0x01, LogPage::SANITIZE);

    const fn new(kind: u32, information: u32, page: LogPage) -> Self {
        Self(kind | information << 8 | (page.0 as u32) << 16)
    }

    /// Which type of event it is: bits 2:0 (AET), 0 error, 1 health, 2 notice, 6 of
    /// command sets.
    #[inline]
    pub const fn kind(self) -> u8 {
        self.0.to_le_bytes()[0] & 0b111
    }

    /// Which event of the type it is: bits 15:8 (AEI).
    #[inline]
    pub const fn information(self) -> u8 {
        self.0.to_le_bytes()[1]
    }

    /// The log page that tells more: bits 23:16 (LID).
    #[inline]
    pub const fn log_page(self) -> LogPage {
        LogPage(self.0.to_le_bytes()[2])
    }
}

impl fmt::Debug for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {:06x}h", self.0)
    }
}

/// Which events a host wants, of [`Feature::ASYNC_EVENTS`](crate::Feature::ASYNC_EVENTS), and from
/// bit 8 on, which a controller has (Base 2.1, Asynchronous Event Configuration; Identify
/// Controller data structure, OAES).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncEvents(pub u32);

impl AsyncEvents {
    /// Bits 4:0: those of the critical warnings of a [`SmartLog`](crate::SmartLog).
    pub const WARNINGS: Self = Self(0x1f);
    /// Bit 8: [`AsyncEvent::NAMESPACES_CHANGED`].
    pub const NAMESPACES: Self = Self(1 << 8);
    /// Bit 11: the way to a namespace has changed. Here there is one way, which stays.
    pub const ASYMMETRIC_ACCESS: Self = Self(1 << 11);
    /// Bit 31: [`AsyncEvent::DISCOVERY_CHANGED`].
    pub const DISCOVERY: Self = Self(1 << 31);

    /// True when all of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for AsyncEvents {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_the_specifications_bits() {
        // Base 2.1, Asynchronous Event Request, DW0: AET 2:0, AEI 15:8, LID 23:16.
        for (number, event) in [
            (0x01_0300, AsyncEvent::PERSISTENT_ERROR),
            (0x01_0400, AsyncEvent::TRANSIENT_ERROR),
            (0x02_0001, AsyncEvent::RELIABILITY),
            (0x02_0101, AsyncEvent::TEMPERATURE),
            (0x02_0201, AsyncEvent::SPARE),
            (0x04_0002, AsyncEvent::NAMESPACES_CHANGED),
            (0x70_f002, AsyncEvent::DISCOVERY_CHANGED),
            (0x81_0106, AsyncEvent::SANITIZED),
        ] {
            assert_eq!(event, AsyncEvent(number));
        }
        let event = AsyncEvent(0xff70_f0fa);
        assert_eq!((event.kind(), event.information()), (2, 0xf0));
        assert_eq!(event.log_page(), LogPage::DISCOVERY);
    }

    #[test]
    fn what_hosts_ask_for_is_known() {
        // SPDK asks for 11Fh, Linux for 100h, and for 80000000h of a discovery controller.
        assert_eq!(AsyncEvents::WARNINGS | AsyncEvents::NAMESPACES, AsyncEvents(0x11f));
        assert!(AsyncEvents(0x100).contains(AsyncEvents::NAMESPACES));
        assert!(!AsyncEvents(0x100).contains(AsyncEvents::WARNINGS));
        assert!(!AsyncEvents(0x01).contains(AsyncEvents::WARNINGS), "all of it");
        assert!(AsyncEvents(0x8000_0000).contains(AsyncEvents::DISCOVERY));
    }
}
