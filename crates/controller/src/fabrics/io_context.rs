use crate::completion::Outcome;
use crate::controller::Controller;
use crate::fabrics::association_state::AssociationState;
use crate::fabrics::error_log::ErrorLog;
use crate::fabrics::tally::Tally;
use crate::fabrics::work::{Work, WorkCount};
use crate::io_command::Begun;
use clock::User;
use spec::{QualifiedName, Status};
use std::sync::Arc;

/// The association's context for I/O queues, in any reactor.
#[derive(Clone, Debug)]
pub(crate) struct AssociationIo {
    pub(crate) host: QualifiedName,
    /// Maximum bytes of a value that it may store.
    pub(crate) value_bytes: u32,
    pub(crate) state: Arc<AssociationState>,
    pub(crate) errors: Arc<ErrorLog>,
    /// The subsystem's counters in the executing reactor.
    pub(crate) tally: Arc<Tally>,
    /// The association's counters in the executing reactor.
    pub(crate) work: Arc<WorkCount>,
}

/// The parts needed to execute the commands of an I/O queue.
#[derive(Debug)]
pub(crate) struct IoContext {
    pub(crate) rights: AssociationIo,
    pub(crate) device: Arc<Controller>,
    /// Counts a queue in another reactor than the device's until its last command has ended.
    #[expect(dead_code, reason = "it counts until it drops")]
    pub(crate) user: Option<User>,
}

impl IoContext {
    /// Returns whether no state of the device refuses commands of a namespace.
    #[inline]
    pub(crate) fn is_open(&self, nsid: u32) -> bool {
        let Self { rights, device, .. } = self;
        rights.state.takes_commands()
            && device.attachments.are_of(nsid, &rights.host)
            && device.sanitizing.refusal().is_none()
            && !device.inventory.is_formatting(nsid)
    }

    /// Ends an executed command: refuses data that is longer than the host's buffer, and counts the
    /// command in `work`.
    #[inline]
    pub(crate) fn end(&self, begun: Begun, outcome: &mut Outcome, work: &mut Work) {
        if outcome.data.len() > begun.room {
            *outcome = Outcome::of(Status::DATA_SGL_LENGTH_INVALID);
        }
        if !outcome.status.is_success() {
            self.rights.tally.count_failure(outcome.status);
        }
        work.count(begun.counted, begun.bytes + u64::from(outcome.data.len()), outcome.status);
        if begun.counted.is_write() {
            self.device.sanitizing.written();
        }
    }

    /// Adds executed commands to the counters of the subsystem and of the association.
    pub(crate) fn count(&self, work: &Work) {
        self.rights.tally.work.add(work);
        self.rights.work.add(work);
    }
}
