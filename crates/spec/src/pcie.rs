//! Commands of hosts on PCIe: queues in host memory, and where the data of a command is there.

use crate::admin::{high_half, low_half};
use crate::sgl::PSDT_MASK;
use crate::{AdminOpcode, Command};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// CDW11 bit 0 of both Create commands: the queue is contiguous in memory (PC).
const CONTIGUOUS: u32 = 1 << 0;
/// CDW11 bit 1 of Create I/O Completion Queue (IEN).
const INTERRUPTS: u32 = 1 << 1;

/// How a command names its data: PSDT (Base 2.1, Common Command Format).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPointerKind {
    /// 00b: two PRP entries.
    Prp,
    /// 01b and 10b: an SGL.
    Sgl,
    /// 11b.
    Reserved,
}

/// An SGL descriptor (Base 2.1, SGL descriptor format).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct SglDescriptor {
    /// Address of the data, or of further descriptors.
    pub address: U64,
    /// Bytes of them.
    pub len: U32,
    reserved: [u8; 3],
    /// Descriptor type in bits 7:4, sub type in bits 3:0.
    pub identifier: u8,
}

const _: () = assert!(size_of::<SglDescriptor>() == 16, "an SGL descriptor has 16 bytes");

impl SglDescriptor {
    /// Data at an address.
    pub const DATA_BLOCK: u8 = 0x00;
    /// Data for the host that is thrown away.
    pub const BIT_BUCKET: u8 = 0x10;
    /// Further descriptors, the last of which points to others.
    pub const SEGMENT: u8 = 0x20;
    /// Further descriptors, all of data.
    pub const LAST_SEGMENT: u8 = 0x30;

    /// A descriptor of this kind, for `len` bytes from `address` on.
    pub fn new(identifier: u8, address: u64, len: u32) -> Self {
        Self { address: address.into(), len: len.into(), reserved: [0; 3], identifier }
    }
}

/// Queues in host memory (Base 2.1, Create I/O Completion Queue, Create I/O Submission Queue,
/// Delete I/O Completion Queue, Delete I/O Submission Queue and Doorbell Buffer Config commands).
impl Command {
    /// Creates completion queue `id` of `entries` at `address`, which raises the interrupt `vector`
    /// if there is one.
    pub fn create_io_cq(id: u16, entries: u16, address: u64, vector: Option<u16>) -> Self {
        let interrupts =
            vector.map_or(0, |vector| u32::from(vector) << 16 | INTERRUPTS) | CONTIGUOUS;
        let dwords = [queue(id, entries), interrupts, 0, 0, 0, 0];
        Self::admin(AdminOpcode::CREATE_IO_CQ, 0, dwords).with_prp([address, 0])
    }

    /// Creates submission queue `id` of `entries` at `address`, whose completions go to completion
    /// queue `completions`.
    pub fn create_io_sq(id: u16, entries: u16, address: u64, completions: u16) -> Self {
        let completions = u32::from(completions) << 16 | CONTIGUOUS;
        let dwords = [queue(id, entries), completions, 0, 0, 0, 0];
        Self::admin(AdminOpcode::CREATE_IO_SQ, 0, dwords).with_prp([address, 0])
    }

    /// Deletes completion queue `id`.
    pub fn delete_io_cq(id: u16) -> Self {
        Self::admin(AdminOpcode::DELETE_IO_CQ, 0, [id.into(), 0, 0, 0, 0, 0])
    }

    /// Deletes submission queue `id`.
    pub fn delete_io_sq(id: u16) -> Self {
        Self::admin(AdminOpcode::DELETE_IO_SQ, 0, [id.into(), 0, 0, 0, 0, 0])
    }

    /// Names the page where the host writes doorbells, and the page where the controller writes
    /// from which value on it wants to be told of one.
    pub fn doorbell_buffer_config(shadow_doorbells: u64, event_indexes: u64) -> Self {
        Self::admin(AdminOpcode::DOORBELL_BUFFER_CONFIG, 0, [0; 6])
            .with_prp([shadow_doorbells, event_indexes])
    }

    /// The queue that is created or deleted: CDW10 bits 15:0 (QID).
    #[inline]
    pub fn managed_queue_id(&self) -> u16 {
        low_half(self.dword::<10>())
    }

    /// The entries of the queue that is created, 0's based: CDW10 bits 31:16 (QSIZE).
    #[inline]
    pub fn created_queue_size(&self) -> u16 {
        high_half(self.dword::<10>())
    }

    /// True when the queue that is created is contiguous in memory: CDW11 bit 0 (PC).
    #[inline]
    pub fn queue_is_contiguous(&self) -> bool {
        self.dword::<11>() & CONTIGUOUS != 0
    }

    /// True when the completion queue that is created raises interrupts: CDW11 bit 1 (IEN).
    #[inline]
    pub fn queue_interrupts(&self) -> bool {
        self.dword::<11>() & INTERRUPTS != 0
    }

    /// The interrupt vector of the completion queue that is created: CDW11 bits 31:16 (IV).
    #[inline]
    pub fn interrupt_vector(&self) -> u16 {
        high_half(self.dword::<11>())
    }

