use crate::fabrics::DetachedQueue;
use base::Buf;
use spec::{Command, Completion};
use std::rc::Rc;

/// Maximum data bytes in a command capsule, on every queue: the minimum for admin and fabrics
/// commands (TCP 1.1), and the controller's IOCCSZ.
pub const IN_CAPSULE_BYTES_MAX: u32 = 8_192;

/// A command with its data, as a host sends it (Base 2.1, Command Capsule).
#[derive(Clone, Debug)]
pub struct Capsule {
    /// The submission queue entry.
    pub command: Command,
    /// Data to the controller, with the length of the command's data pointer. Empty if the command
    /// has none, or if the host's capsule lacks it.
    pub data: Buf,
    /// The next command of the submission queue, if both are a fused operation (Base 2.1, Fused
    /// Operations). A fused command without it is refused.
    pub second: Option<Box<Self>>,
}

impl Capsule {
    /// Creates a capsule of a single command.
    #[inline]
    pub fn new(command: Command, data: Buf) -> Self {
        Self { command, data, second: None }
    }

    /// Creates a capsule of two commands, paired by [`FusedOrder`](crate::FusedOrder).
    pub fn fused(first: Self, second: Self) -> Self {
        Self { second: Some(Box::new(second)), ..first }
    }
}

/// A response of the controller (Base 2.1, Response Capsule).
#[derive(Clone, Debug)]
pub struct Response {
    /// The complete completion queue entry.
    pub entry: Completion,
    /// Data to the host, at most the length of the command's data pointer.
    pub data: Buf,
    /// Whether the data can stand for the entry: the command succeeded, its result is zero, and the
    /// queue has no submission queue flow control.
    pub may_elide: bool,
}

/// The receiver of a queue's responses: the transport's connection.
pub trait Responses {
    /// Takes the response to a command. Responses come in any order.
    fn respond(&self, response: Response);

    /// Ends the connection on behalf of the controller, after earlier responses are sent.
    fn end(&self);

    /// Takes back the first command of a fused operation with this id that the transport holds
    /// until the second one comes, if there is one. The queue responds to it.
    fn withdraw(&self, command_id: u16) -> Option<Command>;
}

/// A queue pair between a host and a controller, as a transport's connection carries it. It is
/// unbound until a Connect binds it to a controller.
pub trait HostQueue {
    /// Starts a command, which arrives at the clock's current time. A caller outside the simulation
    /// first lets the clock catch up with the wall clock ([`clock::catch_up`]).
    ///
    /// The queue may hold the command until [`Self::execute_held`], and may respond to commands
    /// within this call.
    fn submit(&self, capsule: Capsule);

    /// Executes the commands that the queue holds. The caller of [`Self::submit`] calls this before
    /// it waits: until then it can submit more commands, whose index entries are prefetched.
    fn execute_held(&self);

    /// Closes the queue of a lost connection. Started commands run to their end without a response.
    fn close(&self);

    /// Returns whether [`Self::detach`] can succeed while no command is in flight.
    fn may_move(&self) -> bool {
        false
    }

    /// Takes the queue out of this reactor, for [`Port::adopt`] in another one. The caller does not
    /// use it again, not even to close it. Returns `None` if it stays: a command is in flight, the
    /// controller has ended it, or it cannot move.
    fn detach(&self) -> Option<DetachedQueue> {
        None
    }
}

/// Gives each connection of a host its queue.
pub trait Port {
    /// Creates a queue whose responses go to `responses`.
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue>;

    /// Continues a queue that another reactor has detached, for a port of the same subsystems. Its
    /// responses go to `responses`.
    ///
    /// # Panics
    /// If the queues of this port do not move.
    fn adopt(&self, queue: DetachedQueue, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let _ = responses;
        panic!("{queue:?} of a port whose queues do not move");
    }
}
