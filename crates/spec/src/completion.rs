use crate::Status;
use core::fmt;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bits 10:0 of the status field that follows the phase bit: code and code type.
const STATUS_MASK: u16 = 0x7ff;

/// DNR, with the phase bit below it: DW3 bit 31.
const DO_NOT_RETRY: u16 = 1 << 15;

/// A completion queue entry (Base 2.1, Common Completion Queue Entry Layout). Its phase bit and
/// queue fields are zero until it is put into a queue: they belong to that.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Completion {
    result: U64,
    queue_head: U16,
    queue_id: U16,
    command_id: U16,
    status: U16,
}

const _: () = assert!(size_of::<Completion>() == 16, "a completion queue entry has 16 bytes");

impl Completion {
    /// Says that the command of this id ended with `status`. `result` is the command's own: for a
    /// Retrieve, all bytes of the stored value, however few the host's buffer took; for a Zone
    /// Append, the logical block that the first of its data has become.
    #[inline]
    pub fn new(command_id: u16, status: Status, result: u64) -> Self {
        Self {
            result: result.into(),
            queue_head: U16::ZERO,
            queue_id: U16::ZERO,
            command_id: command_id.into(),
            status: ((status.0 & STATUS_MASK) << 1).into(),
        }
    }

    /// The same completion as an entry of a queue: `head` is how far the controller has taken
    /// commands from the submission queue `id`. On a fabric there is no need of an id: it is 0.
    #[inline]
    #[must_use]
    pub fn with_queue(self, head: u16, id: u16) -> Self {
        Self { queue_head: head.into(), queue_id: id.into(), ..self }
    }

    /// The same completion, and the same command would end in the same way again.
    #[inline]
    #[must_use]
    pub fn with_do_not_retry(self) -> Self {
        Self { status: self.status | DO_NOT_RETRY, ..self }
    }

    /// The id of the command that ended: DW3 bits 15:0.
    #[inline]
    pub fn command_id(&self) -> u16 {
        self.command_id.get()
    }

    /// How it ended: DW3 bits 27:17.
    #[inline]
    pub fn status(&self) -> Status {
        Status(self.status.get() >> 1 & STATUS_MASK)
    }

    /// True when the same command would end in the same way again: DW3 bit 31 (DNR).
    #[inline]
    pub fn do_not_retry(&self) -> bool {
        self.status & DO_NOT_RETRY != 0
    }

    /// How far the controller has taken commands from the submission queue: DW2 bits 15:0 (SQHD).
    #[inline]
    pub fn queue_head(&self) -> u16 {
        self.queue_head.get()
    }

    /// The submission queue of the command: DW2 bits 31:16 (SQID).
    #[inline]
    pub fn queue_id(&self) -> u16 {
        self.queue_id.get()
    }

    /// The command's own result: DW0 and DW1. Most commands have one of 32 bits, in DW0.
    #[inline]
    pub fn result(&self) -> u64 {
        self.result.get()
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("command_id", &self.command_id())
            .field("status", &self.status())
            .field("result", &self.result())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_has_the_specifications_bytes() {
        // Base 2.1, Common Completion Queue Entry Layout: DW0, DW1, SQHD, SQID, CID, then the phase
        // bit and the status code from bit 17 on. 87h shifted by one bit is 010Eh.
        let completion = Completion::new(0xbeef, Status::KEY_DOES_NOT_EXIST, 0x0102_0304_0506_0708);
        assert_eq!(
            completion.as_bytes(),
            [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0xef, 0xbe, 0x0e, 0x01]
        );
    }

    #[test]
    fn an_entry_of_a_queue_has_the_specifications_bytes() {
        // SQHD and SQID are bytes 9:8 and 11:10; DNR is bit 31 of DW3. A Linux host shows this
        // status as 4087h.
        let completion = Completion::new(0xbeef, Status::KEY_DOES_NOT_EXIST, 0)
            .with_queue(0x0102, 0x0304)
            .with_do_not_retry();
        assert_eq!(
            completion.as_bytes(),
            [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 4, 3, 0xef, 0xbe, 0x0e, 0x81]
        );
        assert_eq!((completion.queue_head(), completion.queue_id()), (0x0102, 0x0304));
        assert_eq!(completion.status(), Status::KEY_DOES_NOT_EXIST);
        assert!(completion.do_not_retry());
        let again = Completion::new(0, Status(STATUS_MASK), 0);
        assert!(!again.do_not_retry(), "it is no part of the status");
    }

    #[test]
    fn accessors_read_each_field_whatever_surrounds_it() {
        // The last half-word is phase 1, code 89h, type 2, and all of DNR, More and CRD.
        let status = 1 | 0x89 << 1 | 2 << 9 | 0xf000_u16;
        let mut bytes: [u8; 16] = core::array::from_fn(|i| u8::try_from(i + 1).unwrap());
        bytes[14..].copy_from_slice(&status.to_le_bytes());
        let completion = Completion::read_from_bytes(&bytes).unwrap();
        assert_eq!(completion.result(), 0x0807_0605_0403_0201);
        assert_eq!(completion.command_id(), 0x0e0d);
        assert_eq!(completion.status(), Status(0x289));
    }

    #[test]
    fn every_status_comes_back() {
        for code in 0..=STATUS_MASK {
            assert_eq!(Completion::new(0, Status(code), 0).status(), Status(code));
        }
    }
}
