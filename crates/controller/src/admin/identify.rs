//! The Identify command (Base 2.1 and KV 1.0d, Identify command).

use super::{delivered, identify_controller};
use crate::completion::Executed;
use crate::fabrics::{Association, Service, Subsystem};
use base::limits::KEY_BYTES_INLINE;
use engine::Store;
use spec::{
    Cns, Command, CommandSet, IdentifyNamespace, IndependentNamespace, IoCommandSets, KvFormat,
    KvNamespace, LbaFormat, NamespaceDescriptor, NamespaceDescriptors, NamespaceList,
    NvmController, Status,
};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Ids from here on name no single namespace.
const NSID_SPECIAL: u32 = 0xffff_fffe;

/// The size of a block in terms of which hosts of no particular command set count a namespace.
const NOMINAL_BLOCK_LOG2: u8 = 9;

/// More than one controller may have a namespace: each association has a controller of its own.
const SHARED: u8 = 1;

pub(super) fn identify(association: &Association, command: &Command) -> Executed {
    let subsystem = match &association.service {
        Service::Storage(subsystem) => subsystem,
        Service::Discovery(_) if command.cns() == Cns::CONTROLLER => {
            let controller = identify_controller::of_discovery(association.id);
            return delivered(command, controller.as_bytes());
        }
        Service::Discovery(_) => return Err(Status::INVALID_FIELD),
    };
    let (nsid, set) = (command.nsid(), command.csi());
    match command.cns() {
        Cns::CONTROLLER => {
            let controller = identify_controller::of_storage(subsystem, association.id);
            delivered(command, controller.as_bytes())
        }
        Cns::NAMESPACE => {
            let namespace = of(subsystem, nsid)?.map(|store| as_blocks(store));
            delivered(command, namespace.unwrap_or_default().as_bytes())
        }
        Cns::NAMESPACE_DESCRIPTORS => {
            of(subsystem, nsid)?.ok_or(Status::INVALID_NAMESPACE)?;
            let descriptors = [
                NamespaceDescriptor::Uuid(subsystem.uuid(nsid)),
                NamespaceDescriptor::CommandSet(CommandSet::KEY_VALUE),
            ];
            delivered(command, NamespaceDescriptors::new(&descriptors).as_bytes())
        }
        Cns::NAMESPACE_OF_SET if set == CommandSet::KEY_VALUE => {
            let namespace = of(subsystem, nsid)?.map(|store| as_pairs(store));
            delivered(command, namespace.unwrap_or_default().as_bytes())
        }
        Cns::FORMAT_OF_SET if set == CommandSet::KEY_VALUE && command.cns_specific_id() == 0 => {
            let store = subsystem.device.kv().ok_or(Status::INVALID_FIELD)?;
            let formats = KvNamespace { formats: formats(store), ..KvNamespace::default() };
            delivered(command, formats.as_bytes())
        }
        Cns::INDEPENDENT_NAMESPACE => {
            let ready = |_: &Arc<Store>| IndependentNamespace {
                sharing: SHARED,
                status: IndependentNamespace::READY,
                ..IndependentNamespace::default()
            };
            let namespace = of(subsystem, nsid)?.map(ready);
            delivered(command, namespace.unwrap_or_default().as_bytes())
        }
        Cns::ACTIVE_NAMESPACES => list(subsystem, command),
        Cns::ACTIVE_NAMESPACES_OF_SET if set == CommandSet::KEY_VALUE => list(subsystem, command),
        Cns::ACTIVE_NAMESPACES_OF_SET if set == CommandSet::NVM => {
            delivered(command, NamespaceList::default().as_bytes())
        }
        // Hosts ask for these whatever the namespaces are; that of KV 1.0d has no field either.
        Cns::CONTROLLER_OF_SET if [CommandSet::NVM, CommandSet::KEY_VALUE].contains(&set) => {
            delivered(command, NvmController::default().as_bytes())
        }
        Cns::IO_COMMAND_SETS => {
            delivered(command, IoCommandSets::of(&[CommandSet::KEY_VALUE]).as_bytes())
        }
        // A set that is not there is an invalid field too: at least one host gives a controller up
        // that answers Invalid I/O Command Set.
        _ => Err(Status::INVALID_FIELD),
    }
}

/// The store of a namespace; `None` if there can be one of this id and is none to see.
fn of(subsystem: &Subsystem, nsid: u32) -> Result<Option<&Arc<Store>>, Status> {
    if (1..=subsystem.namespaces()).contains(&nsid) {
        return Ok(subsystem.active(nsid));
    }
    Err(Status::INVALID_NAMESPACE)
}

fn list(subsystem: &Subsystem, command: &Command) -> Executed {
    if command.nsid() >= NSID_SPECIAL {
        return Err(Status::INVALID_NAMESPACE);
    }
    let namespaces: NamespaceList = subsystem.active_after(command.nsid()).collect();
    delivered(command, namespaces.as_bytes())
}

/// A key-value namespace for hosts that want to know the size of every namespace in blocks, and
/// leave out those that have none.
fn as_blocks(store: &Store) -> IdentifyNamespace {
    let blocks = |bytes: u64| bytes >> NOMINAL_BLOCK_LOG2;
    let size = blocks(store.capacity_bytes()).max(1);
    let mut namespace = IdentifyNamespace {
        size: size.into(),
        capacity: size.into(),
        utilization: blocks(store.usage().values.bytes).min(size).into(),
        sharing: SHARED,
        capacity_bytes: u128::from(store.capacity_bytes()).into(),
        ..IdentifyNamespace::default()
    };
    namespace.formats[0] =
        LbaFormat { block_bytes_log2: NOMINAL_BLOCK_LOG2, ..LbaFormat::default() };
    namespace
}

/// A key-value namespace. All of a device share one capacity, and each has all of it.
fn as_pairs(store: &Store) -> KvNamespace {
    KvNamespace {
        size: store.capacity_bytes().into(),
        utilization: store.usage().values.bytes.into(),
        sharing: SHARED,
        formats: formats(store),
        ..KvNamespace::default()
    }
}

fn formats(store: &Store) -> [KvFormat; 16] {
    let mut formats = [KvFormat::default(); 16];
    let key_bytes_max = u16::try_from(KEY_BYTES_INLINE).expect("16 fit");
    formats[0] = KvFormat {
        key_bytes_max: key_bytes_max.into(),
        value_bytes_max: store.value_bytes_max().into(),
        ..KvFormat::default()
    };
    formats
}
