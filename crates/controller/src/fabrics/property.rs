//! The properties of an association: what a host reads and writes to enable, reset and shut down
//! its controller (Base 2.1, Controller Properties).

use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::standing::Standing;
use crate::fabrics::subsystem::Subsystem;
use spec::{
    Capabilities, Command, Configuration, ControllerStatus, Property, ReadyTimeouts, Shutdown,
    ShutdownStatus, Status, Version,
};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The version of the specification that controllers keep to.
pub(crate) const VERSION: Version = Version::V2_1;

/// How long enabling and disabling may take at most in units of 500 ms. Both are done at once here;
/// a host that waits for an answer over a slow network takes this as its patience.
const READY_HALF_SECONDS: u8 = 15;

/// The properties that change.
#[derive(Debug)]
pub(crate) struct Registers {
    configuration: Cell<Configuration>,
    status: Cell<ControllerStatus>,
    /// Which says whether commands are taken, of all that these say.
    standing: Arc<Standing>,
    /// NSSRO, which stays until the host clears it.
    was_subsystem_reset: Cell<bool>,
}

impl Registers {
    /// Those of a controller of a subsystem that was reset before, or was not.
    pub(crate) fn new(standing: Arc<Standing>, was_subsystem_reset: bool) -> Self {
        Self {
            configuration: Cell::default(),
            status: Cell::default(),
            standing,
            was_subsystem_reset: Cell::new(was_subsystem_reset),
        }
    }

    /// Enabled, and neither failed nor shut down.
    pub(crate) fn takes_commands(&self) -> bool {
        self.standing.takes_commands()
    }

    /// The controller has failed for good.
    pub(crate) fn fail(&self) {
        self.set_status(ControllerStatus::FATAL);
    }

    fn set_status(&self, status: ControllerStatus) {
        self.status.set(status);
        self.standing.set_takes_commands(status == ControllerStatus::READY);
    }

    fn status(&self) -> ControllerStatus {
        self.status.get().with_subsystem_reset(self.was_subsystem_reset.get())
    }
}

/// What a controller can do. There is nothing to reset behind a discovery controller.
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

/// Answers a Property Get.
pub(crate) fn get(association: &Association, command: &Command) -> Outcome {
    let registers = &association.registers;
    let property = command.property_offset();
    let value = match property {
        Property::CAP => capabilities(association).0,
        Property::VS => VERSION.0.into(),
        Property::CC => registers.configuration.get().0.into(),
        Property::CSTS => registers.status().0.into(),
        Property::NSSR if subsystem(association).is_some() => 0,
        Property::CRTO => ReadyTimeouts::new(READY_HALF_SECONDS.into(), 0).0.into(),
        _ => return Outcome::of(Status::INVALID_FIELD),
    };
    if command.property_is_8_bytes() != property.is_8_bytes() {
        return Outcome::of(Status::INVALID_FIELD);
    }
    Outcome { result: value, ..Outcome::done() }
}

/// Answers a Property Set.
pub(crate) fn set(association: &Rc<Association>, command: &Command) -> Outcome {
    // None of 8 bytes can be written.
    if command.property_is_8_bytes() {
        return Outcome::of(Status::INVALID_FIELD);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the property has 4 bytes")]
    let value = command.property_value() as u32;
    match (command.property_offset(), subsystem(association)) {
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
        _ => return Outcome::of(Status::INVALID_FIELD),
    }
    Outcome::done()
}

fn subsystem(association: &Association) -> Option<&Subsystem> {
    match &association.service {
        Service::Storage(subsystem) => Some(subsystem),
        Service::Discovery(_) => None,
    }
}

fn configure(association: &Rc<Association>, new: Configuration) {
    let registers = &association.registers;
    let old = registers.configuration.replace(new);
    match (old.is_enabled(), new.is_enabled()) {
        (false, true) => {
            let can = is_valid(association, new);
            registers.set_status(if can {
                ControllerStatus::READY
            } else {
                ControllerStatus::FATAL
            });
        }
        (true, false) => reset(association),
        _ => {}
    }
    let asks = |configuration: Configuration| {
        matches!(configuration.shutdown(), Shutdown::Normal | Shutdown::Abrupt)
    };
    if asks(new) && !asks(old) {
        shut_down(association);
    }
}

/// Ends in order. Where all that hosts were told outlives a loss of power nothing is left to be
/// done; a volatile cache is flushed first.
fn shut_down(association: &Rc<Association>) {
    let set = |association: &Association, status| {
        let registers = &association.registers;
        registers.set_status(registers.status.get().with_shutdown(status));
    };
    let device = subsystem(association).map(|subsystem| subsystem.device.clone());
    let Some(device) = device.filter(|device| device.has_volatile_cache()) else {
        return set(association, ShutdownStatus::Complete);
    };
    set(association, ShutdownStatus::Occurring);
    let association = association.clone();
    clock::spawn(async move {
        device.flush_all().await;
        // A reset meanwhile has made an end of the shutdown.
        if association.registers.status.get().shutdown() == ShutdownStatus::Occurring {
            set(&association, ShutdownStatus::Complete);
        }
    });
}

fn is_valid(association: &Association, configuration: Configuration) -> bool {
    let sets_are_known = matches!(
        configuration.command_sets(),
        Configuration::NVM_COMMAND_SET
            | Configuration::ALL_COMMAND_SETS
            | Configuration::ADMIN_ONLY
    );
    // A discovery controller has no I/O queues, and their entries any size.
    let entries_fit = matches!(association.service, Service::Discovery(_))
        || (configuration.submission_entry_size(), configuration.completion_entry_size()) == (6, 4);
    let pages_fit = configuration.page_size() == 0 && configuration.arbitration() == 0;
    sets_are_known && entries_fit && pages_fit
}

/// Controller Level Reset: I/O queues end, requests for events are given up, and what the host has
/// set is as at the start. The admin queue stays.
fn reset(association: &Association) {
    // In this order: whoever sees that no command is taken any more answers nothing either.
    association.end_io_queues();
    association.registers.set_status(ControllerStatus::default());
    association.events.reset(association);
    association.features.reset();
}

/// NVM Subsystem Reset: a Controller Level Reset of every controller of the subsystem, which comes
/// over their hosts. The medium keeps what it has.
fn reset_all(subsystem: &Subsystem) {
    for controller in subsystem.associations.reset() {
        let registers = &controller.registers;
        registers.configuration.set(Configuration::default());
        registers.was_subsystem_reset.set(true);
        reset(&controller);
    }
}
