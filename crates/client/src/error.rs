use base::Nanos;
use nvme_tcp::framing::Fault;
use nvme_tcp::pdu::FatalError;
use spec::{CommandSet, Status};

/// Why a host could not connect to a target, or lost the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This end closed the connection.
    #[error("the connection was closed")]
    Closed,
    /// The target ended the connection.
    #[error("the target ended the connection")]
    Ended,
    /// The connection broke.
    #[error("the connection to the target broke")]
    Broken,
    /// No answer came in time.
    #[error("the target did not answer within {0}")]
    Silent(Nanos),
    /// The target broke the protocol.
    #[error("the target is no NVMe/TCP target, or a broken one: {0}")]
    Fault(Fault),
    /// The target reports that this host broke the protocol.
    #[error("the target ended the connection for a {error} ({information:X}h)")]
    Terminated {
        /// FES.
        error: FatalError,
        /// FEI.
        information: u32,
    },
    /// The target does not offer the requested digests.
    #[error("the target does not take the digests of digests=; leave them out, or turn them on")]
    Digests,
    /// The target has no subsystem of this name for this host.
    #[error("the target has no subsystem {0}; its name is printed where it is served")]
    UnknownSubsystem(String),
    /// The subsystem has its maximum of hosts.
    #[error("the subsystem takes no more hosts now; try again when another has disconnected")]
    Busy,
    /// This host may not connect.
    #[error("the subsystem does not take this host, whose name is {0}")]
    HostNotAllowed(String),
    /// The subsystem requires authentication.
    #[error("the subsystem asks hosts to authenticate themselves, which is not possible here")]
    AuthenticationRequired,
    /// The controller has no I/O command set except that of blocks.
    #[error("the controller has no I/O command sets beside that of blocks, and so no keys")]
    NoCommandSets,
    /// The controller was not ready in time.
    #[error("the controller was not ready within {0}")]
    NotReady(Nanos),
    /// The controller reports a fatal status.
    #[error("the controller failed; it has to be restarted")]
    Failed,
    /// The controller's Identify data contradicts its Connect.
    #[error("the controller {found} was asked what it is, and said that it is {said}")]
    OtherController {
        /// CNTLID of its Connect.
        found: u16,
        /// CNTLID of its Identify.
        said: u16,
    },
    /// The namespace does not exist.
    #[error("the subsystem has no namespace {0}; the target's option ns= names another")]
    NoNamespace(u32),
    /// The namespace exists but has no keys.
    #[error("namespace {nsid} is of the command set {set}, and not of Key Value")]
    NotKeyValue {
        /// Its id.
        nsid: u32,
        /// Its command set.
        set: CommandSet,
    },
    /// A command failed.
    #[error("{command} ended with {status}")]
    Status {
        /// Its name.
        command: String,
        /// Its status.
        status: Status,
    },
    /// A reply is too short.
    #[error("the answer to {0} is too short")]
    Short(String),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
