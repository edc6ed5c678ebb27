use crate::queue_set::QueueSet;

/// The queues of a controller that need something, so that the function looks at no others.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Submission queues with commands to fetch.
    pub(crate) commands: QueueSet,
    /// Completion queues whose completions wait for room.
    pub(crate) room: QueueSet,
    /// Completion queues with completions that are to be written.
    pub(crate) writes: QueueSet,
    /// Completion queues whose vectors are to be raised.
    pub(crate) interrupts: QueueSet,
}
