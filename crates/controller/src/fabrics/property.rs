//! The properties of an association, by which a host enables, resets and shuts down its controller
//! (Base 2.1, Controller Properties).

use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::subsystem::Subsystem;
use spec::{
    Capabilities, Command, Configuration, ControllerStatus, Property, ReadyTimeouts, Shutdown,
    ShutdownStatus, Status, Version,
};
use std::sync::Arc;

/// The version of the specification that controllers implement.
pub(crate) const VERSION: Version = Version::V2_1;

/// CAP.TO: maximum time to enable or disable, in units of 500 ms. Both happen at once; hosts use it
/// as their timeout on a slow network.
const READY_HALF_SECONDS: u8 = 15;

/// Returns the capabilities. A discovery controller has no subsystem reset.
fn capabilities(association: &Association) -> Capabilities {
    let common = Capabilities::CONTIGUOUS_QUEUES
        .with_queue_entries(association.limits.queue_entries - 1)
        .with_ready_half_seconds(READY_HALF_SECONDS)
        .with(Capabilities::NVM_COMMAND_SET)
        .with(Capabilities::COMMAND_SETS)
        .with(Capabilities::READY_WITH_MEDIA);
    match association.service {
        Service::Storage(_) => common.with(Capabilities::SUBSYSTEM_RESET),
        Service::Discovery(_) => common,
    }
}

/// Executes a Property Get.
pub(crate) fn get(association: &Association, command: &Command) -> Outcome {
    let property = command.property_offset();
    let Some(value) = value(association, property) else {
        return Outcome::of(Status::INVALID_FIELD);
    };
    if command.property_is_8_bytes() != property.is_8_bytes() {
        return Outcome::of(Status::INVALID_FIELD);
    }
    Outcome { result: value, ..Outcome::done() }
}

/// Returns the value of a property, if there is one.
pub(crate) fn value(association: &Association, property: Property) -> Option<u64> {
    let registers = &association.registers;
    Some(match property {
        Property::CAP => capabilities(association).0,
        Property::VS => VERSION.0.into(),
        Property::CC => registers.configuration.get().0.into(),
        Property::CSTS => registers.status().0.into(),
        Property::NSSR if subsystem(association).is_some() => 0,
        Property::CRTO => ReadyTimeouts::new(READY_HALF_SECONDS.into(), 0).0.into(),
        _ => return None,
    })
}

/// Executes a Property Set.
pub(crate) fn set(association: &Arc<Association>, command: &Command) -> Outcome {
    // All properties of 8 bytes are read only.
    if command.property_is_8_bytes() {
        return Outcome::of(Status::INVALID_FIELD);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the property has 4 bytes")]
    let value = command.property_value() as u32;
    match change(association, command.property_offset(), value) {
        Ok(()) => Outcome::done(),
        Err(status) => Outcome::of(status),
    }
}

/// Writes a property of 4 bytes.
pub(crate) fn change(
    association: &Arc<Association>,
    property: Property,
    value: u32,
) -> Result<(), Status> {
    match (property, subsystem(association)) {
        (Property::CC, _) => configure(association, Configuration(value)),
        (Property::CSTS, Some(_)) => {
            if ControllerStatus(value).is_subsystem_reset() {
                association.registers.was_subsystem_reset.set(false);
            }
        }
        (Property::NSSR, Some(subsystem)) => {
            if value == Property::RESET_SUBSYSTEM {
                reset_all(subsystem);
            }
        }
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(())
}

/// Resets a controller and its configuration.
pub(crate) fn reset(association: &Association) {
    let mut configuration = association.registers.configuration.lock();
    *configuration = Configuration::default();
    association.reset();
}

fn subsystem(association: &Association) -> Option<&Subsystem> {
    match &association.service {
        Service::Storage(subsystem) => Some(subsystem),
        Service::Discovery(_) => None,
    }
}

fn configure(association: &Arc<Association>, new: Configuration) {
    let registers = &association.registers;
    let mut configuration = registers.configuration.lock();
    let old = std::mem::replace(&mut *configuration, new);
    match (old.is_enabled(), new.is_enabled()) {
        (false, true) => {
            let can = is_valid(association, new);
            registers.set_status(if can {
                ControllerStatus::READY
            } else {
                ControllerStatus::FATAL
            });
        }
        (true, false) => association.reset(),
        _ => {}
    }
    let asks = |configuration: Configuration| {
        matches!(configuration.shutdown(), Shutdown::Normal | Shutdown::Abrupt)
    };
    if asks(new) && !asks(old) {
        shut_down(association);
    }
}

/// Shuts the controller down. Flushes a volatile cache first; without one acknowledged data is
/// durable already.
fn shut_down(association: &Arc<Association>) {
    let set = |status| {
        let registers = &association.registers;
        registers.change_status(|held| *held = held.with_shutdown(status));
    };
    let device = subsystem(association).map(|subsystem| subsystem.device.clone());
    let Some(device) = device.filter(|device| device.has_volatile_cache()) else {
        return set(ShutdownStatus::Complete);
    };
    set(ShutdownStatus::Occurring);
    let association = association.clone();
    clock::spawn(async move {
        device.flush_all().await;
        association.registers.change_status(|held| {
            // A reset during the flush has ended the shutdown.
            if held.shutdown() == ShutdownStatus::Occurring {
                *held = held.with_shutdown(ShutdownStatus::Complete);
            }
        });
    });
}

fn is_valid(association: &Association, configuration: Configuration) -> bool {
    let sets_are_known = matches!(
        configuration.command_sets(),
        Configuration::NVM_COMMAND_SET
            | Configuration::ALL_COMMAND_SETS
            | Configuration::ADMIN_ONLY
    );
    // A discovery controller has no I/O queues, so their entry sizes do not matter.
    let entries_fit = matches!(association.service, Service::Discovery(_))
        || (configuration.submission_entry_size(), configuration.completion_entry_size()) == (6, 4);
    let pages_fit = configuration.page_size() == 0 && configuration.arbitration() == 0;
    sets_are_known && entries_fit && pages_fit
}

/// Executes an NVM Subsystem Reset: a Controller Level Reset of every controller of the subsystem,
/// also of other hosts. The medium keeps its data.
fn reset_all(subsystem: &Subsystem) {
    for controller in subsystem.associations.reset() {
        controller.registers.was_subsystem_reset.set(true);
        reset(&controller);
    }
}
