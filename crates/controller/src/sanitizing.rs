use crate::fabrics::association::Association;
use crate::fabrics::subsystem::Subsystem;
use spec::{SanitizeLog, SanitizeOptions, Status};
use std::cell::Cell;
use std::rc::Rc;

/// How far a subsystem is with a Sanitize (Base 2.1, Sanitize Operation State Machine).
#[derive(Debug, Default)]
pub(crate) struct Sanitizing {
    phase: Cell<Phase>,
    /// What the command asked for that began the last one.
    options: Cell<SanitizeOptions>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Never,
    /// So many parts of 65,536 are done.
    UnderWay(u16),
    /// It succeeded, when hosts had changed data so often.
    Done(u64),
    Failed,
    /// It failed, and a host has given it up.
    GivenUp,
}

impl Sanitizing {
    /// Why a command is refused now that could see or change data, or what there is of it.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<Status> {
        match self.phase.get() {
            Phase::Never | Phase::Done(_) | Phase::GivenUp => None,
            Phase::UnderWay(_) => Some(Status::SANITIZE_IN_PROGRESS),
            Phase::Failed => Some(Status::SANITIZE_FAILED),
        }
    }

    /// Begins one. A failure in restricted mode lets a host begin only another of that mode.
    pub(crate) fn begin(&self, options: SanitizeOptions) -> Result<(), Status> {
        match self.phase.get() {
            Phase::UnderWay(_) => return Err(Status::SANITIZE_IN_PROGRESS),
            Phase::Failed if self.is_restricted() && !is_restricted(options) => {
                return Err(Status::SANITIZE_FAILED);
            }
            _ => {}
        }
        self.options.set(options);
        self.phase.set(Phase::UnderWay(0));
        Ok(())
    }

    /// Gives up a failure, if the mode lets a host do so. There is nothing to give up otherwise.
    pub(crate) fn give_up(&self) -> Result<(), Status> {
        match self.phase.get() {
            Phase::UnderWay(_) => Err(Status::SANITIZE_IN_PROGRESS),
            Phase::Failed if self.is_restricted() => Err(Status::SANITIZE_FAILED),
            Phase::Failed => {
                self.phase.set(Phase::GivenUp);
                Ok(())
            }
            Phase::Never | Phase::Done(_) | Phase::GivenUp => Ok(()),
        }
    }

    /// The log page, where hosts have changed data so often by now.
    pub(crate) fn page(&self, changes: u64) -> SanitizeLog {
        let none = SanitizeLog::NO_PROGRESS;
        let (processing, failure) = if self.is_restricted() {
            (SanitizeLog::RESTRICTED, SanitizeLog::RESTRICTED_FAILURE)
        } else {
            (SanitizeLog::UNRESTRICTED, SanitizeLog::UNRESTRICTED_FAILURE)
        };
        let (progress, status, state) = match self.phase.get() {
            Phase::Never => (none, SanitizeLog::NEVER, SanitizeLog::IDLE),
            Phase::UnderWay(progress) => (progress, SanitizeLog::UNDER_WAY, processing),
            Phase::Done(then) if then == changes => {
                (none, SanitizeLog::DONE | SanitizeLog::ALL_ERASED, SanitizeLog::IDLE)
            }
            Phase::Done(_) => (none, SanitizeLog::DONE, SanitizeLog::IDLE),
            // Bits 7:4 say in which state it failed.
            Phase::Failed => (none, SanitizeLog::FAILED, processing << 4 | failure),
            Phase::GivenUp => (none, SanitizeLog::FAILED, SanitizeLog::IDLE),
        };
        SanitizeLog::new(progress, status, self.options.get(), state)
    }

    fn is_restricted(&self) -> bool {
        is_restricted(self.options.get())
    }
}

fn is_restricted(options: SanitizeOptions) -> bool {
    !options.contains(SanitizeOptions::UNRESTRICTED)
}

/// Does what was begun: wipes every namespace, and tells the controller that was asked.
pub(crate) async fn sanitize(association: Rc<Association>, subsystem: Rc<Subsystem>) {
    let sanitizing = &subsystem.sanitizing;
    let ids = subsystem.device.namespace_ids();
    let mut wiped = true;
    for (number, nsid) in ids.iter().enumerate() {
        let progress = u16::try_from(number * 65_536 / ids.len()).expect("it is not the end");
        sanitizing.phase.set(Phase::UnderWay(progress));
        // That waits for the commands that were taken before, so that they leave nothing either.
        wiped &= subsystem.device.format_namespace(*nsid).await.is_ok();
    }
    let changes = subsystem.tally.changes();
    sanitizing.phase.set(if wiped { Phase::Done(changes) } else { Phase::Failed });
    association.events.notice_sanitized(&association);
}
