use crate::shared::Shared;
use spec::{Configuration, ControllerStatus};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The properties that change.
#[derive(Debug)]
pub(crate) struct Registers {
    /// It is locked for a whole change of the configuration, which is a reset too.
    pub(crate) configuration: Shared<Configuration>,
    status: Shared<ControllerStatus>,
    /// NSSRO: set until the host clears it.
    pub(crate) was_subsystem_reset: Shared<bool>,
    /// Whether the controller takes commands; every command reads this.
    takes_commands: AtomicBool,
}

impl Registers {
    /// Creates the registers of a controller; `was_subsystem_reset` is the initial NSSRO.
    pub(crate) fn new(was_subsystem_reset: bool) -> Self {
        Self {
            configuration: Shared::default(),
            status: Shared::default(),
            was_subsystem_reset: Shared::new(was_subsystem_reset),
            takes_commands: AtomicBool::new(false),
        }
    }

    /// Returns whether the controller is enabled, and neither failed nor shut down.
    #[inline]
    pub(crate) fn takes_commands(&self) -> bool {
        self.takes_commands.load(Acquire)
    }

    /// Sets the fatal status.
    pub(crate) fn fail(&self) {
        self.set_status(ControllerStatus::FATAL);
    }

    /// Sets the status (release): a reader of [`Self::takes_commands`] also sees all earlier
    /// writes.
    pub(crate) fn set_status(&self, status: ControllerStatus) {
        self.change_status(|held| *held = status);
    }

    /// Changes the status in one step.
    pub(crate) fn change_status(&self, change: impl FnOnce(&mut ControllerStatus)) {
        let mut status = self.status.lock();
        change(&mut status);
        self.takes_commands.store(*status == ControllerStatus::READY, Release);
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        self.status.get().with_subsystem_reset(self.was_subsystem_reset.get())
    }
}
