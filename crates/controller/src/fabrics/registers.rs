use crate::fabrics::association_state::AssociationState;
use spec::{Configuration, ControllerStatus};
use std::cell::Cell;
use std::sync::Arc;

/// The properties that change.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) configuration: Cell<Configuration>,
    pub(crate) status: Cell<ControllerStatus>,
    /// Shared state, which records whether the controller takes commands.
    state: Arc<AssociationState>,
    /// NSSRO: set until the host clears it.
    pub(crate) was_subsystem_reset: Cell<bool>,
}

impl Registers {
    /// Creates the registers of a controller; `was_subsystem_reset` is the initial NSSRO.
    pub(crate) fn new(state: Arc<AssociationState>, was_subsystem_reset: bool) -> Self {
        Self {
            configuration: Cell::default(),
            status: Cell::default(),
            state,
            was_subsystem_reset: Cell::new(was_subsystem_reset),
        }
    }

    /// Returns whether the controller is enabled, and neither failed nor shut down.
    pub(crate) fn takes_commands(&self) -> bool {
        self.state.takes_commands()
    }

    /// Sets the fatal status.
    pub(crate) fn fail(&self) {
        self.set_status(ControllerStatus::FATAL);
    }

    pub(crate) fn set_status(&self, status: ControllerStatus) {
        self.status.set(status);
        self.state.set_takes_commands(status == ControllerStatus::READY);
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        self.status.get().with_subsystem_reset(self.was_subsystem_reset.get())
    }
}
