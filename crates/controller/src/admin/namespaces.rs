//! Namespace Management, Namespace Attachment and Format NVM (Base 2.1).

use super::sharing::ACCESS_GROUP;
use crate::completion::{Executed, Outcome};
use crate::fabrics::{Association, Service, Subsystem, Subsystems, brought};
use crate::host_queue::Capsule;
use spec::{
    AdminOpcode, Command, CommandSet, ControllerList, FormatOptions, IdentifyNamespace,
    NamespaceAttachment, NamespaceManagement, Status,
};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Id of all namespaces.
const NSID_ALL: u32 = 0xffff_ffff;

/// Returns whether a command is one of these, which may wait for the medium.
pub(super) const fn are_of(opcode: AdminOpcode) -> bool {
    matches!(
        opcode,
        AdminOpcode::NAMESPACE_MANAGEMENT
            | AdminOpcode::NAMESPACE_ATTACHMENT
            | AdminOpcode::FORMAT_NVM
    )
}

pub(super) async fn execute(
    subsystems: &Subsystems,
    association: &Association,
    capsule: &Capsule,
) -> Executed {
    let Service::Storage(subsystem) = &association.service else {
        return Err(Status::INVALID_OPCODE);
    };
    let _no_sanitize = subsystem.device.sanitizing.begin_change()?;
    let command = &capsule.command;
    let siblings = subsystems.of_device(&subsystem.device);
    let change = Change { association, subsystem, siblings };
    match command.admin_opcode() {
        AdminOpcode::NAMESPACE_MANAGEMENT => match command.namespace_management() {
            Some(NamespaceManagement::Create) => create(subsystem, capsule).await,
            Some(NamespaceManagement::Delete) => change.delete(command).await,
            None => Err(Status::INVALID_FIELD),
        },
        AdminOpcode::NAMESPACE_ATTACHMENT => change.attach(capsule),
        _ => format(association, subsystem, command).await,
    }
}

async fn create(subsystem: &Subsystem, capsule: &Capsule) -> Executed {
    let wanted: IdentifyNamespace = structure(capsule)?;
    if wanted.size != wanted.capacity {
        return Err(Status::THIN_PROVISIONING_NOT_SUPPORTED);
    }
    if wanted.format != 0 || wanted.protection != 0 {
        return Err(Status::INVALID_FORMAT);
    }
    let set = capsule.command.csi();
    let has_size = wanted.size.get() > 0 || set == CommandSet::KEY_VALUE;
    if !has_size || wanted.ana_group.get() > ACCESS_GROUP {
        return Err(Status::INVALID_FIELD);
    }
    let nsid = subsystem.device.create_namespace(set, wanted.size.get()).await?;
    Ok(Outcome { result: nsid.into(), ..Outcome::done() })
}

/// The context of a command that creates, deletes, formats or attaches namespaces.
struct Change<'a> {
    association: &'a Association,
    subsystem: &'a Subsystem,
    /// All subsystems of the device, this one included.
    siblings: Vec<Arc<Subsystem>>,
}

impl Change<'_> {
    async fn delete(&self, command: &Command) -> Executed {
        let device = &self.subsystem.device;
        let ids = match command.nsid() {
            NSID_ALL => device.namespace_ids(),
            nsid => vec![nsid],
        };
        for nsid in ids {
            let losers = self.controllers_with(nsid);
            device.delete_namespace(nsid).await?;
            device.attachments.end(nsid);
            self.tell(nsid, &losers);
        }
        Ok(Outcome::done())
    }

    /// Attaches a namespace to the hosts of controllers, or detaches it.
    fn attach(&self, capsule: &Capsule) -> Executed {
        let what = capsule.command.namespace_attachment().ok_or(Status::INVALID_FIELD)?;
        let list: ControllerList = structure(capsule)?;
        let (nsid, device) = (capsule.command.nsid(), &self.subsystem.device);
        device.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
        let found = list.ids().ok_or(Status::CONTROLLER_LIST_INVALID)?;
        let found: Option<Vec<_>> = found.map(|id| self.subsystem.associations.get(id)).collect();
        let controllers = found.filter(|controllers| !controllers.is_empty());
        let controllers = controllers.ok_or(Status::CONTROLLER_LIST_INVALID)?;
        let hosts: Vec<_> = controllers.iter().map(|controller| &controller.host).collect();
        let is_attached = what == NamespaceAttachment::Attach;
        if hosts.iter().any(|host| device.attachments.are_of(nsid, host) == is_attached) {
            return Err(match what {
                NamespaceAttachment::Attach => Status::NAMESPACE_ALREADY_ATTACHED,
                NamespaceAttachment::Detach => Status::NAMESPACE_NOT_ATTACHED,
            });
        }
        let losers = self.controllers_with(nsid);
        if !device.attachments.set(nsid, &hosts, is_attached) {
            return Err(Status::NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED);
        }
        let winners = self.controllers_with(nsid);
        self.tell(nsid, if is_attached { &winners } else { &losers });
        Ok(Outcome::done())
    }

    fn controllers_with(&self, nsid: u32) -> Vec<Arc<Association>> {
        self.siblings.iter().flat_map(|subsystem| subsystem.controllers_with(nsid)).collect()
    }

    /// Reports an added or removed namespace to controllers, except that of the changing host.
    fn tell(&self, nsid: u32, controllers: &[Arc<Association>]) {
        let is_other =
            |other: &&Arc<Association>| !std::ptr::eq(&raw const ***other, self.association);
        controllers.iter().filter(is_other).for_each(|other| other.namespace_changed(nsid));
    }
}

async fn format(association: &Association, subsystem: &Subsystem, command: &Command) -> Executed {
    let options = command.format_options();
    if options.format != 0 || options.protection != 0 {
        return Err(Status::INVALID_FORMAT);
    }
    // Both settings do the same: formatted data is unreadable even without a secure erase.
    let erases = [FormatOptions::NO_SECURE_ERASE, FormatOptions::ERASE_USER_DATA];
    if !erases.contains(&options.secure_erase) {
        return Err(Status::INVALID_FIELD);
    }
    let ids = match command.nsid() {
        NSID_ALL => subsystem.device.namespace_ids(),
        nsid => vec![nsid],
    };
    for nsid in ids {
        if association.namespace(nsid).is_some() || command.nsid() != NSID_ALL {
            association.namespace(nsid).ok_or(Status::INVALID_NAMESPACE)?;
            subsystem.device.format_namespace(nsid).await?;
        }
    }
    Ok(Outcome::done())
}

/// Decodes the data of a command as a structure of the specification.
fn structure<T: FromBytes>(capsule: &Capsule) -> Result<T, Status> {
    let data = brought(&capsule.command, capsule.data.clone())?;
    let bytes = data.bytes().unwrap_or_default();
    let (structure, _) = T::read_from_prefix(bytes).map_err(|_| Status::DATA_SGL_LENGTH_INVALID)?;
    Ok(structure)
}
