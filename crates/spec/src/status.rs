use core::fmt;

/// How a command ended: Status Code Type in bits 10:8, Status Code in bits 7:0.
///
/// The constants are those that the controller answers with. Those of the KV command set are of
/// type 0, generic: KV 1.0d and the Linux and SPDK hosts agree, where some other emulators answer
/// them with type 1. Codes from 80h on belong to a command set, so that one number may have two
/// names; no number here has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

impl Status {
    /// The command did what it asked.
    pub const SUCCESS: Self = Self(0x00);
    /// The opcode is not one of this namespace's command set.
    pub const INVALID_OPCODE: Self = Self(0x01);
    /// A field has a value that is reserved or contradicts another.
    pub const INVALID_FIELD: Self = Self(0x02);
    /// The controller failed for a reason of its own.
    pub const INTERNAL_ERROR: Self = Self(0x06);
    /// No namespace has this id, or it is of another command set.
    pub const INVALID_NAMESPACE: Self = Self(0x0b);
    /// The command names a logical block past the end of the namespace.
    pub const LBA_OUT_OF_RANGE: Self = Self(0x80);
    /// No space is left for what is written.
    pub const CAPACITY_EXCEEDED: Self = Self(0x81);
    /// The value is longer than the namespace takes.
    pub const INVALID_VALUE_SIZE: Self = Self(0x85);
    /// The key has no bytes, or more than the namespace takes.
    pub const INVALID_KEY_SIZE: Self = Self(0x86);
    /// The key is not there, and the command needs it.
    pub const KEY_DOES_NOT_EXIST: Self = Self(0x87);
    /// The medium did not give back what was stored.
    pub const UNRECOVERED_ERROR: Self = Self(0x88);
    /// The key is there, and the command needs it absent.
    pub const KEY_EXISTS: Self = Self(0x89);

    /// A Copy names more than the namespace copies at a time.
    pub const COMMAND_SIZE_LIMIT_EXCEEDED: Self = Self(0x183);
    /// The blocks of the command reach past the capacity of a zone, or into another zone.
    pub const ZONE_BOUNDARY_ERROR: Self = Self(0x1b8);
    /// The zone takes no more data.
    pub const ZONE_IS_FULL: Self = Self(0x1b9);
    /// The zone can be read and not written.
    pub const ZONE_IS_READ_ONLY: Self = Self(0x1ba);
    /// The zone can be neither read nor written.
    pub const ZONE_IS_OFFLINE: Self = Self(0x1bb);
    /// A Write does not start at the zone's write pointer.
    pub const ZONE_INVALID_WRITE: Self = Self(0x1bc);
    /// As many zones as may be are open or closed with data.
    pub const TOO_MANY_ACTIVE_ZONES: Self = Self(0x1bd);
    /// As many zones as may be are open.
    pub const TOO_MANY_OPEN_ZONES: Self = Self(0x1be);
    /// A zone in its state cannot do what is asked of it.
    pub const INVALID_ZONE_STATE_TRANSITION: Self = Self(0x1bf);
    /// The medium did not take what was written.
    pub const WRITE_FAULT: Self = Self(0x280);
    /// The medium did not give back what was written.
    pub const UNRECOVERED_READ_ERROR: Self = Self(0x281);

    /// True when the command did what it asked.
    #[inline]
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::SUCCESS => "Successful Completion",
            Self::INVALID_OPCODE => "Invalid Command Opcode",
            Self::INVALID_FIELD => "Invalid Field in Command",
            Self::INTERNAL_ERROR => "Internal Error",
            Self::INVALID_NAMESPACE => "Invalid Namespace or Format",
            Self::LBA_OUT_OF_RANGE => "LBA Out of Range",
            Self::CAPACITY_EXCEEDED => "Capacity Exceeded",
            Self::INVALID_VALUE_SIZE => "Invalid Value Size",
            Self::INVALID_KEY_SIZE => "Invalid Key Size",
            Self::KEY_DOES_NOT_EXIST => "KV Key Does Not Exist",
            Self::UNRECOVERED_ERROR => "Unrecovered Error",
            Self::KEY_EXISTS => "Key Exists",
            Self::COMMAND_SIZE_LIMIT_EXCEEDED => "Command Size Limit Exceeded",
            Self::ZONE_BOUNDARY_ERROR => "Zone Boundary Error",
            Self::ZONE_IS_FULL => "Zone Is Full",
            Self::ZONE_IS_READ_ONLY => "Zone Is Read Only",
            Self::ZONE_IS_OFFLINE => "Zone Is Offline",
            Self::ZONE_INVALID_WRITE => "Zone Invalid Write",
            Self::TOO_MANY_ACTIVE_ZONES => "Too Many Active Zones",
            Self::TOO_MANY_OPEN_ZONES => "Too Many Open Zones",
            Self::INVALID_ZONE_STATE_TRANSITION => "Invalid Zone State Transition",
            Self::WRITE_FAULT => "Write Fault",
            Self::UNRECOVERED_READ_ERROR => "Unrecovered Read Error",
            Self(other) => return write!(f, "status {other:03X}h"),
        })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn status_codes_have_the_specifications_numbers_and_names() {
        // Base 2.1, Generic Command Status Values; KV 1.0d, the same for the KV command set; NVM
        // 1.1 and ZNS 1.1a, their command specific values (type 1); Base 2.1, Media and Data
        // Integrity Errors (type 2).
        for (code, name) in [
            (0x00, "Successful Completion"),
            (0x01, "Invalid Command Opcode"),
            (0x02, "Invalid Field in Command"),
            (0x06, "Internal Error"),
            (0x0b, "Invalid Namespace or Format"),
            (0x80, "LBA Out of Range"),
            (0x81, "Capacity Exceeded"),
            (0x85, "Invalid Value Size"),
            (0x86, "Invalid Key Size"),
            (0x87, "KV Key Does Not Exist"),
            (0x88, "Unrecovered Error"),
            (0x89, "Key Exists"),
            (0x183, "Command Size Limit Exceeded"),
            (0x1b8, "Zone Boundary Error"),
            (0x1b9, "Zone Is Full"),
            (0x1ba, "Zone Is Read Only"),
            (0x1bb, "Zone Is Offline"),
            (0x1bc, "Zone Invalid Write"),
            (0x1bd, "Too Many Active Zones"),
            (0x1be, "Too Many Open Zones"),
            (0x1bf, "Invalid Zone State Transition"),
            (0x280, "Write Fault"),
            (0x281, "Unrecovered Read Error"),
        ] {
            assert_eq!(format!("{}", Status(code)), name);
        }
    }

    #[test]
    fn a_code_of_another_type_is_another_status() {
        assert_eq!(format!("{:?}", Status(0x187)), "status 187h");
        assert!(!Status(0x100).is_success(), "code 00h of type 1 is a failure");
        assert!(Status::SUCCESS.is_success());
    }
}
