use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// State that an association and its I/O queues in all reactors share for every command.
#[derive(Debug, Default)]
pub(crate) struct AssociationState {
    heard: AtomicBool,
    takes_commands: AtomicBool,
}

impl AssociationState {
    /// Records that the host has sent a command. Only the first of several reactors writes.
    #[inline]
    pub(crate) fn hear(&self) {
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// Returns whether the host has sent a command since the last call.
    pub(crate) fn take_heard(&self) -> bool {
        self.heard.swap(false, Relaxed)
    }

    /// Returns whether the controller is enabled, and neither failed nor shut down.
    #[inline]
    pub(crate) fn takes_commands(&self) -> bool {
        self.takes_commands.load(Acquire)
    }

    /// Sets that state (release): a reader of it also sees all earlier writes.
    pub(crate) fn set_takes_commands(&self, takes: bool) {
        self.takes_commands.store(takes, Release);
    }
}
