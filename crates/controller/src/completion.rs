use base::{Buf, Nanos};
use clock::Stages;
use spec::{Opcode, Status};

/// What became of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The number that [`QueuePair::submit`](crate::QueuePair::submit) returned.
    pub id: u64,
    /// The command's opcode.
    pub opcode: Opcode,
    /// How it ended.
    pub status: Status,
    /// DW0 of the completion queue entry: for a Retrieve, the length of the whole value in bytes.
    pub result: u32,
    /// What a Retrieve or List returned, cut to the host's buffer.
    pub data: Buf,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was posted.
    pub completed: Nanos,
    /// Where the time between went.
    pub stages: Stages,
}

impl Completion {
    /// Time from submission to completion.
    pub fn latency(&self) -> Nanos {
        self.completed - self.submitted
    }
}

/// What executing a command gave, before it is posted.
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) result: u32,
    pub(crate) data: Buf,
}

impl Outcome {
    pub(crate) const fn of(status: Status) -> Self {
        Self { status, result: 0, data: Buf::phantom(0, 0) }
    }
}

impl From<Result<Self, Status>> for Outcome {
    fn from(result: Result<Self, Status>) -> Self {
        result.unwrap_or_else(Self::of)
    }
}
