use core::fmt;

/// How a command ended: Status Code Type in bits 10:8, Status Code in bits 7:0.
///
/// The constants are those that Kvasir's controllers answer with, and those that its hosts may
/// meet. Those of the KV command set are of type 0, generic: KV 1.0d and the Linux and SPDK hosts
/// agree, where some other emulators answer them with type 1. Codes from 80h on belong to a command
/// set, so that one number may have two names; no number here has.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u16);

impl Status {
    /// The command did what it asked.
    pub const SUCCESS: Self = Self(0x00);
    /// The opcode is not one of this namespace's command set.
    pub const INVALID_OPCODE: Self = Self(0x01);
    /// A field has a value that is reserved or contradicts another.
    pub const INVALID_FIELD: Self = Self(0x02);
    /// The id of the command is in use by another one of the queue.
    pub const COMMAND_ID_CONFLICT: Self = Self(0x03);
    /// The data, or the metadata, did not come through.
    pub const DATA_TRANSFER_ERROR: Self = Self(0x04);
    /// The controller failed for a reason of its own.
    pub const INTERNAL_ERROR: Self = Self(0x06);
    /// An Abort ended the command.
    pub const ABORT_REQUESTED: Self = Self(0x07);
    /// The queue of the command ended.
    pub const ABORTED_WITH_QUEUE: Self = Self(0x08);
    /// The other command of a fused operation failed.
    pub const FAILED_FUSED_COMMAND: Self = Self(0x09);
    /// The adjacent command is not the other command of a fused operation.
    pub const MISSING_FUSED_COMMAND: Self = Self(0x0a);
    /// No namespace has this id, or it is of another command set.
    pub const INVALID_NAMESPACE: Self = Self(0x0b);
    /// The command comes before or after its time.
    pub const COMMAND_SEQUENCE_ERROR: Self = Self(0x0c);
    /// A segment of the SGL is not what it should be.
    pub const INVALID_SGL_SEGMENT: Self = Self(0x0d);
    /// The SGL has too many descriptors, or too few.
    pub const INVALID_SGL_COUNT: Self = Self(0x0e);
    /// The SGL is of less data than the command moves, or of more than there is.
    pub const DATA_SGL_LENGTH_INVALID: Self = Self(0x0f);
    /// The SGL is of a kind that the controller does not know, or not in this place.
    pub const SGL_TYPE_INVALID: Self = Self(0x11);
    /// A PRP entry has an offset that it must not have.
    pub const PRP_OFFSET_INVALID: Self = Self(0x13);
    /// The command writes more blocks than the controller writes atomically.
    pub const ATOMIC_WRITE_UNIT_EXCEEDED: Self = Self(0x14);
    /// The SGL begins where the capsule has no data.
    pub const SGL_OFFSET_INVALID: Self = Self(0x16);
    /// The host identifier has not the size that it has elsewhere.
    pub const HOST_ID_INCONSISTENT: Self = Self(0x18);
    /// The host was silent for too long.
    pub const KEEP_ALIVE_EXPIRED: Self = Self(0x19);
    /// A keep alive time is missing where there has to be one, or too large.
    pub const KEEP_ALIVE_INVALID: Self = Self(0x1a);
    /// The last Sanitize failed, and nothing else is done before that is dealt with.
    pub const SANITIZE_FAILED: Self = Self(0x1c);
    /// All data is being erased.
    pub const SANITIZE_IN_PROGRESS: Self = Self(0x1d);
    /// The transport lost or spoiled the data; it may come through the next time.
    pub const TRANSIENT_TRANSPORT_ERROR: Self = Self(0x22);
    /// The namespace is being made new.
    pub const FORMAT_IN_PROGRESS: Self = Self(0x84);
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

