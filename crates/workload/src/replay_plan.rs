use crate::replay::Replay;
use crate::value::Payload;

/// A trace to be done again, and where.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The operations and their pace.
    pub replay: Replay,
    /// At full speed, how many operations are outstanding: at least 1. At any other pace operations
    /// are due when the trace says, however many are outstanding.
    pub queue_depth: u32,
    /// The namespace that is asked.
    pub nsid: u32,
    /// Names the values.
    pub seed: u64,
    /// Whether values have bytes.
    pub payload: Payload,
}
