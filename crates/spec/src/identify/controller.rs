use crate::reserved::Reserved;
use crate::{QualifiedName, Text};
use zerocopy::little_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What a controller is for: CNTRLTYPE (Base 2.1, Identify Controller data structure).
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
#[repr(transparent)]
pub struct ControllerType(pub u8);

impl ControllerType {
    /// I/O commands on namespaces.
    pub const IO: Self = Self(1);
    /// Says where there are subsystems.
    pub const DISCOVERY: Self = Self(2);
    /// Admin commands alone.
    pub const ADMIN: Self = Self(3);
}

/// One power state (Base 2.1, Power State Descriptor data structure).
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
pub struct PowerState {
    /// Most power in units of 10 mW: MP.
    pub power_max: U16,
    #[doc(hidden)]
    pub reserved_2: Reserved<30>,
}

/// What a controller is: CNS 01h (Base 2.1, Identify Controller data structure).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct IdentifyController {
    /// PCI vendor: VID.
    pub vendor_id: U16,
    /// PCI subsystem vendor: SSVID.
    pub subsystem_vendor_id: U16,
    /// Serial number: SN.
    pub serial_number: Text<20>,
    /// Model number: MN.
    pub model_number: Text<40>,
    /// Firmware revision: FR.
    pub firmware_revision: Text<8>,
    /// Commands of a queue that are good to take at a time, as a power of two: RAB.
    pub arbitration_burst: u8,
    /// IEEE Organizationally Unique Identifier, least significant byte first: IEEE.
    pub oui: [u8; 3],
    /// Bit 0 several ports, bit 1 several controllers, bit 3 Asymmetric Namespace Access. CMIC.
    pub multipath: u8,
    /// Most data of a command in memory pages of the smallest size, as a power of two, 0 for no
    /// limit: MDTS.
    pub transfer_max_log2: u8,
    /// The controller's own id, as its Connect told it: CNTLID.
    pub controller_id: U16,
    /// The version of the specification, as in the property VS: VER.
    pub version: U32,
    /// Microseconds to resume from D3: RTD3R.
    pub resume_latency: U32,
    /// Microseconds to enter D3, or to shut down: RTD3E.
    pub shutdown_latency: U32,
    /// Events that there are, by the bits of [`AsyncEvents`](crate::AsyncEvents): OAES.
    pub async_events: U32,
    /// [`IdentifyController::HOST_ID_128`] and its siblings: CTRATT.
    pub attributes: U32,
    #[doc(hidden)]
    pub reserved_100: Reserved<11>,
    /// What it is for: CNTRLTYPE.
    pub controller_type: ControllerType,
    /// Globally unique identifier of the field replaceable unit: FGUID.
    pub fru_guid: [u8; 16],
    /// Times to wait before a command is retried, in 100 ms: CRDT1 to CRDT3.
    pub retry_delays: [U16; 3],
    #[doc(hidden)]
    pub reserved_134: Reserved<122>,
    /// Optional admin commands: OACS.
    pub optional_admin_commands: U16,
    /// Aborts that may be under way at a time, 0's based: ACL.
    pub abort_limit: u8,
    /// Asynchronous Event Requests that may wait at a time, 0's based: AERL.
    pub async_event_limit: u8,
    /// Bit 0 slot 1 cannot be written, bits 3:1 how many slots there are. FRMW.
    pub firmware_updates: u8,
    /// [`IdentifyController::LOG_EFFECTS`] and its siblings: LPA.
    pub log_page_attributes: u8,
    /// Entries of the error log, 0's based: ELPE.
    pub error_log_entries: u8,
    /// Power states, 0's based: NPSS.
    pub power_states_len: u8,
    /// Vendor specific admin commands: AVSCC.
    pub admin_vendor_commands: u8,
    /// Autonomous power state transitions: APSTA.
    pub power_transitions: u8,
    /// Kelvins from which it is too warm: WCTEMP.
    pub warning_temperature: U16,
    /// Kelvins from which it is far too warm: CCTEMP.
    pub critical_temperature: U16,
    #[doc(hidden)]
    pub reserved_270: Reserved<10>,
    /// Bytes of all namespaces there can be: TNVMCAP.
    pub capacity: U128,
    /// Bytes that no namespace has: UNVMCAP.
    pub unallocated_capacity: U128,
    #[doc(hidden)]
    pub reserved_312: Reserved<8>,
    /// Unit of the keep alive time in 100 ms, 0 for none: KAS.
    pub keep_alive_granularity: U16,
    #[doc(hidden)]
    pub reserved_322: Reserved<6>,
    /// [`IdentifyController::BLOCK_ERASE`] and its siblings: SANICAP.
    pub sanitize: U32,
    #[doc(hidden)]
    pub reserved_332: Reserved<10>,
    /// Seconds that a change of the way to a namespace may take: ANATT.
    pub access_transition_seconds: u8,
    /// [`IdentifyController::ACCESS_OPTIMIZED`] and its sibling: ANACAP.
    pub access_capabilities: u8,
    /// The largest Asymmetric Namespace Access group there can be: ANAGRPMAX.
    pub access_group_max: U32,
    /// How many Asymmetric Namespace Access groups there are: NANAGRPID.
    pub access_groups: U32,
    #[doc(hidden)]
    pub reserved_352: Reserved<160>,
    /// Bytes of a submission queue entry as powers of two: bits 3:0 at least, bits 7:4 at most.
    /// SQES.
    pub submission_entry_sizes: u8,
    /// Bytes of a completion queue entry as powers of two: bits 3:0 at least, bits 7:4 at most.
    /// CQES.
    pub completion_entry_sizes: u8,
    /// Commands that an I/O queue may have under way: MAXCMD.
    pub commands_max: U16,
    /// The largest namespace id there can be: NN.
    pub namespaces_max: U32,
    /// [`IdentifyController::SAVE_AND_SELECT`] and its siblings: ONCS.
    pub optional_commands: U16,
    /// Fused operations: FUSES.
    pub fused_operations: U16,
    /// How Format NVM does: FNA.
    pub format_attributes: u8,
    /// Bit 0 there is a volatile write cache; bits 2:1 what a Flush of all namespaces does. VWC.
    pub volatile_write_cache: u8,
    /// Logical blocks that are written as one, 0's based: AWUN.
    pub atomic_write: U16,
    /// Logical blocks that are written as one whatever fails, 0's based: AWUPF.
    pub atomic_write_power_fail: U16,
    /// Vendor specific I/O commands: ICSVSCC.
    pub io_vendor_commands: u8,
    /// Namespace write protection: NWPC.
    pub write_protection: u8,
    /// Logical blocks that are compared and written as one, 0's based: ACWU.
    pub atomic_compare_write: U16,
    /// Formats of a Copy's source ranges, one bit each: CDFS.
    pub copy_formats: U16,
    /// [`IdentifyController::SGL`] and its siblings: SGLS.
    pub sgl_support: U32,
    /// Namespaces that there can be at a time: MNAN.
    pub allowed_namespaces_max: U32,
    #[doc(hidden)]
    pub reserved_544: Reserved<224>,
    /// The subsystem's name: SUBNQN.
    pub subsystem: QualifiedName,
    #[doc(hidden)]
    pub reserved_1024: Reserved<768>,
    /// Bytes of a command capsule in units of 16, entry and data: IOCCSZ.
    pub command_capsule_size: U32,
    /// Bytes of a response capsule in units of 16: IORCSZ.
    pub response_capsule_size: U32,
    /// Bytes between a capsule's entry and its data in units of 16: ICDOFF.
    pub capsule_data_offset: U16,
    /// Bit 0: the static controller model. FCATT.
    pub fabrics_attributes: u8,
    /// SGL Data Block descriptors in a capsule, 0 for no limit: MSDBD.
    pub capsule_descriptors_max: u8,
    /// Bit 0: [`IdentifyController::DISCONNECT`]. OFCS.
    pub optional_fabrics_commands: U16,
    /// What a discovery controller is: DCTYPE.
    pub discovery_controller_type: u8,
    #[doc(hidden)]
    pub reserved_1807: Reserved<241>,
    /// Power states, the first `power_states_len` + 1 of which mean something: PSD0 to PSD31.
    pub power_states: [PowerState; 32],
    #[doc(hidden)]
    pub vendor_3072: Reserved<1024>,
}

