use base::{Buf, Nanos};
use clock::{Stage, Stages};
use spec::{Opcode, Status};

/// What became of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The number that [`QueuePair::submit`](crate::QueuePair::submit) returned.
    pub id: u64,
    /// The command's opcode, which means what its namespace's command set says.
    pub opcode: Opcode,
    /// How it ended.
    pub status: Status,
    /// DW0 and DW1 of the completion queue entry: for a Retrieve, the length of the whole value in
    /// bytes; for a Zone Append, the logical block that the first of its data has become.
    pub result: u64,
    /// What a Retrieve, List, Read or report of zones returned, cut to the host's buffer.
    pub data: Buf,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was posted.
    pub completed: Nanos,
    /// Where the time between went.
    pub stages: Stages,
}

impl Completion {
    /// That of a command which a host gave to a link when it was `submitted`, and whose answer has
    /// come now. A host sees no stages: all of the time is the link's.
    pub fn over_link(
        id: u64,
        opcode: Opcode,
        submitted: Nanos,
        (status, result, data): (Status, u64, Buf),
    ) -> Self {
        let completed = clock::host_now();
        let mut stages = Stages::default();
        stages.add(Stage::Link, completed - submitted);
        Self { id, opcode, status, result, data, submitted, completed, stages }
    }

    /// Time from submission to completion.
    pub fn latency(&self) -> Nanos {
        self.completed - self.submitted
    }
}

/// What executing a command gave, before it is posted.
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Buf,
}

/// [`Outcome`] of a command, or the status that it failed with.
pub(crate) type Executed = Result<Outcome, Status>;

impl Outcome {
    pub(crate) const fn of(status: Status) -> Self {
        Self { status, result: 0, data: Buf::phantom(0, 0) }
    }

    pub(crate) const fn done() -> Self {
        Self::of(Status::SUCCESS)
    }

    pub(crate) const fn with_data(data: Buf) -> Self {
        Self { status: Status::SUCCESS, result: 0, data }
    }
}

impl From<Executed> for Outcome {
    fn from(result: Executed) -> Self {
        result.unwrap_or_else(Self::of)
    }
}
