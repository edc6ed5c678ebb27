use super::admission::Need;
use super::ended::Ended;
use crate::framing::ParkedInbox;
use controller::DetachedQueue;
use spec::Command;
use std::collections::VecDeque;

/// How a connection has left its reactor.
#[derive(Debug)]
pub enum Left {
    /// It is over.
    Ended(Ended),
    /// Its owner asked it to move. The stream is open, and no task uses it.
    Moved(ParkedConnection),
}

/// A connection on its way between two reactors, without its stream. It has answered all commands
/// that it has submitted. Dropping it closes its queue.
#[derive(Debug)]
pub struct ParkedConnection {
    pub(super) queue: DetachedQueue,
    pub(super) inbox: ParkedInbox,
    /// SQHD of the last response.
    pub(super) queue_head: u16,
    /// Commands that have arrived and are not submitted, in order.
    pub(super) waiting: VecDeque<(Command, Need)>,
}
