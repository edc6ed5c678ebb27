use super::budget::Budget;
use super::limits::LARGE;
use crate::framing::Brought;
use base::limits::VALUE_BYTES_MAX;
use spec::{Command, DataPointer, Transfer};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// What a command needs of the connection in addition to its capsule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// This many bytes, at least 1, to request from the host.
    Data(u32),
    /// Budget for this many returned bytes.
    Room(u32),
}

impl Need {
    /// Returns the need of a command. Data beyond the transfer limit is not requested, and at most
    /// the limit is returned. Other kinds of data pointers move nothing. The controller refuses
    /// such commands where it must.
    #[inline]
    pub(super) fn of(command: &Command) -> Self {
        let len = match command.data_pointer() {
            DataPointer::Transport { len } if command.uses_sgl() => len,
            _ => 0,
        };
        match command.transfer() {
            _ if len == 0 => Self::Nothing,
            Transfer::None => Self::Nothing,
            Transfer::ToController if len > VALUE_BYTES_MAX => Self::Nothing,
            Transfer::ToController => Self::Data(len),
            Transfer::ToHost => Self::Room(len.min(VALUE_BYTES_MAX)),
        }
    }

    /// Returns the bytes to request from the host.
    pub(super) fn data(self) -> u32 {
        match self {
            Self::Data(len) => len,
            Self::Nothing | Self::Room(_) => 0,
        }
    }

    /// Returns whether the command can be submitted at once.
    #[inline]
    pub(super) fn is_little(self) -> bool {
        !matches!(self, Self::Data(_)) && !self.is_charged()
    }

    /// Returns whether it counts for the budget.
    #[inline]
    pub(super) fn is_charged(self) -> bool {
        self.charge() > 0
    }

    #[inline]
    fn charge(self) -> u64 {
        match self {
            Self::Data(len) | Self::Room(len) if len >= LARGE => len.into(),
            _ => 0,
        }
    }
}

/// Cuts a capsule's data to the part that the SGL of its command names. To nothing if it names none
/// or too much, which the controller refuses.
#[inline]
pub(super) fn cut(command: &Command, brought: &mut Brought) {
    let Brought::Data(data) = brought else { return };
    match command.data_pointer() {
        DataPointer::InCapsule { offset, len }
            if command.transfer() == Transfer::ToController
                && len > 0
                && offset.checked_add(len).is_some_and(|end| end <= data.len()) =>
        {
            data.narrow(offset..offset + len);
        }
        _ => *brought = Brought::Nothing,
    }
}

/// Decides which commands may start, to bound the bytes in flight.
#[derive(Debug)]
pub(super) struct Admission {
    budget: Rc<Budget>,
    waiting: VecDeque<(Command, Need)>,
    /// Charges of commands in flight by command id, if not 0.
    charges: BTreeMap<u16, u64>,
}

impl Admission {
    pub(super) fn new(budget: Rc<Budget>) -> Self {
        Self { budget, waiting: VecDeque::new(), charges: BTreeMap::new() }
    }

    /// Returns whether `command` may start now. Otherwise [`Self::next`] returns it later.
    #[inline]
    pub(super) fn admit(&mut self, command: &Command, need: Need) -> bool {
        let charge = need.charge();
        if charge == 0 {
            return true;
        }
        if !self.waiting.is_empty() || !self.budget.has_room(charge) {
            self.waiting.push_back((*command, need));
            return false;
        }
        self.charge(command.command_id(), charge);
        true
    }

    /// Has `command` wait, behind those that wait already.
    pub(super) fn hold_back(&mut self, command: &Command, need: Need) {
        self.waiting.push_back((*command, need));
    }

    /// Returns the number of commands that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes the commands that wait to another reactor.
    pub(super) fn take_waiting(&mut self) -> VecDeque<(Command, Need)> {
        assert!(self.charges.is_empty(), "no command is in flight");
        std::mem::take(&mut self.waiting)
    }

    /// Has commands from another reactor wait.
    pub(super) fn set_waiting(&mut self, waiting: VecDeque<(Command, Need)>) {
        assert!(self.waiting.is_empty(), "the connection has just arrived");
        self.waiting = waiting;
    }

    /// Returns whether commands in flight are charged.
    #[inline]
    pub(super) fn has_charges(&self) -> bool {
        !self.charges.is_empty()
    }

    /// Returns whether commands wait.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the next waiting command that may start.
    pub(super) fn next(&mut self) -> Option<(Command, Need)> {
        let (command, need) = *self.waiting.front()?;
        if !self.budget.has_room(need.charge()) {
            return None;
        }
        self.waiting.pop_front();
        self.charge(command.command_id(), need.charge());
        Some((command, need))
    }

    /// Removes an answered command and returns its charge, which [`Self::give_back`] releases when
    /// the response is sent.
    pub(super) fn answered(&mut self, command_id: u16) -> u64 {
        self.charges.remove(&command_id).unwrap_or(0)
    }

    /// Drops waiting commands and charges when the connection is over.
    pub(super) fn clear(&mut self) {
        self.waiting = VecDeque::new();
        self.charges = BTreeMap::new();
        self.budget.clear();
    }

