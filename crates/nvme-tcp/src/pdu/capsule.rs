use super::{CommonHeader, PduType};
use spec::{Command, Completion};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Command Capsule (`CapsuleCmd`): a submission queue entry, which data may follow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CapsuleCmd {
    common: CommonHeader,
    command: Command,
}

const _: () = assert!(size_of::<CapsuleCmd>() == 72, "a CapsuleCmd's header has 72 bytes");

impl CapsuleCmd {
    /// A capsule of `command`.
    #[inline]
    pub fn new(command: Command) -> Self {
        Self { common: CommonHeader::new(PduType::CAPSULE_CMD, 72, 0), command }
    }

    /// The common header.
    #[inline]
    pub fn common(&self) -> &CommonHeader {
        &self.common
    }

    /// The submission queue entry.
    #[inline]
    pub fn command(&self) -> &Command {
        &self.command
    }
}

/// Response Capsule (`CapsuleResp`): a completion queue entry.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct CapsuleResp {
    common: CommonHeader,
    entry: Completion,
}

const _: () = assert!(size_of::<CapsuleResp>() == 24, "a CapsuleResp's header has 24 bytes");

impl CapsuleResp {
    /// A capsule of `entry`.
    #[inline]
    pub fn new(entry: Completion) -> Self {
        Self { common: CommonHeader::new(PduType::CAPSULE_RESP, 24, 0), entry }
    }

    /// The completion queue entry.
    #[inline]
    pub fn entry(&self) -> &Completion {
        &self.entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::Status;

    #[test]
    fn capsules_have_the_specifications_bytes() {
        // TCP 1.1, CapsuleCmd: common header, submission queue entry.
        let command: [u8; 64] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        let capsule = CapsuleCmd::new(Command::read_from_bytes(&command).unwrap());
        let bytes = capsule.as_bytes();
        assert_eq!(bytes[..8], [4, 0, 72, 0, 72, 0, 0, 0]);
        assert_eq!(bytes[8..], command);
        assert_eq!(capsule.command().command_id(), 0x0403);
        // TCP 1.1, CapsuleResp: common header, completion queue entry.
        let entry = Completion::new(0x0102, Status::KEY_EXISTS, 7);
        let capsule = CapsuleResp::new(entry);
        let bytes = capsule.as_bytes();
        assert_eq!(bytes[..8], [5, 0, 24, 0, 24, 0, 0, 0]);
        assert_eq!(bytes[8..], *entry.as_bytes());
        assert_eq!(*capsule.entry(), entry);
    }
}
