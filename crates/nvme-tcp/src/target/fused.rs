use crate::framing::Brought;
use base::Buf;
use controller::{Capsule, FusedOrder};
use spec::{Command, Status};

/// A command whose capsule has come.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) command: Command,
    pub(super) brought: Brought,
}

/// A command of a fused operation.
#[derive(Debug)]
struct Part {
    command: Command,
    /// `None` while the data is on its way.
    brought: Option<Brought>,
}

/// The fused commands of a connection, until all of their data has come.
///
/// The queue gets both commands at once. R2T data comes in any order, so the order of submission
/// would not show which commands are adjacent.
#[derive(Debug, Default)]
pub(super) struct FusedCommands {
    pub(super) order: FusedOrder<Arrived>,
    pending: Vec<[Part; 2]>,
}

/// What to do with two fused commands whose data has come.
#[derive(Debug)]
pub(super) enum Ready {
    Start(Capsule),
    /// Data was damaged. The status of each command.
    Refuse([(Command, Status); 2]),
}

impl FusedCommands {
    /// Returns whether no fused command waits, neither for its second nor for its data.
    pub(super) fn is_empty(&self) -> bool {
        !self.order.is_waiting() && self.pending.is_empty()
    }

    /// Adds two adjacent commands, whose data is to come.
    pub(super) fn expect(&mut self, commands: [Command; 2]) {
        self.pending.push(commands.map(|command| Part { command, brought: None }));
    }

    /// Takes the data of a command. Returns both commands when all data has come.
    pub(super) fn fill(&mut self, command: &Command, brought: Brought) -> Option<Ready> {
        // A host that uses an id twice at a time may get the data of either command.
        let is_it = |part: &Part| {
            part.brought.is_none()
                && part.command.command_id() == command.command_id()
                && part.command.fuse() == command.fuse()
        };
        let at = self.pending.iter().position(|parts| parts.iter().any(is_it))?;
        let part = self.pending[at].iter_mut().find(|part| is_it(part))?;
        part.brought = Some(brought);
        if self.pending[at].iter().any(|part| part.brought.is_none()) {
            return None;
        }
        Some(Ready::of(self.pending.remove(at)))
    }
}

impl Ready {
    fn of(parts: [Part; 2]) -> Self {
        if parts.iter().any(|part| matches!(part.brought, Some(Brought::Damaged))) {
            return Self::Refuse(parts.map(|part| {
                let status = match part.brought {
                    Some(Brought::Damaged) => Status::TRANSIENT_TRANSPORT_ERROR,
                    _ => Status::FAILED_FUSED_COMMAND,
                };
                (part.command, status)
            }));
        }
        let [first, second] = parts.map(|part| {
            let data = match part.brought {
                Some(Brought::Data(data)) => data,
                _ => Buf::phantom(0, 0),
            };
            Capsule::new(part.command, data)
        });
        Self::Start(Capsule::fused(first, second))
    }
}
