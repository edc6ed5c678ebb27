use base::Buf;
use spec::{Command, Completion};
use std::rc::Rc;

/// Bytes of data that a command capsule carries at most, on every queue: what hosts may count on
/// for admin and fabrics commands in any case (TCP 1.1), and what the controller's IOCCSZ says.
pub const IN_CAPSULE_BYTES_MAX: u32 = 8_192;

/// What a host sends on a queue: a command with the data that it brings (Base 2.1, Command
/// Capsule).
#[derive(Clone, Debug)]
pub struct Capsule {
    /// The submission queue entry.
    pub command: Command,
    /// As many bytes as the command's data pointer says, if its data goes to the controller. Empty
    /// otherwise, and where the host's capsule does not have them.
    pub data: Buf,
    /// The next command of the submission queue, if both are a fused operation (Base 2.1, Fused
    /// Operations). A fused command without it is refused.
    pub second: Option<Box<Self>>,
}

impl Capsule {
    /// A command of its own.
    #[inline]
    pub fn new(command: Command, data: Buf) -> Self {
        Self { command, data, second: None }
    }

    /// Two adjacent commands, paired by [`FusedOrder`](crate::FusedOrder).
    pub fn fused(first: Self, second: Self) -> Self {
        Self { second: Some(Box::new(second)), ..first }
    }
}

/// What the controller answers on a queue (Base 2.1, Response Capsule).
#[derive(Clone, Debug)]
pub struct Response {
    /// The completion queue entry, whole.
    pub entry: Completion,
    /// What goes to the host, no more than the command's data pointer has room for.
    pub data: Buf,
    /// Whether the host can do without the entry if it gets the data: the command succeeded, its
    /// result is zero, and the queue runs without submission queue flow control.
    pub may_elide: bool,
}

/// Where the responses of a queue go: the transport's connection.
pub trait Responses {
    /// Takes the response to a command, in whatever order they come.
    fn respond(&self, response: Response);

    /// The controller has done with the connection: what was responded so far is still sent.
    fn end(&self);
}

/// A queue pair between a host and a controller, as a transport's connection carries it. It is
/// nobody's until a Connect binds it to a controller.
pub trait HostQueue {
    /// Starts a command, which arrives at the clock's instant: who takes it from outside has had
    /// the clock catch up with the wall ([`clock::catch_up`]). Its response comes to the
    /// [`Responses`] of the queue, and not before this returns.
    fn submit(&self, capsule: Capsule);

    /// The connection is gone. What was started runs to its end, and nothing is responded any more.
    fn close(&self);
}

/// Where hosts come in: what they can connect to.
pub trait Port {
    /// A new queue, whose responses go to `responses`.
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue>;
}