    pub(super) fn give_back(&mut self, charge: u64) {
        self.budget.give_back(charge);
    }

    /// Charges a command. If a host uses an id twice at a time, the first response ends both
    /// charges.
    fn charge(&mut self, command_id: u16, charge: u64) {
        if charge == 0 {
            return;
        }
        self.budget.take(charge);
        *self.charges.entry(command_id).or_default() += charge;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Buf;

    fn store(id: u16, len: u32) -> (Command, Need) {
        let command = Command::store(1, b"key", len, spec::StoreOptions::NONE)
            .with_command_id(id)
            .with_data_pointer(DataPointer::Transport { len });
        let need = Need::of(&command);
        (command, need)
    }

    #[test]
    fn needs_follow_direction_and_data_pointer() {
        let (store, need) = store(1, 20_000);
        assert_eq!(need, Need::Data(20_000));
        let at = |command: Command, pointer| Need::of(&command.with_data_pointer(pointer));
        assert_eq!(at(store, DataPointer::Transport { len: 0 }), Need::Nothing);
        assert_eq!(at(store, DataPointer::InCapsule { offset: 0, len: 9 }), Need::Nothing);
        assert_eq!(at(store, DataPointer::Other(0x40)), Need::Nothing);
        let too_much = DataPointer::Transport { len: VALUE_BYTES_MAX + 1 };
        assert_eq!(at(store, too_much), Need::Nothing, "the controller refuses it");
        let retrieve = Command::retrieve(1, b"key", 5);
        assert_eq!(at(retrieve, DataPointer::Transport { len: 5 }), Need::Room(5));
        assert_eq!(at(retrieve, too_much), Need::Room(VALUE_BYTES_MAX), "no value is longer");
        assert_eq!(Need::of(&retrieve), Need::Nothing, "it has no SGL");
        let delete = Command::delete(1, b"key");
        assert_eq!(at(delete, DataPointer::Transport { len: 5 }), Need::Nothing);
    }

    #[test]
    fn data_in_a_capsule_is_what_the_sgl_names() {
        let (store, _) = store(1, 100);
        let bytes: Vec<u8> = (0..100).collect();
        let at = |command: Command, pointer| {
            let mut brought = Brought::Data(Buf::copy_from(&bytes));
            cut(&command.with_data_pointer(pointer), &mut brought);
            match brought {
                Brought::Data(part) => Some(part.bytes().unwrap().to_vec()),
                _ => None,
            }
        };
        let inside = |offset, len| DataPointer::InCapsule { offset, len };
        assert_eq!(at(store, inside(0, 100)), Some(bytes.clone()));
        assert_eq!(at(store, inside(8, 92)), Some(bytes[8..].to_vec()));
        assert_eq!(at(store, inside(8, 1)), Some(vec![8]));
        for pointer in [
            inside(0, 101),
            inside(8, 93),
            inside(100, 1),
            inside(u32::MAX, u32::MAX),
            inside(0, 0),
            DataPointer::Transport { len: 100 },
            DataPointer::Other(0x10),
        ] {
            assert_eq!(at(store, pointer), None, "{pointer:?}");
        }
        for command in [Command::retrieve(1, b"key", 100), Command::delete(1, b"key")] {
            assert_eq!(at(command, inside(0, 100)), None, "it brings no data");
        }
    }

    #[test]
    fn large_data_waits_in_order_and_small_data_never_waits() {
        let mut admission = Admission::new(Rc::default());
        let mut admit = |id, len| {
            let (command, need) = store(id, len);
            admission.admit(&command, need)
        };
        assert!((0..8).all(|id| admit(id, VALUE_BYTES_MAX)), "16 MiB");
        assert!(!admit(8, LARGE));
        assert!(!admit(9, VALUE_BYTES_MAX));
        assert!(!admit(10, LARGE), "not before those that came earlier");
        assert!(admit(11, LARGE - 1));
        assert!(admission.next().is_none());
        let charge = admission.answered(3);
        assert_eq!(charge, VALUE_BYTES_MAX.into());
        assert_eq!(admission.answered(11), 0);
        assert!(admission.next().is_none(), "the answer is not sent yet");
        admission.give_back(charge);
        assert_eq!(admission.next().map(|(command, _)| command.command_id()), Some(8));
        assert!(admission.next().is_none(), "16 KiB less than 2 MiB are left");
        let (command, need) = store(12, LARGE);
        assert!(!admission.admit(&command, need), "it would fit, and is not the first");
        let charge = admission.answered(8);
        admission.give_back(charge);
        assert_eq!(admission.next().map(|(command, _)| command.command_id()), Some(9));
        assert!(admission.next().is_none());
        assert_eq!(admission.budget.in_flight(), Budget::BYTES);
    }

    #[test]
    fn an_id_that_is_used_twice_takes_nothing_along() {
        let mut admission = Admission::new(Rc::default());
        for _ in 0..2 {
            let (command, need) = store(5, 64 << 10);
            assert!(admission.admit(&command, need));
        }
        let charges = [admission.answered(5), admission.answered(5)];
        assert_eq!(charges, [128 << 10, 0]);
        for charge in charges {
            admission.give_back(charge);
        }
        assert_eq!(admission.budget.in_flight(), 0);
    }
}
