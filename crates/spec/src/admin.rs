//! The admin command set: opcodes, and the commands that have no file of their own.

use crate::{Command, Opcode};
use core::fmt;

/// What is asked of a controller by a command on its admin queue: the same byte as [`Opcode`].
///
/// Unlike that, a number has one meaning whatever the namespace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdminOpcode(pub u8);

/// Base 2.1, Opcodes for Admin Commands.
impl AdminOpcode {
    /// Ends an I/O submission queue in memory.
    pub const DELETE_IO_SQ: Self = Self(0x00);
    /// Starts an I/O submission queue in memory.
    pub const CREATE_IO_SQ: Self = Self(0x01);
    /// Reads a part of a log page.
    pub const GET_LOG_PAGE: Self = Self(0x02);
    /// Ends an I/O completion queue in memory.
    pub const DELETE_IO_CQ: Self = Self(0x04);
    /// Starts an I/O completion queue in memory.
    pub const CREATE_IO_CQ: Self = Self(0x05);
    /// Reads what a controller or a namespace is.
    pub const IDENTIFY: Self = Self(0x06);
    /// Asks that a command end early.
    pub const ABORT: Self = Self(0x08);
    /// Changes a feature.
    pub const SET_FEATURES: Self = Self(0x09);
    /// Reads a feature.
    pub const GET_FEATURES: Self = Self(0x0a);
    /// Waits for something to happen.
    pub const ASYNC_EVENT_REQUEST: Self = Self(0x0c);
    /// Makes or ends a namespace.
    pub const NAMESPACE_MANAGEMENT: Self = Self(0x0d);
    /// Gives a namespace to controllers, or takes it from them.
    pub const NAMESPACE_ATTACHMENT: Self = Self(0x15);
    /// Says that the host is there.
    pub const KEEP_ALIVE: Self = Self(0x18);
    /// Makes a namespace new.
    pub const FORMAT_NVM: Self = Self(0x80);
    /// Lets all data of the subsystem be gone for good.
    pub const SANITIZE: Self = Self(0x84);
    /// Names the memory where the host writes doorbells: see
    /// [`Command::doorbell_buffer_config`].
    pub const DOORBELL_BUFFER_CONFIG: Self = Self(0x7c);
    /// A fabrics command, on any queue: what it is stands in its
    /// [`FabricsType`](crate::FabricsType).
    pub const FABRICS: Self = Self(0x7f);
}

impl fmt::Display for AdminOpcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match *self {
            Self::DELETE_IO_SQ => "Delete I/O Submission Queue",
            Self::CREATE_IO_SQ => "Create I/O Submission Queue",
            Self::GET_LOG_PAGE => "Get Log Page",
            Self::DELETE_IO_CQ => "Delete I/O Completion Queue",
            Self::CREATE_IO_CQ => "Create I/O Completion Queue",
            Self::IDENTIFY => "Identify",
            Self::ABORT => "Abort",
            Self::SET_FEATURES => "Set Features",
            Self::GET_FEATURES => "Get Features",
            Self::ASYNC_EVENT_REQUEST => "Asynchronous Event Request",
            Self::NAMESPACE_MANAGEMENT => "Namespace Management",
            Self::NAMESPACE_ATTACHMENT => "Namespace Attachment",
            Self::KEEP_ALIVE => "Keep Alive",
            Self::FORMAT_NVM => "Format NVM",
            Self::SANITIZE => "Sanitize",
            Self::DOORBELL_BUFFER_CONFIG => "Doorbell Buffer Config",
            Self::FABRICS => "Fabrics",
            Self(other) => return write!(f, "admin opcode {other:02X}h"),
        })
    }
}

impl fmt::Debug for AdminOpcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The admin command set (Base 2.1, Abort, Asynchronous Event Request and Keep Alive commands).
impl Command {
    /// Asks that the command `command_id` of submission queue `queue_id` end early. Bit 0 of the
    /// result is set when it was not aborted.
    #[inline]
    pub fn abort(queue_id: u16, command_id: u16) -> Self {
        let dword_10 = u32::from(command_id) << 16 | u32::from(queue_id);
        Self::admin(AdminOpcode::ABORT, 0, [dword_10, 0, 0, 0, 0, 0])
    }

    /// Waits for the next [`AsyncEvent`](crate::AsyncEvent), which is its result.
    #[inline]
    pub fn async_event_request() -> Self {
        Self::admin(AdminOpcode::ASYNC_EVENT_REQUEST, 0, [0; 6])
    }

    /// Says that the host is there.
    #[inline]
    pub fn keep_alive() -> Self {
        Self::admin(AdminOpcode::KEEP_ALIVE, 0, [0; 6])
    }

    #[inline]
    pub(crate) fn admin(opcode: AdminOpcode, nsid: u32, dwords_10_15: [u32; 6]) -> Self {
        Self::new(Opcode(opcode.0), nsid, dwords_10_15)
    }

    /// What is asked for on an admin queue: CDW0 bits 7:0.
    #[inline]
    pub fn admin_opcode(&self) -> AdminOpcode {
        AdminOpcode(self.opcode().0)
    }

    /// The submission queue of the command that an Abort is about: CDW10 bits 15:0.
    #[inline]
    pub fn aborted_queue_id(&self) -> u16 {
        low_half(self.dword::<10>())
    }

    /// The command that an Abort is about: CDW10 bits 31:16.
    #[inline]
    pub fn aborted_command_id(&self) -> u16 {
        high_half(self.dword::<10>())
    }
}

/// Bits 15:0.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the rest is another field")]
pub(crate) const fn low_half(dword: u32) -> u16 {
    dword as u16
}

/// Bits 31:16.
#[inline]
pub(crate) const fn high_half(dword: u32) -> u16 {
    low_half(dword >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};
    use std::format;
    use zerocopy::IntoBytes;

    #[test]
    fn admin_opcodes_have_the_specifications_numbers_and_names() {
        // Base 2.1, Opcodes for Admin Commands.
        for (number, name) in [
            (0x00, "Delete I/O Submission Queue"),
            (0x01, "Create I/O Submission Queue"),
            (0x02, "Get Log Page"),
            (0x04, "Delete I/O Completion Queue"),
            (0x05, "Create I/O Completion Queue"),
            (0x06, "Identify"),
            (0x08, "Abort"),
            (0x09, "Set Features"),
            (0x0a, "Get Features"),
            (0x0c, "Asynchronous Event Request"),
            (0x0d, "Namespace Management"),
            (0x15, "Namespace Attachment"),
            (0x18, "Keep Alive"),
            (0x80, "Format NVM"),
            (0x84, "Sanitize"),
            (0x7c, "Doorbell Buffer Config"),
            (0x7f, "Fabrics"),
            (0xc5, "admin opcode C5h"),
        ] {
            assert_eq!(format!("{}", AdminOpcode(number)), name);
        }
    }

    #[test]
    fn the_commands_have_the_specifications_bytes() {
        // Base 2.1, Abort command: CDW10 SQID, CID. The other two have no fields.
        let aborted = entry(&[(0, &[0x08]), (40, &[0x02, 0x01, 0xef, 0xbe])]);
        assert_eq!(Command::abort(0x0102, 0xbeef).as_bytes(), aborted);
        assert_eq!(Command::async_event_request().as_bytes(), entry(&[(0, &[0x0c])]));
        assert_eq!(Command::keep_alive().as_bytes(), entry(&[(0, &[0x18])]));
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.admin_opcode(), AdminOpcode(1));
        assert_eq!(command.aborted_queue_id(), 0x2a29);
        assert_eq!(command.aborted_command_id(), 0x2c2b);
    }
}
