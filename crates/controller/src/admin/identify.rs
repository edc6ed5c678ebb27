//! The Identify command (Base 2.1, KV 1.0d, NVM 1.1 and ZNS 1.1a, Identify command).

mod block;
mod controller;
mod kv;
mod zoned;

use super::delivery::delivered;
use super::sharing::{ACCESS_GROUP, SHARED};
use crate::completion::Executed;
use crate::fabrics::{Association, Service, Subsystem};
use crate::namespace::{NAMESPACES_MAX, Namespace, NamespaceInUse};
use spec::{
    Cns, Command, CommandSet, ControllerList, IdentifyNamespace, IndependentNamespace,
    IoCommandSets, NamespaceDescriptor, NamespaceDescriptors, NamespaceList, NvmController,
    NvmNamespace, Status, ZonedController, ZonedNamespace,
};
use std::ops::Deref;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// First of the ids that name no single namespace.
const NSID_SPECIAL: u32 = 0xffff_fffe;

/// Id of all namespaces: selects their common values.
const NSID_ALL: u32 = 0xffff_ffff;

/// The I/O command sets of namespaces.
const SETS: [CommandSet; 3] = [CommandSet::NVM, CommandSet::KEY_VALUE, CommandSet::ZONED];

pub(super) fn identify(association: &Association, command: &Command) -> Executed {
    let subsystem = match &association.service {
        Service::Storage(subsystem) => subsystem,
        Service::Discovery(_) if command.cns() == Cns::CONTROLLER => {
            let controller = controller::of_discovery(association);
            return delivered(command, controller.as_bytes());
        }
        Service::Discovery(_) => return Err(Status::INVALID_FIELD),
    };
    let asked = Asked { association, subsystem, command };
    let set = command.csi();
    match command.cns() {
        Cns::CONTROLLER => {
            let controller = controller::of_storage(subsystem, association);
            delivered(command, controller.as_bytes())
        }
        Cns::NAMESPACE => asked.in_blocks(|nsid| association.namespace(nsid)),
        Cns::ALLOCATED_NAMESPACE => asked.in_blocks(|nsid| subsystem.device.namespace(nsid)),
        Cns::NAMESPACE_DESCRIPTORS => asked.descriptors(),
        Cns::NAMESPACE_OF_SET => asked.in_terms_of(set, |nsid| association.namespace(nsid)),
        Cns::ALLOCATED_NAMESPACE_OF_SET => {
            asked.in_terms_of(set, |nsid| subsystem.device.namespace(nsid))
        }
        Cns::FORMAT_OF_SET if command.cns_specific_id() == 0 => asked.format_of(set),
        Cns::INDEPENDENT_NAMESPACE => asked.independent(),
        Cns::ALLOCATED_NAMESPACES => asked.list(|_| true),
        Cns::CONTROLLERS => asked.controllers(|_| true),
        Cns::CONTROLLERS_OF_NAMESPACE => {
            let nsid = command.nsid();
            subsystem.device.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
            asked.controllers(|controller| controller.namespace(nsid).is_some())
        }
        Cns::ACTIVE_NAMESPACES => asked.list(|nsid| association.namespace(nsid).is_some()),
        Cns::ACTIVE_NAMESPACES_OF_SET if SETS.contains(&set) => {
            let has_set = |namespace: Arc<NamespaceInUse>| namespace.command_set() == set;
            asked.list(|nsid| association.namespace(nsid).is_some_and(has_set))
        }
        Cns::ALLOCATED_NAMESPACES_OF_SET if SETS.contains(&set) => {
            let has_set = |namespace: Arc<NamespaceInUse>| namespace.command_set() == set;
            asked.list(|nsid| subsystem.device.namespace(nsid).is_some_and(has_set))
        }
        // Hosts request these whatever the namespaces are; that of KV 1.0d has no fields either.
        Cns::CONTROLLER_OF_SET if [CommandSet::NVM, CommandSet::KEY_VALUE].contains(&set) => {
            delivered(command, NvmController::default().as_bytes())
        }
        Cns::CONTROLLER_OF_SET if set == CommandSet::ZONED && asked.has(set) => {
            delivered(command, ZonedController::default().as_bytes())
        }
        Cns::IO_COMMAND_SETS => {
            delivered(command, IoCommandSets::of(&subsystem.command_sets()).as_bytes())
        }
        // An unsupported set is an invalid field too: at least one host rejects a controller that
        // answers Invalid I/O Command Set.
        _ => Err(Status::INVALID_FIELD),
    }
}

/// An Identify command and its context.
struct Asked<'a> {
    association: &'a Association,
    subsystem: &'a Subsystem,
    command: &'a Command,
}

