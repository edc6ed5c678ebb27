use base::{Buf, Nanos};
use clock::{Stage, Stages};
use spec::{Opcode, Status};

/// The completion of a command.
#[derive(Clone, Debug)]
pub struct Completion {
    /// The number that [`QueuePair::submit`](crate::QueuePair::submit) returned.
    pub id: u64,
    /// The command's opcode, which means what its namespace's command set says.
    pub opcode: Opcode,
    /// Its status.
    pub status: Status,
    /// DW0 and DW1 of the completion queue entry. For a Retrieve: length of the whole value in
    /// bytes. For a Zone Append: the first logical block of its data.
    pub result: u64,
    /// Data of a Retrieve, List, Read or zone report, cut to the host's buffer.
    pub data: Buf,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it was posted.
    pub completed: Nanos,
    /// Stages of the time in between.
    pub stages: Stages,
}

impl Completion {
    /// Creates the completion of a command that a host sent over a link at `submitted`, and whose
    /// response arrives now. A host sees no stages: all of the time counts for the link.
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

    /// Returns the time from submission to completion.
    pub fn latency(&self) -> Nanos {
        self.completed - self.submitted
    }
}

/// The result of an executed command, before its completion is posted.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Status,
    pub(crate) result: u64,
    pub(crate) data: Buf,
}

/// The [`Outcome`] of a command, or the status of its failure.
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