    /// There is no such completion queue.
    pub const INVALID_COMPLETION_QUEUE: Self = Self(0x100);
    /// There is, or can be, no queue of this id.
    pub const INVALID_QUEUE_ID: Self = Self(0x101);
    /// A queue cannot have this many entries.
    pub const INVALID_QUEUE_SIZE: Self = Self(0x102);
    /// As many Aborts as may be are under way.
    pub const ABORT_LIMIT_EXCEEDED: Self = Self(0x103);
    /// As many Asynchronous Event Requests as may be are waiting.
    pub const ASYNC_EVENT_LIMIT_EXCEEDED: Self = Self(0x105);
    /// There is no such interrupt vector.
    pub const INVALID_INTERRUPT_VECTOR: Self = Self(0x108);
    /// There is no such log page.
    pub const INVALID_LOG_PAGE: Self = Self(0x109);
    /// The namespace cannot have this format.
    pub const INVALID_FORMAT: Self = Self(0x10a);
    /// A completion queue that submission queues use cannot be deleted.
    pub const INVALID_QUEUE_DELETION: Self = Self(0x10c);
    /// The feature does not outlive a reset.
    pub const FEATURE_NOT_SAVEABLE: Self = Self(0x10d);
    /// The feature is as it is.
    pub const FEATURE_NOT_CHANGEABLE: Self = Self(0x10e);
    /// The feature is the controller's, and a namespace was named.
    pub const FEATURE_NOT_NAMESPACE_SPECIFIC: Self = Self(0x10f);
    /// What is left is less than the namespace shall have.
    pub const NAMESPACE_INSUFFICIENT_CAPACITY: Self = Self(0x115);
    /// There are as many namespaces as may be.
    pub const NAMESPACE_ID_UNAVAILABLE: Self = Self(0x116);
    /// The namespace is attached to the controller.
    pub const NAMESPACE_ALREADY_ATTACHED: Self = Self(0x118);
    /// The namespace is not attached to the controller.
    pub const NAMESPACE_NOT_ATTACHED: Self = Self(0x11a);
    /// The namespace cannot have less capacity than size.
    pub const THIN_PROVISIONING_NOT_SUPPORTED: Self = Self(0x11b);
    /// The list names no controller, or one that there is not.
    pub const CONTROLLER_LIST_INVALID: Self = Self(0x11c);
    /// No more hosts can have the namespace.
    pub const NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED: Self = Self(0x127);
    /// The controller has no such I/O command set.
    pub const COMMAND_SET_NOT_SUPPORTED: Self = Self(0x129);
    /// The I/O command set is there, and the host did not ask for it.
    pub const COMMAND_SET_NOT_ENABLED: Self = Self(0x12a);
    /// The I/O command sets cannot be selected while namespaces need others.
    pub const COMMAND_SET_COMBINATION_REJECTED: Self = Self(0x12b);
    /// The namespace is of another I/O command set.
    pub const INVALID_COMMAND_SET: Self = Self(0x12c);
    /// A Connect is of a format that the controller does not know.
    pub const CONNECT_INCOMPATIBLE_FORMAT: Self = Self(0x180);
    /// The controller has an association, or the subsystem no controller left.
    pub const CONNECT_CONTROLLER_BUSY: Self = Self(0x181);
    /// A field of a Connect is wrong: its result is a [`ConnectInvalid`](crate::ConnectInvalid).
    pub const CONNECT_INVALID_PARAMETERS: Self = Self(0x182);
    /// The host may not connect.
    pub const CONNECT_INVALID_HOST: Self = Self(0x184);
    /// A Disconnect came on an admin queue.
    pub const INVALID_QUEUE_TYPE: Self = Self(0x185);
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
    /// The blocks are not what the host compares them with.
    pub const COMPARE_FAILURE: Self = Self(0x285);
    /// The host could not bring the command to the controller, or lost its answer: a host says so
    /// to its own users.
    pub const HOST_PATHING_ERROR: Self = Self(0x370);

    /// Every status that has a name here.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(status, _)| *status)
    }

    /// True when the command did what it asked.
    #[inline]
    pub const fn is_success(self) -> bool {
        self.0 == Self::SUCCESS.0
    }
}

