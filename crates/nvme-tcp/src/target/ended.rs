use crate::framing::Fault;
use crate::pdu::FatalError;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The stream ended or broke.
    #[error("the host has left")]
    ByHost,
    /// The controller ended the queue.
    #[error("the controller has done with the connection")]
    ByController,
    /// The host violated the protocol.
    #[error(transparent)]
    ByFault(#[from] Fault),
    /// The host reported a protocol violation of this end.
    #[error("the host terminated the connection: {0}")]
    Terminated(FatalError),
    /// The host exceeded the commands of a connection while it owed data.
    #[error("the host sent more commands than a queue has, and not their data")]
    Flooded,
    /// See [`super::TIMEOUT`].
    #[error("the host was silent for too long")]
    Silent,
}