impl Asked<'_> {
    /// Returns whether a namespace has this command set.
    fn has(&self, set: CommandSet) -> bool {
        self.subsystem.command_sets().contains(&set)
    }

    /// Returns the requested namespace. `None` if the id is valid and the host has no such
    /// namespace.
    fn namespace(&self) -> Result<Option<Arc<NamespaceInUse>>, Status> {
        self.id().map(|nsid| self.association.namespace(nsid))
    }

    /// Returns the requested id, if it is valid.
    fn id(&self) -> Result<u32, Status> {
        let nsid = self.command.nsid();
        if (1..=NAMESPACES_MAX).contains(&nsid) { Ok(nsid) } else { Err(Status::INVALID_NAMESPACE) }
    }

    /// Answers CNS 00h and 11h, for namespaces of every set.
    fn in_blocks(&self, find: impl Fn(u32) -> Option<Arc<NamespaceInUse>>) -> Executed {
        let described = if self.command.nsid() == NSID_ALL {
            block::of_all()
        } else {
            let nguid = self.subsystem.nguid(self.command.nsid());
            match find(self.id()?).as_deref().map(Deref::deref) {
                Some(Namespace::Kv(store)) => kv::in_blocks(store, nguid),
                Some(Namespace::Block(blocks)) => block::namespace(&blocks.shape(), nguid),
                Some(Namespace::Zoned(zones)) => zoned::in_blocks(&zones.shape(), nguid),
                None => IdentifyNamespace::default(),
            }
        };
        delivered(self.command, described.as_bytes())
    }

    fn descriptors(&self) -> Executed {
        let nsid = self.command.nsid();
        let namespace = self.namespace()?.ok_or(Status::INVALID_NAMESPACE)?;
        let descriptors = [
            NamespaceDescriptor::Nguid(self.subsystem.nguid(nsid)),
            NamespaceDescriptor::Uuid(self.subsystem.uuid(nsid)),
            NamespaceDescriptor::CommandSet(namespace.command_set()),
        ];
        delivered(self.command, NamespaceDescriptors::new(&descriptors).as_bytes())
    }

    /// Answers CNS 05h and 1Bh. Zones are blocks too.
    fn in_terms_of(
        &self,
        set: CommandSet,
        find: impl Fn(u32) -> Option<Arc<NamespaceInUse>>,
    ) -> Executed {
        if set != CommandSet::NVM && !self.has(set) {
            return Err(Status::INVALID_FIELD);
        }
        match (find(self.id()?).as_deref().map(Deref::deref), set) {
            (Some(Namespace::Kv(store)), CommandSet::KEY_VALUE) => {
                let nguid = self.subsystem.nguid(self.command.nsid());
                delivered(
                    self.command,
                    kv::namespace(store, self.association.limits, nguid).as_bytes(),
                )
            }
            (Some(Namespace::Zoned(zones)), CommandSet::ZONED) => {
                delivered(self.command, zoned::namespace(zones).as_bytes())
            }
            (Some(Namespace::Block(_) | Namespace::Zoned(_)), CommandSet::NVM) | (None, _) => {
                delivered(self.command, NvmNamespace::default().as_bytes())
            }
            (Some(_), _) => Err(Status::INVALID_FIELD),
        }
    }

    /// Answers CNS 0Ah for format 0.
    fn format_of(&self, set: CommandSet) -> Executed {
        match set {
            CommandSet::KEY_VALUE => {
                let store = self.subsystem.device.kv().ok_or(Status::INVALID_FIELD)?;
                delivered(self.command, kv::format(store, self.association.limits).as_bytes())
            }
            CommandSet::NVM => delivered(self.command, NvmNamespace::default().as_bytes()),
            CommandSet::ZONED if self.has(set) => {
                delivered(self.command, ZonedNamespace::default().as_bytes())
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    fn independent(&self) -> Executed {
        let ready = |_| IndependentNamespace {
            sharing: SHARED,
            ana_group: ACCESS_GROUP.into(),
            status: IndependentNamespace::READY,
            ..IndependentNamespace::default()
        };
        let namespace = self.namespace()?.map(ready);
        delivered(self.command, namespace.unwrap_or_default().as_bytes())
    }

    /// Lists the controllers that are `wanted`, from the requested id on.
    fn controllers(&self, wanted: impl Fn(&Association) -> bool) -> Executed {
        let from = self.command.controller_id();
        let mut controllers = self.subsystem.associations.all();
        controllers.retain(|controller| controller.id >= from && wanted(controller));
        let list: ControllerList = controllers.iter().map(|controller| controller.id).collect();
        delivered(self.command, list.as_bytes())
    }

    /// Lists the namespaces that are `wanted`, after the requested id.
    fn list(&self, wanted: impl Fn(u32) -> bool) -> Executed {
        let after = self.command.nsid();
        if after >= NSID_SPECIAL {
            return Err(Status::INVALID_NAMESPACE);
        }
        let ids = self.subsystem.device.namespace_ids();
        let namespaces: NamespaceList =
            ids.into_iter().filter(|&nsid| nsid > after && wanted(nsid)).collect();
        delivered(self.command, namespaces.as_bytes())
    }
}