/// What the specifications call them.
const NAMES: [(Status, &str); 74] = [
    (Status::SUCCESS, "Successful Completion"),
    (Status::INVALID_OPCODE, "Invalid Command Opcode"),
    (Status::INVALID_FIELD, "Invalid Field in Command"),
    (Status::COMMAND_ID_CONFLICT, "Command ID Conflict"),
    (Status::DATA_TRANSFER_ERROR, "Data Transfer Error"),
    (Status::INTERNAL_ERROR, "Internal Error"),
    (Status::ABORT_REQUESTED, "Command Abort Requested"),
    (Status::ABORTED_WITH_QUEUE, "Command Aborted due to SQ Deletion"),
    (Status::FAILED_FUSED_COMMAND, "Command Aborted due to Failed Fused Command"),
    (Status::MISSING_FUSED_COMMAND, "Command Aborted due to Missing Fused Command"),
    (Status::INVALID_NAMESPACE, "Invalid Namespace or Format"),
    (Status::COMMAND_SEQUENCE_ERROR, "Command Sequence Error"),
    (Status::INVALID_SGL_SEGMENT, "Invalid SGL Segment Descriptor"),
    (Status::INVALID_SGL_COUNT, "Invalid Number of SGL Descriptors"),
    (Status::DATA_SGL_LENGTH_INVALID, "Data SGL Length Invalid"),
    (Status::SGL_TYPE_INVALID, "SGL Descriptor Type Invalid"),
    (Status::PRP_OFFSET_INVALID, "PRP Offset Invalid"),
    (Status::ATOMIC_WRITE_UNIT_EXCEEDED, "Atomic Write Unit Exceeded"),
    (Status::SGL_OFFSET_INVALID, "SGL Offset Invalid"),
    (Status::HOST_ID_INCONSISTENT, "Host Identifier Inconsistent Format"),
    (Status::KEEP_ALIVE_EXPIRED, "Keep Alive Timer Expired"),
    (Status::KEEP_ALIVE_INVALID, "Keep Alive Timeout Invalid"),
    (Status::SANITIZE_FAILED, "Sanitize Failed"),
    (Status::SANITIZE_IN_PROGRESS, "Sanitize In Progress"),
    (Status::TRANSIENT_TRANSPORT_ERROR, "Transient Transport Error"),
    (Status::FORMAT_IN_PROGRESS, "Format in Progress"),
    (Status::LBA_OUT_OF_RANGE, "LBA Out of Range"),
    (Status::CAPACITY_EXCEEDED, "Capacity Exceeded"),
    (Status::INVALID_VALUE_SIZE, "Invalid Value Size"),
    (Status::INVALID_KEY_SIZE, "Invalid Key Size"),
    (Status::KEY_DOES_NOT_EXIST, "KV Key Does Not Exist"),
    (Status::UNRECOVERED_ERROR, "Unrecovered Error"),
    (Status::KEY_EXISTS, "Key Exists"),
    (Status::INVALID_COMPLETION_QUEUE, "Completion Queue Invalid"),
    (Status::INVALID_QUEUE_ID, "Invalid Queue Identifier"),
    (Status::INVALID_QUEUE_SIZE, "Invalid Queue Size"),
    (Status::ABORT_LIMIT_EXCEEDED, "Abort Command Limit Exceeded"),
    (Status::ASYNC_EVENT_LIMIT_EXCEEDED, "Asynchronous Event Request Limit Exceeded"),
    (Status::INVALID_INTERRUPT_VECTOR, "Invalid Interrupt Vector"),
    (Status::INVALID_LOG_PAGE, "Invalid Log Page"),
    (Status::INVALID_FORMAT, "Invalid Format"),
    (Status::INVALID_QUEUE_DELETION, "Invalid Queue Deletion"),
    (Status::FEATURE_NOT_SAVEABLE, "Feature Identifier Not Saveable"),
    (Status::FEATURE_NOT_CHANGEABLE, "Feature Not Changeable"),
    (Status::FEATURE_NOT_NAMESPACE_SPECIFIC, "Feature Not Namespace Specific"),
    (Status::NAMESPACE_INSUFFICIENT_CAPACITY, "Namespace Insufficient Capacity"),
    (Status::NAMESPACE_ID_UNAVAILABLE, "Namespace Identifier Unavailable"),
    (Status::NAMESPACE_ALREADY_ATTACHED, "Namespace Already Attached"),
    (Status::NAMESPACE_NOT_ATTACHED, "Namespace Not Attached"),
    (Status::THIN_PROVISIONING_NOT_SUPPORTED, "Thin Provisioning Not Supported"),
    (Status::CONTROLLER_LIST_INVALID, "Controller List Invalid"),
    (Status::NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED, "Namespace Attachment Limit Exceeded"),
    (Status::COMMAND_SET_NOT_SUPPORTED, "I/O Command Set Not Supported"),
    (Status::COMMAND_SET_NOT_ENABLED, "I/O Command Set Not Enabled"),
    (Status::COMMAND_SET_COMBINATION_REJECTED, "I/O Command Set Combination Rejected"),
    (Status::INVALID_COMMAND_SET, "Invalid I/O Command Set"),
    (Status::CONNECT_INCOMPATIBLE_FORMAT, "Connect Incompatible Format"),
    (Status::CONNECT_CONTROLLER_BUSY, "Connect Controller Busy"),
    (Status::CONNECT_INVALID_PARAMETERS, "Connect Invalid Parameters"),
    (Status::CONNECT_INVALID_HOST, "Connect Invalid Host"),
    (Status::INVALID_QUEUE_TYPE, "Invalid Queue Type"),
    (Status::COMMAND_SIZE_LIMIT_EXCEEDED, "Command Size Limit Exceeded"),
    (Status::ZONE_BOUNDARY_ERROR, "Zone Boundary Error"),
    (Status::ZONE_IS_FULL, "Zone Is Full"),
    (Status::ZONE_IS_READ_ONLY, "Zone Is Read Only"),
    (Status::ZONE_IS_OFFLINE, "Zone Is Offline"),
    (Status::ZONE_INVALID_WRITE, "Zone Invalid Write"),
    (Status::TOO_MANY_ACTIVE_ZONES, "Too Many Active Zones"),
    (Status::TOO_MANY_OPEN_ZONES, "Too Many Open Zones"),
    (Status::INVALID_ZONE_STATE_TRANSITION, "Invalid Zone State Transition"),
    (Status::WRITE_FAULT, "Write Fault"),
    (Status::UNRECOVERED_READ_ERROR, "Unrecovered Read Error"),
    (Status::COMPARE_FAILURE, "Compare Failure"),
    (Status::HOST_PATHING_ERROR, "Host Pathing Error"),
];

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(status, _)| status == self) {
            Some((_, name)) => f.pad(name),
            None => write!(f, "status {:03X}h", self.0),
        }
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
    use std::collections::BTreeSet;
    use std::format;

    /// Base 2.1, Generic Command Status Values; KV 1.0d, the same for the KV command set; NVM
    /// 1.1 and ZNS 1.1a, their command specific values (type 1); Base 2.1, Media and Data
    /// Integrity Errors (type 2) and Path Related Status (type 3).
    const SPECIFIED: [(u16, &str); 74] = [
        (0x00, "Successful Completion"),
        (0x01, "Invalid Command Opcode"),
        (0x02, "Invalid Field in Command"),
        (0x03, "Command ID Conflict"),
        (0x04, "Data Transfer Error"),
        (0x06, "Internal Error"),
        (0x07, "Command Abort Requested"),
        (0x08, "Command Aborted due to SQ Deletion"),
        (0x09, "Command Aborted due to Failed Fused Command"),
        (0x0a, "Command Aborted due to Missing Fused Command"),
        (0x0b, "Invalid Namespace or Format"),
        (0x0c, "Command Sequence Error"),
        (0x0d, "Invalid SGL Segment Descriptor"),
        (0x0e, "Invalid Number of SGL Descriptors"),
        (0x0f, "Data SGL Length Invalid"),
        (0x11, "SGL Descriptor Type Invalid"),
        (0x13, "PRP Offset Invalid"),
        (0x14, "Atomic Write Unit Exceeded"),
        (0x16, "SGL Offset Invalid"),
        (0x18, "Host Identifier Inconsistent Format"),
        (0x19, "Keep Alive Timer Expired"),
        (0x1a, "Keep Alive Timeout Invalid"),
        (0x1c, "Sanitize Failed"),
        (0x1d, "Sanitize In Progress"),
        (0x22, "Transient Transport Error"),
        (0x84, "Format in Progress"),
        (0x80, "LBA Out of Range"),
        (0x81, "Capacity Exceeded"),
        (0x85, "Invalid Value Size"),
        (0x86, "Invalid Key Size"),
        (0x87, "KV Key Does Not Exist"),
        (0x88, "Unrecovered Error"),
        (0x89, "Key Exists"),
        (0x100, "Completion Queue Invalid"),
        (0x101, "Invalid Queue Identifier"),
        (0x102, "Invalid Queue Size"),
        (0x103, "Abort Command Limit Exceeded"),
        (0x105, "Asynchronous Event Request Limit Exceeded"),
        (0x108, "Invalid Interrupt Vector"),
        (0x109, "Invalid Log Page"),
        (0x10a, "Invalid Format"),
        (0x10c, "Invalid Queue Deletion"),
        (0x10d, "Feature Identifier Not Saveable"),
        (0x10e, "Feature Not Changeable"),
        (0x10f, "Feature Not Namespace Specific"),
        (0x115, "Namespace Insufficient Capacity"),
        (0x116, "Namespace Identifier Unavailable"),
        (0x118, "Namespace Already Attached"),
        (0x11a, "Namespace Not Attached"),
        (0x11b, "Thin Provisioning Not Supported"),
        (0x11c, "Controller List Invalid"),
        (0x127, "Namespace Attachment Limit Exceeded"),
        (0x129, "I/O Command Set Not Supported"),
        (0x12a, "I/O Command Set Not Enabled"),
        (0x12b, "I/O Command Set Combination Rejected"),
        (0x12c, "Invalid I/O Command Set"),
        (0x180, "Connect Incompatible Format"),
        (0x181, "Connect Controller Busy"),
        (0x182, "Connect Invalid Parameters"),
        (0x184, "Connect Invalid Host"),
        (0x185, "Invalid Queue Type"),
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
        (0x285, "Compare Failure"),
        (0x370, "Host Pathing Error"),
    ];

    #[test]
    fn status_codes_have_the_specifications_numbers_and_names() {
        for (code, name) in SPECIFIED {
            assert_eq!(format!("{}", Status(code)), name);
        }
        let all: BTreeSet<u16> = Status::all().map(|status| status.0).collect();
        assert_eq!(all, SPECIFIED.map(|(code, _)| code).into());
        let constants = include_str!("status.rs").matches(": Self = Self(0x").count();
        assert_eq!(constants, all.len() + 1, "each has a name; this line is one more");
    }

    #[test]
    fn a_code_of_another_type_is_another_status() {
        assert_eq!(format!("{:?}", Status(0x187)), "status 187h");
        assert!(!Status(0x300).is_success(), "code 00h of type 3 is a failure");
        assert!(Status::SUCCESS.is_success());
    }
}
