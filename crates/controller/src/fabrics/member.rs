use crate::controller::Controller;
use crate::fabrics::error_log::ErrorLog;
use crate::fabrics::standing::Standing;
use crate::fabrics::tally::Tally;
use crate::fabrics::work::WorkCount;
use spec::QualifiedName;
use std::sync::Arc;

/// What I/O queues have of their association, wherever their commands are executed.
#[derive(Clone, Debug)]
pub(crate) struct Rights {
    pub(crate) host: QualifiedName,
    /// Bytes of a value that it may store.
    pub(crate) value_bytes: u32,
    pub(crate) standing: Arc<Standing>,
    pub(crate) errors: Arc<ErrorLog>,
    /// The subsystem's, in the reactor that executes the commands.
    pub(crate) tally: Arc<Tally>,
    /// The association's own, in that reactor.
    pub(crate) work: Arc<WorkCount>,
}

/// What executing the commands of an I/O queue takes.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) rights: Rights,
    pub(crate) device: Arc<Controller>,
}
