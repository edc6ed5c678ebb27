use base::Buf;
use controller::{Capsule, FusedOrder};
use spec::{Command, Status};

/// What came in the capsule of a command.
#[derive(Debug)]
pub(super) enum Brought {
    /// No data: if the command has some, the host has to be asked for it.
    Nothing,
    Data(Buf),
    /// Data that did not agree with its digest.
    Damaged,
}

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

/// The fused operations of a connection, from the arrival of their commands until all of their data
/// has come.
///
/// The queue is given both commands at once, for which of them comes first with its data says
/// nothing of their order.
#[derive(Debug, Default)]
pub(super) struct FusedCommands {
    pub(super) order: FusedOrder<Arrived>,
    pending: Vec<[Part; 2]>,
}

/// What becomes of a fused operation whose data has come.
#[derive(Debug)]
pub(super) enum Ready {
    Start(Capsule),
    /// Data was damaged: how each command ends.
    Refuse([(Command, Status); 2]),
}

impl FusedCommands {
    /// Expects the data of two commands that are next to each other.
    pub(super) fn expect(&mut self, commands: [Command; 2]) {
        self.pending.push(commands.map(|command| Part { command, brought: None }));
    }

    /// The data of a command has come, of those that are expected. Returns its operation when that
    /// was the last.
    pub(super) fn fill(&mut self, command: &Command, brought: Brought) -> Option<Ready> {
        // Of commands of one id, which are the host's fault, the first is as good as any.
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
