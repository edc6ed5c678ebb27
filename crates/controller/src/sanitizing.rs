use crate::shared::Shared;
use spec::{SanitizeLog, SanitizeOptions, Status};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

/// The Sanitize state of a device, for all of its subsystems (Base 2.1, Sanitize Operation State
/// Machine).
#[derive(Debug, Default)]
pub(crate) struct Sanitizing {
    state: Shared<State>,
    /// The status that refuses commands, or success; every command reads this.
    refusal: AtomicU16,
    /// Whether no write followed the last Sanitize; every write reads this.
    is_blank: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    phase: Phase,
    /// The options of the last Sanitize command.
    options: SanitizeOptions,
    /// Changes of namespaces under way.
    changes: u32,
}

/// A change of namespaces. No Sanitize begins until it drops.
#[derive(Debug)]
pub(crate) struct NamespaceChange<'a>(&'a Sanitizing);

impl Drop for NamespaceChange<'_> {
    fn drop(&mut self) {
        self.0.state.lock().changes -= 1;
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Never,
    /// In progress: finished parts of 65,536.
    UnderWay(u16),
    Done,
    Failed,
    /// It failed, and a host has exited the failure mode.
    GivenUp,
}

impl State {
    fn is_restricted(self) -> bool {
        is_restricted(self.options)
    }
}

impl Sanitizing {
    fn enter(&self, state: &mut State, phase: Phase) {
        state.phase = phase;
        let refusal = match phase {
            Phase::Never | Phase::Done | Phase::GivenUp => Status::SUCCESS,
            Phase::UnderWay(_) => Status::SANITIZE_IN_PROGRESS,
            Phase::Failed => Status::SANITIZE_FAILED,
        };
        self.is_blank.store(matches!(phase, Phase::Done), Ordering::Relaxed);
        // Release: a reactor that sees the end of the refusal also sees `is_blank`.
        self.refusal.store(refusal.0, Ordering::Release);
    }

    /// Returns the status that refuses commands which access user data, or `None`.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Status> {
        let status = Status(self.refusal.load(Ordering::Acquire));
        (!status.is_success()).then_some(status)
    }

    /// Records a complete or partial write of a host.
    #[inline]
    pub(crate) fn written(&self) {
        if self.is_blank.load(Ordering::Relaxed) {
            self.is_blank.store(false, Ordering::Relaxed);
        }
    }

    /// Starts a change of namespaces, unless a Sanitize is under way or has failed.
    pub(crate) fn begin_change(&self) -> Result<NamespaceChange<'_>, Status> {
        let mut state = self.state.lock();
        if let Some(status) = self.refusal() {
            return Err(status);
        }
        state.changes += 1;
        Ok(NamespaceChange(self))
    }

    /// Starts a Sanitize. After a failure in restricted mode only that mode is allowed.
    pub(crate) fn begin(&self, options: SanitizeOptions) -> Result<(), Status> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::UnderWay(_) => return Err(Status::SANITIZE_IN_PROGRESS),
            _ if state.changes > 0 => return Err(Status::FORMAT_IN_PROGRESS),
            Phase::Failed if state.is_restricted() && !is_restricted(options) => {
                return Err(Status::SANITIZE_FAILED);
            }
            _ => {}
        }
        state.options = options;
        self.enter(&mut state, Phase::UnderWay(0));
        Ok(())
    }

    /// Records the progress in parts of 65,536.
    pub(crate) fn progress(&self, parts: u16) {
        self.enter(&mut self.state.lock(), Phase::UnderWay(parts));
    }

    /// Records the end.
    pub(crate) fn end(&self, is_success: bool) {
        let phase = if is_success { Phase::Done } else { Phase::Failed };
        self.enter(&mut self.state.lock(), phase);
    }

    /// Exits the failure mode, if the mode allows it. Does nothing without a failure.
    pub(crate) fn give_up(&self) -> Result<(), Status> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::UnderWay(_) => Err(Status::SANITIZE_IN_PROGRESS),
            Phase::Failed if state.is_restricted() => Err(Status::SANITIZE_FAILED),
            Phase::Failed => {
                self.enter(&mut state, Phase::GivenUp);
                Ok(())
            }
            Phase::Never | Phase::Done | Phase::GivenUp => Ok(()),
        }
    }

    /// Returns the log page.
    pub(crate) fn page(&self) -> SanitizeLog {
        let (state, none) = (self.state.get(), SanitizeLog::NO_PROGRESS);
        let (processing, failure) = if state.is_restricted() {
            (SanitizeLog::RESTRICTED, SanitizeLog::RESTRICTED_FAILURE)
        } else {
            (SanitizeLog::UNRESTRICTED, SanitizeLog::UNRESTRICTED_FAILURE)
        };
        let (progress, status, machine) = match state.phase {
            Phase::Never => (none, SanitizeLog::NEVER, SanitizeLog::IDLE),
            Phase::UnderWay(progress) => (progress, SanitizeLog::UNDER_WAY, processing),
            Phase::Done if self.is_blank.load(Ordering::Relaxed) => {
                (none, SanitizeLog::DONE | SanitizeLog::ALL_ERASED, SanitizeLog::IDLE)
            }
            Phase::Done => (none, SanitizeLog::DONE, SanitizeLog::IDLE),
            // Bits 7:4 are the state in which it failed.
            Phase::Failed => (none, SanitizeLog::FAILED, processing << 4 | failure),
            Phase::GivenUp => (none, SanitizeLog::FAILED, SanitizeLog::IDLE),
        };
        SanitizeLog::new(progress, status, state.options, machine)
    }
}

fn is_restricted(options: SanitizeOptions) -> bool {
    !options.contains(SanitizeOptions::UNRESTRICTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sanitize_and_a_change_of_namespaces_exclude_each_other() {
        let sanitizing = Sanitizing::default();
        let change = sanitizing.begin_change().expect("nothing is under way");
        let refused = sanitizing.begin(SanitizeOptions::default());
        assert_eq!(refused, Err(Status::FORMAT_IN_PROGRESS));
        drop(change);
        assert_eq!(sanitizing.begin(SanitizeOptions::default()), Ok(()));
        assert_eq!(sanitizing.begin_change().err(), Some(Status::SANITIZE_IN_PROGRESS));
        sanitizing.end(true);
        assert!(sanitizing.begin_change().is_ok());
    }
}
