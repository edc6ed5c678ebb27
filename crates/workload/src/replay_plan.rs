use crate::replay::Replay;
use crate::value::Payload;

/// A trace to replay, and its target.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// The operations and their pace.
    pub replay: Replay,
    /// The outstanding operations at full speed, at least 1. At any other pace operations are due
    /// at their times, however many are outstanding.
    pub queue_depth: u32,
    /// The namespace.
    pub nsid: u32,
    /// The seed of the values.
    pub seed: u64,
    /// Whether values have bytes.
    pub payload: Payload,
}