const _: () = assert!(size_of::<PowerState>() == 32, "a power state has 32 bytes");
const _: () =
    assert!(size_of::<IdentifyController>() == 4096, "a structure of Identify has 4,096 bytes");

impl IdentifyController {
    /// Of `multipath`: several ports, which may be on several networks.
    pub const MULTIPLE_PORTS: u8 = 1 << 0;
    /// Of `multipath`: several controllers, as each association of a fabric makes one.
    pub const MULTIPLE_CONTROLLERS: u8 = 1 << 1;
    /// Of `attributes`: host identifiers of 128 bits (HIDS).
    pub const HOST_ID_128: u32 = 1 << 0;
    /// Of `attributes`: any command keeps a host alive (TBKAS).
    pub const TRAFFIC_KEEPS_ALIVE: u32 = 1 << 6;
    /// Of `firmware_updates`: one slot, which cannot be written.
    pub const ONE_FIXED_SLOT: u8 = 1 << 0 | 1 << 1;
    /// Of `log_page_attributes`: the log page of commands supported and effects (CSES).
    pub const LOG_EFFECTS: u8 = 1 << 1;
    /// Of `log_page_attributes`: offsets and lengths of 32 bits in Get Log Page (LPEDS).
    pub const LOG_OFFSETS: u8 = 1 << 2;
    /// Of `log_page_attributes`: log pages 00h, 12h and 13h, and scopes of commands in 05h (MLPS).
    pub const LOG_SUPPORTED: u8 = 1 << 5;
    /// Both entry sizes that a queue of this specification has, 64 bytes: `submission_entry_sizes`.
    pub const SUBMISSION_ENTRY_64: u8 = 0x66;
    /// Both entry sizes that a queue of this specification has, 16 bytes: `completion_entry_sizes`.
    pub const COMPLETION_ENTRY_16: u8 = 0x44;
    /// Of `multipath`: Asymmetric Namespace Access.
    pub const ASYMMETRIC_ACCESS: u8 = 1 << 3;
    /// Of `access_capabilities`: namespaces are reported as reached in the best way.
    pub const ACCESS_OPTIMIZED: u8 = 1 << 0;
    /// Of `access_capabilities`: the group of a namespace stays while it is attached.
    pub const ACCESS_GROUP_STAYS: u8 = 1 << 6;
    /// Of `optional_admin_commands`: Format NVM (FNVMS).
    pub const FORMAT: u16 = 1 << 1;
    /// Of `optional_admin_commands`: Namespace Management and Namespace Attachment (NMS).
    pub const NAMESPACE_MANAGEMENT: u16 = 1 << 3;
    /// Of `optional_admin_commands`: Doorbell Buffer Config (DBCS).
    pub const DOORBELL_BUFFER: u16 = 1 << 8;
    /// Of `sanitize`: all blocks can be erased (BES).
    pub const BLOCK_ERASE: u32 = 1 << 1;
    /// Of `sanitize`: what was erased is deallocated whatever the host asks (NDI).
    pub const NO_DEALLOCATE_INHIBITED: u32 = 1 << 29;
    /// Of `sanitize`: nothing is done to the medium after the end (NODMMAS 01b).
    pub const NOT_MODIFIED_LATER: u32 = 0b01 << 30;
    /// Of `optional_commands`: Compare (CMPS).
    pub const COMPARE: u16 = 1 << 0;
    /// Of `optional_commands`: Dataset Management (DSMS).
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Of `optional_commands`: Write Zeroes (WZS).
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// Of `optional_commands`: Save of Set Features, Select of Get Features (SSFS).
    pub const SAVE_AND_SELECT: u16 = 1 << 4;
    /// Of `optional_commands`: Verify (VERS).
    pub const VERIFY: u16 = 1 << 7;
    /// Of `optional_commands`: Copy (CPYS).
    pub const COPY: u16 = 1 << 8;
    /// Of `fused_operations`: Compare and Write (FCWS).
    pub const COMPARE_AND_WRITE: u16 = 1 << 0;
    /// Of `volatile_write_cache`: there is one.
    pub const WRITE_CACHE: u8 = 1 << 0;
    /// Of `volatile_write_cache`: a Flush of namespace `FFFFFFFFh` flushes all.
    pub const FLUSH_ALL: u8 = 0b11 << 1;
    /// Of `sgl_support`: SGLs of any alignment.
    pub const SGL: u32 = 0b01;
    /// Of `sgl_support`: SGLs that are longer than the data (SLLS).
    pub const SGL_LONGER: u32 = 1 << 18;
    /// Of `sgl_support`: the address of a Data Block may be an offset into the capsule (SAOS).
    pub const SGL_OFFSET: u32 = 1 << 20;
    /// Of `sgl_support`: Transport SGL Data Blocks (TSDBDS).
    pub const SGL_TRANSPORT: u32 = 1 << 21;
    /// Of `optional_fabrics_commands`: Disconnect.
    pub const DISCONNECT: u16 = 1 << 0;
}

/// What a controller is in terms of the NVM command set: CNS 06h, CSI 00h (NVM 1.1, I/O Command Set
/// Specific Identify Controller data structure).
#[derive(
    Clone, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct NvmController {
    /// Most data of a Verify in memory pages, as a power of two, 0 for no limit: VSL.
    pub verify_max_log2: u8,
    /// Most data of a Write Zeroes in memory pages, as a power of two, 0 for no limit: WZSL.
    pub write_zeroes_max_log2: u8,
    /// Most data of a Write Uncorrectable in memory pages, as a power of two, 0 for no limit: WUSL.
    pub write_uncorrectable_max_log2: u8,
    /// Ranges of a Dataset Management at most, 0 for no limit: DMRL.
    pub deallocate_ranges_max: u8,
    /// Logical blocks of a range of a Dataset Management at most, 0 for no limit: DMRSL.
    pub deallocate_range_blocks_max: U32,
    #[doc(hidden)]
    pub reserved_8: Reserved<4088>,
}

const _: () =
    assert!(size_of::<NvmController>() == 4096, "a structure of Identify has 4,096 bytes");

#[cfg(test)]
mod tests;
