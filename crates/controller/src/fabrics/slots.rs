use crate::fabrics::queue_link::QueueLink;
use spec::{AdminOpcode, Command, FabricsType, Opcode};
use std::sync::Arc;

/// The parts of a command that its response and the error log need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandHead {
    pub(crate) command_id: u16,
    pub(crate) opcode: Opcode,
    pub(crate) is_connect: bool,
    is_fused: bool,
    pub(crate) nsid: u32,
}

impl CommandHead {
    #[inline]
    pub(crate) fn of(command: &Command) -> Self {
        Self {
            command_id: command.command_id(),
            opcode: command.opcode(),
            is_connect: is_connect(command),
            is_fused: command.is_fused(),
            nsid: command.nsid(),
        }
    }
}

/// A command of a queue between its arrival and its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    slot: u16,
    pub(crate) head: CommandHead,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    ticket: Ticket,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// In flight; its response will be sent.
    Awaited,
    /// A fused command. It is not aborted, because the operation needs both commands.
    Fused,
    /// In flight after an Abort: its response is dropped.
    Detached,
}

/// The commands in flight on a queue.
///
/// A slot is found by its number and not by the command's id: a host may use the id again as soon
/// as it was told that the command was aborted, while the command still runs to its end.
#[derive(Default)]
pub(crate) struct Slots {
    /// Where other reactors read the number of slots in use.
    link: Arc<QueueLink>,
    all: Vec<Slot>,
    free: Vec<u16>,
    detached: u16,
}

impl Slots {
    /// Creates slots whose number in use is in `link`.
    pub(crate) fn new(link: Arc<QueueLink>) -> Self {
        Self { link, ..Self::default() }
    }

    /// Takes a slot for a command. Returns `None` if `most` commands are outstanding.
    #[inline]
    pub(crate) fn take(&mut self, head: CommandHead, most: u16) -> Option<Ticket> {
        if !self.has_room(most) {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => u16::try_from(self.all.len()).ok()?,
        };
        let ticket = Ticket { slot, head };
        let state = if head.is_fused { State::Fused } else { State::Awaited };
        let taken = Slot { ticket, state };
        match self.all.get_mut(usize::from(slot)) {
            Some(free) => *free = taken,
            None => self.all.push(taken),
        }
        self.link.set_in_flight(self.taken());
        Some(ticket)
    }

    /// Frees the slot of a finished command. Returns whether its response must be sent.
    #[inline]
    pub(crate) fn give_back(&mut self, ticket: Ticket) -> bool {
        let state = &mut self.all[usize::from(ticket.slot)].state;
        let state = std::mem::replace(state, State::Free);
        assert!(state != State::Free, "a command is answered once");
        self.free.push(ticket.slot);
        self.link.set_in_flight(self.taken());
        if state == State::Detached {
            self.detached -= 1;
        }
        state != State::Detached
    }

    /// Detaches the command with this id, so that its response is dropped. Returns `None` if there
    /// is no such command or if `most` commands are detached.
    pub(crate) fn detach(&mut self, command_id: u16, most: u16) -> Option<Ticket> {
        if self.detached >= most {
            return None;
        }
        let awaited = |slot: &&mut Slot| {
            slot.state == State::Awaited && slot.ticket.head.command_id == command_id
        };
        let slot = self.all.iter_mut().find(awaited)?;
        slot.state = State::Detached;
        self.detached += 1;
        Some(slot.ticket)
    }

    /// Returns the number of slots in use.
    fn taken(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Returns whether fewer than `most` commands are outstanding.
    pub(crate) fn has_room(&self, most: u16) -> bool {
        self.outstanding() < usize::from(most)
    }

    /// Returns the number of slots whose responses will be sent.
    #[inline]
    pub(crate) fn outstanding(&self) -> usize {
        self.taken() - usize::from(self.detached)
    }
}

#[inline]
fn is_connect(command: &Command) -> bool {
    command.admin_opcode() == AdminOpcode::FABRICS && command.fabrics_type() == FabricsType::CONNECT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(id: u16) -> CommandHead {
        CommandHead::of(&exist(id))
    }

    fn exist(id: u16) -> Command {
        Command::exist(3, b"key").with_command_id(id)
    }

    #[test]
    fn as_many_are_awaited_as_the_queue_has_entries() {
        let mut slots = Slots::default();
        let first = slots.take(command(7), 2).unwrap();
        slots.take(command(8), 2).unwrap();
        assert!(slots.take(command(9), 2).is_none());
        assert!(slots.give_back(first));
        assert!(slots.take(command(9), 2).is_some());
    }

    #[test]
    fn a_part_of_a_fused_operation_is_not_detached() {
        let mut slots = Slots::default();
        let part = slots.take(CommandHead::of(&exist(7).with_fuse(spec::Fuse::First)), 2).unwrap();
        assert!(slots.detach(7, 9).is_none());
        assert!(slots.give_back(part), "its answer is awaited");
    }

    #[test]
    fn an_id_may_come_again_while_its_detached_command_runs() {
        let mut slots = Slots::default();
        let aborted = slots.take(command(7), 1).unwrap();
        let detached = slots.detach(7, 1).unwrap();
        assert_eq!((detached.head.command_id, detached.head.nsid), (7, 3));
        assert!(slots.detach(7, 9).is_none(), "it is detached already");
        let again = slots.take(command(7), 1).expect("the entry is free again");
        assert!(slots.detach(7, 1).is_none(), "one detached command is the limit");
        assert!(!slots.give_back(aborted));
        assert!(slots.detach(7, 1).is_some());
        assert!(!slots.give_back(again));
    }
}
