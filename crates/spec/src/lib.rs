//! NVMe as bytes: the command sets Key Value, NVM (blocks) and Zoned Namespace, admin and fabrics
//! commands, completions, status codes, and the data structures that commands move.
//!
//! # How it works
//! 1. A host builds a [`Command`], the 64-byte submission queue entry, with [`Command::store`],
//!    [`Command::write`], [`Command::zone_append`] and their siblings. On a fabric it says with a
//!    [`DataPointer`] where the data is.
//! 2. A controller knows from the namespace which set a command is of, reads it by the accessors of
//!    that set, and answers with a [`Completion`] that carries a [`Status`].
//! 3. The data of a List reply is written by [`ListWriter`] and read by [`ListReader`], that of a
//!    report of zones by [`ZoneReportWriter`] and [`ZoneReport`]. A Dataset Management brings
//!    [`BlockRange`]s, a Copy brings [`CopyRange`]s.
//! 4. On an admin queue a command is what its [`AdminOpcode`] says, on any queue of a fabric a
//!    fabrics command by its [`FabricsType`]: [`Command::connect`] brings [`ConnectData`], and a
//!    controller is enabled and shut down through each [`Property`]. [`Command::identify`] asks for
//!    a structure by its [`Cns`], [`Command::get_log_page`] for a [`LogPage`],
//!    [`Command::set_features`] changes a [`Feature`]. Structures are filled in by their public
//!    fields: `KvNamespace { size: 4096.into(), ..KvNamespace::default() }`.
//!
//! # Guarantees
//! Every type has the byte layout of the specification, little-endian on every machine, and every
//! bit pattern of the right length is a value of it: decoding never fails and never panics.
//! Nothing here allocates or needs an operating system.
//!
//! # Trusts
//! Builders and writers are given what fits the field (a key of at most 255 bytes, 1 to 65,536
//! blocks, a name of at most 223 bytes), and assert it. Everything read from a command or a
//! structure is what the other side wrote: its meaning is checked by who acts on it.
//!
//! # Not here
//! What a command does (`controller`), keys and values as such (`base`), the PDUs that carry
//! commands over TCP (`nvme-tcp`).
//!
//! Sources, named by command or data structure: NVM Express Base Specification 2.1 ("Base 2.1"),
//! and the command set specifications Key Value 1.0d ("KV 1.0d"), NVM 1.1 ("NVM 1.1") and Zoned
//! Namespace 1.1a ("ZNS 1.1a").

#![no_std]

#[cfg(test)]
extern crate std;

mod admin;
mod async_event;
mod command;
mod completion;
mod fabrics;
mod features;
mod fuse;
mod identify;
mod kv;
mod list;
mod log;
mod namespace_management;
mod nvm;
mod opcode;
mod options;
mod pcie;
mod qualified_name;
mod reserved;
mod sanitize;
mod sgl;
mod status;
mod text;
mod zns;

pub use admin::AdminOpcode;
pub use async_event::{AsyncEvent, AsyncEvents};
pub use command::Command;
pub use completion::Completion;
pub use fabrics::{
    Capabilities, Configuration, ConnectAttributes, ConnectData, ConnectInvalid, ConnectReply,
    ControllerStatus, FabricsType, Property, ReadyTimeouts, Shutdown, ShutdownStatus, Version,
};
pub use features::{
    Feature, FeatureCapabilities, FeatureSelect, HostBehavior, QueueCounts, TemperatureThreshold,
};
pub use fuse::Fuse;
pub use identify::{
    Cns, CommandSet, ControllerList, ControllerType, IDENTIFY_BYTES, IdentifyController,
    IdentifyNamespace, IndependentNamespace, IoCommandSets, KvFormat, KvNamespace, LbaFormat,
    NamespaceDescriptor, NamespaceDescriptors, NamespaceList, NvmController, NvmNamespace,
    PowerState, ZoneFormat, ZonedController, ZonedNamespace,
};
pub use kv::KEY_BYTES_INLINE;
pub use list::{ListError, ListReader, ListWriter};
pub use log::{
    AccessGroup, AccessHeader, AddressFamily, CommandEffects, DiscoveryEntry, DiscoveryHeader,
    Effects, ErrorEntry, FeatureEffects, FeatureScope, FirmwareSlots, LogPage, SanitizeLog,
    SmartLog, SubsystemType, SupportedLogPages, TransportType,
};
pub use namespace_management::{FormatOptions, NamespaceAttachment, NamespaceManagement};
pub use nvm::{BLOCK_RANGE_BYTES, BlockRange, COPY_RANGE_BYTES, CopyRange};
pub use opcode::Opcode;
pub use options::{RetrieveOptions, StoreOptions};
pub use pcie::{DataPointerKind, SglDescriptor};
pub use qualified_name::is_qualified_name;
#[doc(hidden)]
pub use reserved::Reserved;
pub use sanitize::{SanitizeAction, SanitizeOptions};
pub use sgl::{DataPointer, Transfer};
pub use status::Status;
pub use text::{QUALIFIED_NAME_BYTES_MAX, QualifiedName, Text};
pub use zns::{
    ReportedZones, ZONE_DESCRIPTOR_BYTES, ZoneDescriptor, ZoneReport, ZoneReportWriter,
    ZoneSendAction, ZoneState,
};
