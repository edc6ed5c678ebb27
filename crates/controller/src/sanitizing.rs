use spec::{SanitizeLog, SanitizeOptions, Status};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How far a device is with a Sanitize (Base 2.1, Sanitize Operation State Machine), by whichever
/// of its subsystems that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Sanitizing {
    state: Mutex<State>,
    /// Why commands are refused, which each asks; success where they are not.
    refusal: AtomicU16,
    /// Whether nothing was written since the last one, which each write asks.
    is_blank: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    phase: Phase,
    /// What the command asked for that began the last one.
    options: SanitizeOptions,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Never,
    /// So many parts of 65,536 are done.
    UnderWay(u16),
    Done,
    Failed,
    /// It failed, and a host has given it up.
    GivenUp,
}

impl State {
    fn is_restricted(self) -> bool {
        is_restricted(self.options)
    }
}

impl Sanitizing {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, state: &mut State, phase: Phase) {
        state.phase = phase;
        let refusal = match phase {
            Phase::Never | Phase::Done | Phase::GivenUp => Status::SUCCESS,
            Phase::UnderWay(_) => Status::SANITIZE_IN_PROGRESS,
            Phase::Failed => Status::SANITIZE_FAILED,
        };
        self.is_blank.store(matches!(phase, Phase::Done), Ordering::Relaxed);
        // Who is not refused any more, in whatever reactor, knows that all is blank.
        self.refusal.store(refusal.0, Ordering::Release);
    }

    /// Why a command is refused now that could see or change data, or what there is of it.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Status> {
        let status = Status(self.refusal.load(Ordering::Acquire));
        (!status.is_success()).then_some(status)
    }

    /// A host has written something, or part of it.
    #[inline]
    pub(crate) fn written(&self) {
        if self.is_blank.load(Ordering::Relaxed) {
            self.is_blank.store(false, Ordering::Relaxed);
        }
    }

    /// Begins one. A failure in restricted mode lets a host begin only another of that mode.
    pub(crate) fn begin(&self, options: SanitizeOptions) -> Result<(), Status> {
        let mut state = self.state();
        match state.phase {
            Phase::UnderWay(_) => return Err(Status::SANITIZE_IN_PROGRESS),
            Phase::Failed if state.is_restricted() && !is_restricted(options) => {
                return Err(Status::SANITIZE_FAILED);
            }
            _ => {}
        }
        state.options = options;
        self.enter(&mut state, Phase::UnderWay(0));
        Ok(())
    }

    /// So many parts of 65,536 are done of what was begun.
    pub(crate) fn progress(&self, parts: u16) {
        self.enter(&mut self.state(), Phase::UnderWay(parts));
    }

    /// What was begun has ended.
    pub(crate) fn end(&self, is_success: bool) {
        let phase = if is_success { Phase::Done } else { Phase::Failed };
        self.enter(&mut self.state(), phase);
    }

    /// Gives up a failure, if the mode lets a host do so. There is nothing to give up otherwise.
    pub(crate) fn give_up(&self) -> Result<(), Status> {
        let mut state = self.state();
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

    /// The log page.
    pub(crate) fn page(&self) -> SanitizeLog {
        let (state, none) = (*self.state(), SanitizeLog::NO_PROGRESS);
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
            // Bits 7:4 say in which state it failed.
            Phase::Failed => (none, SanitizeLog::FAILED, processing << 4 | failure),
            Phase::GivenUp => (none, SanitizeLog::FAILED, SanitizeLog::IDLE),
        };
        SanitizeLog::new(progress, status, state.options, machine)
    }
}

fn is_restricted(options: SanitizeOptions) -> bool {
    !options.contains(SanitizeOptions::UNRESTRICTED)
}