    /// The completion queue of the submission queue that is created: CDW11 bits 31:16 (CQID).
    #[inline]
    pub fn completion_queue_id(&self) -> u16 {
        high_half(self.dword::<11>())
    }

    /// How the command names its data: CDW0 bits 15:14 (PSDT).
    #[inline]
    pub fn data_pointer_kind(&self) -> DataPointerKind {
        match self.flags & PSDT_MASK {
            0 => DataPointerKind::Prp,
            PSDT_MASK => DataPointerKind::Reserved,
            _ => DataPointerKind::Sgl,
        }
    }

    /// The two PRP entries: CDW6 to CDW9.
    #[inline]
    pub fn prp(&self) -> [u64; 2] {
        let entries: [U64; 2] = zerocopy::transmute!(self.data_pointer);
        entries.map(U64::get)
    }

    /// The same command with its data at these PRP entries.
    #[inline]
    #[must_use]
    pub fn with_prp(mut self, entries: [u64; 2]) -> Self {
        self.flags &= !PSDT_MASK;
        self.data_pointer = zerocopy::transmute!(entries.map(U64::new));
        self
    }

    /// The first SGL descriptor: CDW6 to CDW9.
    #[inline]
    pub fn sgl(&self) -> SglDescriptor {
        zerocopy::transmute!(self.data_pointer)
    }

    /// The same command with this first SGL descriptor.
    #[inline]
    #[must_use]
    pub fn with_sgl(mut self, descriptor: SglDescriptor) -> Self {
        self.flags = self.flags & !PSDT_MASK | crate::sgl::PSDT_SGL;
        self.data_pointer = zerocopy::transmute!(descriptor);
        self
    }
}

/// CDW10 of both Create commands. At least 1 entry.
fn queue(id: u16, entries: u16) -> u32 {
    u32::from(entries - 1) << 16 | u32::from(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{counting, entry};

    #[test]
    fn commands_of_queues_have_the_specifications_bytes() {
        // CDW10: QID 15:0, QSIZE 31:16 0's based. CDW11: PC 0, IEN 1, IV or CQID 31:16. PRP1 is in
        // bytes 31:24, PRP2 in bytes 39:32. Linux creates queue 1 of 1,024 entries so.
        let address: (usize, &[u8]) = (24, &[0, 0x10, 0x32, 0x54]);
        let expected = entry(&[(0, &[0x05]), address, (40, &[1, 0, 0xff, 0x03, 0x03, 0, 1, 0])]);
        assert_eq!(Command::create_io_cq(1, 1_024, 0x5432_1000, Some(1)).as_bytes(), expected);
        let expected = entry(&[(0, &[0x05]), address, (40, &[1, 0, 0xff, 0x03, 0x01, 0, 0, 0])]);
        assert_eq!(Command::create_io_cq(1, 1_024, 0x5432_1000, None).as_bytes(), expected);
        let expected = entry(&[(0, &[0x01]), address, (40, &[2, 0, 0x1f, 0, 0x01, 0, 3, 0])]);
        assert_eq!(Command::create_io_sq(2, 32, 0x5432_1000, 3).as_bytes(), expected);
        assert_eq!(Command::delete_io_sq(7).as_bytes(), entry(&[(40, &[7])]));
        assert_eq!(Command::delete_io_cq(7).as_bytes(), entry(&[(0, &[0x04]), (40, &[7])]));
        let expected = entry(&[(0, &[0x7c]), address, (32, &[0, 0x20])]);
        assert_eq!(Command::doorbell_buffer_config(0x5432_1000, 0x2000).as_bytes(), expected);
    }

    #[test]
    fn accessors_read_each_field_from_the_specifications_place() {
        let command = counting();
        assert_eq!(command.managed_queue_id(), 0x2a29);
        assert_eq!(command.created_queue_size(), 0x2c2b);
        assert_eq!(command.interrupt_vector(), 0x302f);
        assert_eq!(command.completion_queue_id(), 0x302f);
        assert!(command.queue_is_contiguous() && !command.queue_interrupts());
        assert_eq!(command.prp(), [0x201f_1e1d_1c1b_1a19, 0x2827_2625_2423_2221]);
        let sgl = command.sgl();
        assert_eq!((sgl.address.get(), sgl.len.get()), (0x201f_1e1d_1c1b_1a19, 0x2423_2221));
        assert_eq!(sgl.identifier, 0x28);
    }

    #[test]
    fn data_pointers_of_both_kinds_come_back() {
        let command = counting();
        let by_prp = command.with_prp([1, 2]);
        assert_eq!((by_prp.prp(), by_prp.data_pointer_kind()), ([1, 2], DataPointerKind::Prp));
        let sgl = SglDescriptor::new(SglDescriptor::LAST_SEGMENT, 0x1234, 32);
        let by_sgl = command.with_sgl(sgl);
        assert_eq!((by_sgl.sgl(), by_sgl.data_pointer_kind()), (sgl, DataPointerKind::Sgl));
        let mut command = command;
        command.flags = 0xc0;
        assert_eq!(command.data_pointer_kind(), DataPointerKind::Reserved);
        command.flags = 0x80;
        assert_eq!(command.data_pointer_kind(), DataPointerKind::Sgl);
    }
}
