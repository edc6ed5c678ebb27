//! The Get Log Page command (Base 2.1, Get Log Page command).

use super::delivery::delivered;
use super::vendor::Asked;
use super::{asymmetric_access, features, health, vendor};
use crate::completion::Executed;
use crate::fabrics::{Association, Service, Subsystem, Subsystems, TransportModel};
use crate::io_command;
use crate::span::TRANSFER_BYTES_MAX;
use spec::{
    AdminOpcode, Command, CommandEffects, CommandSet, Effects, FirmwareSlots, LogPage, Status,
    SupportedLogPages,
};
use zerocopy::IntoBytes;

/// The log pages of a controller of a subsystem, without those of `vendor`.
const STORAGE_PAGES: [LogPage; 9] = [
    LogPage::SUPPORTED,
    LogPage::ERRORS,
    LogPage::SMART,
    LogPage::FIRMWARE_SLOTS,
    LogPage::CHANGED_NAMESPACES,
    LogPage::COMMAND_EFFECTS,
    LogPage::ASYMMETRIC_ACCESS,
    LogPage::FEATURE_EFFECTS,
    LogPage::SANITIZE,
];

/// The log pages of a discovery controller.
const DISCOVERY_PAGES: [LogPage; 5] = [
    LogPage::SUPPORTED,
    LogPage::ERRORS,
    LogPage::COMMAND_EFFECTS,
    LogPage::FEATURE_EFFECTS,
    LogPage::DISCOVERY,
];

pub(super) fn get(
    subsystems: &Subsystems,
    association: &Association,
    command: &Command,
) -> Executed {
    let bytes = u32::try_from(command.log_page_bytes()).unwrap_or(u32::MAX);
    let is_whole = command.log_page_offset().is_multiple_of(4);
    if bytes > TRANSFER_BYTES_MAX || command.log_page_offset_is_index() || !is_whole {
        return Err(Status::INVALID_FIELD);
    }
    let page = page(subsystems, association, command)?;
    let offset = usize::try_from(command.log_page_offset()).unwrap_or(usize::MAX);
    let rest = page.get(offset..).ok_or(Status::INVALID_FIELD)?;
    // Bytes after the end of a page are zeros.
    let mut part = vec![0; bytes as usize];
    let len = rest.len().min(part.len());
    part[..len].copy_from_slice(&rest[..len]);
    let answer = delivered(command, &part)?;
    if !command.retains_event() {
        if command.log_page() == LogPage::CHANGED_NAMESPACES {
            association.changes.clear();
        }
        association.events.read(command.log_page());
    }
    Ok(answer)
}

fn page(
    subsystems: &Subsystems,
    association: &Association,
    command: &Command,
) -> Result<Vec<u8>, Status> {
    match (&association.service, command.log_page()) {
        (_, LogPage::ERRORS) => Ok(association.errors.page()),
        (_, LogPage::FEATURE_EFFECTS) => Ok(features::effects(association).as_bytes().to_vec()),
        (Service::Storage(subsystem), other) => {
            match vendor::PAGES.iter().find(|page| page.id == other) {
                Some(page) => (page.read)(&Asked { association, subsystem, subsystems, command }),
                None => page_of_storage(association, subsystem, command),
            }
        }
        (Service::Discovery(used), LogPage::DISCOVERY) => {
            Ok(subsystems.discovery_log(used, &association.host))
        }
        (Service::Discovery(_), LogPage::COMMAND_EFFECTS) => {
            Ok(of_every_controller().as_bytes().to_vec())
        }
        (Service::Discovery(_), LogPage::SUPPORTED) => {
            Ok(SupportedLogPages::of(&DISCOVERY_PAGES).as_bytes().to_vec())
        }
        (Service::Discovery(_), _) => Err(Status::INVALID_LOG_PAGE),
    }
}

fn page_of_storage(
    association: &Association,
    subsystem: &Subsystem,
    command: &Command,
) -> Result<Vec<u8>, Status> {
    let bytes = match command.log_page() {
        LogPage::SUPPORTED => {
            let of_vendor = vendor::PAGES.iter().map(|page| page.id);
            let pages: Vec<_> = STORAGE_PAGES.into_iter().chain(of_vendor).collect();
            SupportedLogPages::of(&pages).as_bytes().to_vec()
        }
        LogPage::SMART => health::page(subsystem, association).as_bytes().to_vec(),
        LogPage::FIRMWARE_SLOTS => {
            let mut slots = FirmwareSlots { active: 1, ..FirmwareSlots::default() };
            slots.revisions[0] = subsystem.firmware;
            slots.as_bytes().to_vec()
        }
        LogPage::CHANGED_NAMESPACES => association.changes.page().as_bytes().to_vec(),
        LogPage::ASYMMETRIC_ACCESS => asymmetric_access::page(association, subsystem, command),
        LogPage::SANITIZE => subsystem.device.sanitizing.page().as_bytes().to_vec(),
        LogPage::COMMAND_EFFECTS => {
            let effects = effects(command.log_page_csi());
            with_queues(effects, association.model).as_bytes().to_vec()
        }
        _ => return Err(Status::INVALID_LOG_PAGE),
    };
    Ok(bytes)
}

/// Returns the commands and their effects. Unsupported sets have none, but are no error: nvme-cli
/// 2.13 requests every set that it knows and stops at the first error.
fn effects(set: CommandSet) -> CommandEffects {
    let admin = of_every_controller()
        .with_admin(AdminOpcode::ABORT, Effects::default())
        .with_admin(AdminOpcode::NAMESPACE_MANAGEMENT, Effects::CHANGES_INVENTORY)
        .with_admin(AdminOpcode::NAMESPACE_ATTACHMENT, Effects::CHANGES_INVENTORY)
        .with_admin(AdminOpcode::FORMAT_NVM, Effects::CHANGES_DATA | Effects::CHANGES_NAMESPACE)
        .with_admin(AdminOpcode::SANITIZE, Effects::CHANGES_DATA);
    io_command::commands(set)
        .iter()
        .fold(admin, |page, command| page.with_io(command.opcode, command.effects))
}

/// Adds the admin commands about queues of a host that has them in its memory.
fn with_queues(effects: CommandEffects, model: TransportModel) -> CommandEffects {
    let TransportModel::Memory { offers_shadow_doorbells } = model else { return effects };
    let opcodes = [
        AdminOpcode::DELETE_IO_SQ,
        AdminOpcode::CREATE_IO_SQ,
        AdminOpcode::DELETE_IO_CQ,
        AdminOpcode::CREATE_IO_CQ,
    ];
    let of_doorbells = offers_shadow_doorbells.then_some(AdminOpcode::DOORBELL_BUFFER_CONFIG);
    let add = |page: CommandEffects, opcode| page.with_admin(opcode, Effects::default());
    opcodes.into_iter().chain(of_doorbells).fold(effects, add)
}

/// Returns the admin commands that discovery controllers have too.
fn of_every_controller() -> CommandEffects {
    let none = Effects::default();
    CommandEffects::default()
        .with_admin(AdminOpcode::GET_LOG_PAGE, none)
        .with_admin(AdminOpcode::IDENTIFY, none)
        .with_admin(AdminOpcode::SET_FEATURES, none)
        .with_admin(AdminOpcode::GET_FEATURES, none)
        .with_admin(AdminOpcode::ASYNC_EVENT_REQUEST, none)
        .with_admin(AdminOpcode::KEEP_ALIVE, none)
}
