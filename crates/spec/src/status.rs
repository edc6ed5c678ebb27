use core::fmt;

/// How a command ended: Status Code Type in bits 10:8, Status Code in bits 7:0.
///
/// The constants are those that the controller answers with. All are of type 0, generic: KV 1.0d
/// and the Linux and SPDK hosts agree, where some other emulators answer the KV codes with type 1.
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
    /// No space is left for the pair.
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
            Self::CAPACITY_EXCEEDED => "Capacity Exceeded",
            Self::INVALID_VALUE_SIZE => "Invalid Value Size",
            Self::INVALID_KEY_SIZE => "Invalid Key Size",
            Self::KEY_DOES_NOT_EXIST => "KV Key Does Not Exist",
            Self::UNRECOVERED_ERROR => "Unrecovered Error",
            Self::KEY_EXISTS => "Key Exists",
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
        // Base 2.1, Generic Command Status Values; KV 1.0d, the same for the KV command set.
        for (code, name) in [
            (0x00, "Successful Completion"),
            (0x01, "Invalid Command Opcode"),
            (0x02, "Invalid Field in Command"),
            (0x06, "Internal Error"),
            (0x0b, "Invalid Namespace or Format"),
            (0x81, "Capacity Exceeded"),
            (0x85, "Invalid Value Size"),
            (0x86, "Invalid Key Size"),
            (0x87, "KV Key Does Not Exist"),
            (0x88, "Unrecovered Error"),
            (0x89, "Key Exists"),
        ] {
            assert_eq!(format!("{}", Status(code)), name);
        }
    }

    #[test]
    fn a_code_of_another_type_is_no_kv_status() {
        assert_eq!(format!("{:?}", Status(0x187)), "status 187h");
        assert!(!Status(0x100).is_success(), "code 00h of type 1 is a failure");
        assert!(Status::SUCCESS.is_success());
    }
}
