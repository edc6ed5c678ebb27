use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What an association and its I/O queues tell each other with every command, in whichever reactors
/// these are.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    heard: AtomicBool,
    takes_commands: AtomicBool,
}

impl Standing {
    /// The host has sent a command. Of several reactors only the first writes.
    #[inline]
    pub(crate) fn hear(&self) {
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
    }

    /// Whether the host has sent one since this was asked last.
    pub(crate) fn take_heard(&self) -> bool {
        self.heard.swap(false, Relaxed)
    }

    /// Whether the controller is enabled, and neither failed nor shut down.
    #[inline]
    pub(crate) fn takes_commands(&self) -> bool {
        self.takes_commands.load(Acquire)
    }

    /// Who hears of this knows of all that was before it.
    pub(crate) fn set_takes_commands(&self, takes: bool) {
        self.takes_commands.store(takes, Release);
    }
}
