//! What a queue owes its host, watched between a transport and the controller.

use crate::device::{CALM_KV, CALM_ZONED, KV};
use crate::entry;
use controller::{Capsule, Entrance, HostQueue, Port, Response, Responses};
use spec::{
    AdminOpcode, Command, DataPointer, FabricsType, FormatOptions, Property, Status, Transfer,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct Asked {
    command: Command,
    /// Bytes of its host's buffer.
    room: u32,
}

/// The outstanding commands of one id, which a host may use more than once at a time.
#[derive(Default)]
struct Same {
    asked: Vec<Asked>,
    /// True if the id was in use twice at a time, so that an answer cannot be assigned to one of
    /// them.
    is_shared: bool,
}

/// The commands and answers of a queue.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By command id.
    asked: RefCell<BTreeMap<u16, Same>>,
    /// True when a Connect has made it an I/O queue.
    is_io: Cell<bool>,
    is_closed: Cell<bool>,
    is_ended: Cell<bool>,
}

impl Ledger {
    fn ask(&self, command: &Command) {
        let room = match (command.transfer(), command.data_pointer()) {
            (Transfer::ToHost, DataPointer::Transport { len }) if command.uses_sgl() => len,
            _ => 0,
        };
        let asked = Asked { command: *command, room };
        let mut all = self.asked.borrow_mut();
        let same = all.entry(command.command_id()).or_default();
        same.is_shared |= !same.asked.is_empty();
        same.asked.push(asked);
    }

    fn answer(&self, response: &Response) {
        let (id, status) = (response.entry.command_id(), response.entry.status());
        assert!(!self.is_closed.get(), "command {id} is answered on a queue that was closed");
        assert!(!self.is_ended.get(), "command {id} is answered after the queue's end");
        assert!(matches!(status.0 >> 8, 0..=3), "{status} is of no type that there is");
        let len = response.data.len();
        assert!(len == 0 || status.is_success(), "command {id} failed with {status}, and has data");
        let mut asked = self.asked.borrow_mut();
        let same = asked.get_mut(&id).unwrap_or_else(|| panic!("no command {id} is outstanding"));
        // Assigns the answer to the smallest buffer that fits, which leaves larger ones for later
        // answers. A request for an event may wait forever.
        let fitting = same.asked.iter().enumerate().filter(|(_, one)| len <= one.room);
        let least = fitting.min_by_key(|(_, one)| (self.may_wait(&one.command), one.room));
        let Some((at, _)) = least else { panic!("{len} bytes for {:?}", same.asked) };
        let one = same.asked.remove(at);
        if !same.is_shared {
            refuses_pointers(&one.command, status);
        }
        if same.asked.is_empty() {
            asked.remove(&id);
        }
        if is_connect(&one.command) && status.is_success() {
            self.is_io.set(one.command.queue_id() > 0);
        }
    }

    /// True for a request for an event. On I/O queues its opcode is another command's.
    fn may_wait(&self, command: &Command) -> bool {
        !self.is_io.get() && command.admin_opcode() == AdminOpcode::ASYNC_EVENT_REQUEST
    }

    /// Checks that no command is outstanding, except requests for events.
    pub(crate) fn check(&self) {
        if self.is_closed.get() || self.is_ended.get() {
            return;
        }
        let asked = self.asked.borrow();
        let owed: Vec<_> = asked
            .values()
            .flat_map(|same| &same.asked)
            .filter(|one| !self.may_wait(&one.command))
            .collect();
        assert!(owed.is_empty(), "no completion for {owed:?}");
    }
}

/// Opcodes of commands that always move data, whatever their fields are, on every queue that has
/// them.
const MOVE_DATA: [u8; 7] = [0x01, 0x02, 0x05, 0x06, 0x19, 0x7a, 0x7d];

/// Checks that a command that moves data fails without a place for it (Base 2.1, SGL descriptors).
fn refuses_pointers(command: &Command, status: Status) {
    let has_place = command.uses_sgl()
        && match command.data_pointer() {
            DataPointer::Transport { .. } => true,
            DataPointer::InCapsule { .. } => command.transfer() == Transfer::ToController,
            DataPointer::Other(_) => false,
        };
    let opcode = command.opcode().0;
    let needs_place = is_connect(command) || MOVE_DATA.contains(&opcode);
    assert!(
        has_place || !needs_place || !status.is_success(),
        "{command:?} has no place for its data and succeeds"
    );
}

fn is_connect(command: &Command) -> bool {
    command.admin_opcode() == AdminOpcode::FABRICS && command.fabrics_type() == FabricsType::CONNECT
}

/// An entrance that watches its queues.
pub(crate) struct Watched {
    entrance: Entrance,
    /// The ledgers of all queues so far.
    ledgers: Rc<RefCell<Vec<Rc<Ledger>>>>,
    /// True when commands to the well-behaved host's namespaces are redirected.
    is_kept_out: bool,
}

impl Watched {
    pub(crate) fn new(
        entrance: Entrance,
        ledgers: Rc<RefCell<Vec<Rc<Ledger>>>>,
        is_kept_out: bool,
    ) -> Self {
        Self { entrance, ledgers, is_kept_out }
    }

    pub(crate) fn entrance(&self) -> &Entrance {
        &self.entrance
    }
}

impl Port for Watched {
    fn queue(&self, responses: Rc<dyn Responses>) -> Rc<dyn HostQueue> {
        let ledger = Rc::<Ledger>::default();
        self.ledgers.borrow_mut().push(ledger.clone());
        let inner = self.entrance.queue(Rc::new(Answers { ledger: ledger.clone(), responses }));
        Rc::new(Queue { inner, ledger, is_kept_out: self.is_kept_out })
    }
}

struct Queue {
    inner: Rc<dyn HostQueue>,
    ledger: Rc<Ledger>,
    is_kept_out: bool,
}

impl HostQueue for Queue {
    fn submit(&self, mut capsule: Capsule) {
        let second = capsule.second.as_deref_mut();
        for command in
            [&mut capsule.command].into_iter().chain(second.map(|second| &mut second.command))
        {
            if self.is_kept_out {
                *command = kept_out(command);
            }
            self.ledger.ask(command);
        }
        self.inner.submit(capsule);
    }

    fn execute_held(&self) {
        self.inner.execute_held();
    }

    fn close(&self) {
        self.ledger.is_closed.set(true);
        self.inner.close();
    }
}

/// Opcodes of admin commands that change namespaces (Base 2.1, Namespace Management, Namespace
/// Attachment and Format NVM commands).
const CHANGE_NAMESPACES: [AdminOpcode; 3] =
    [AdminOpcode::NAMESPACE_MANAGEMENT, AdminOpcode::NAMESPACE_ATTACHMENT, AdminOpcode::FORMAT_NVM];

/// Redirects a command from a namespace of the well-behaved host to another one. Replaces commands
/// that would affect all namespaces: changes of all namespaces, a reset of the subsystem and a
/// sanitize operation. Every host may send these.
pub(crate) fn kept_out(command: &Command) -> Command {
    let nsid = command.nsid();
    if resets_subsystem(command) {
        Command::property_get(Property::NSSR).with_command_id(command.command_id())
    } else if command.admin_opcode() == AdminOpcode::FABRICS {
        *command
    } else if command.admin_opcode() == AdminOpcode::SANITIZE {
        Command::format_namespace(KV, FormatOptions::default())
            .with_command_id(command.command_id())
    } else if (CALM_KV..=CALM_ZONED).contains(&nsid) {
        entry::with_nsid(command, nsid - CALM_KV + KV)
    } else if nsid == u32::MAX && CHANGE_NAMESPACES.contains(&command.admin_opcode()) {
        entry::with_nsid(command, KV)
    } else {
        *command
    }
}

fn resets_subsystem(command: &Command) -> bool {
    command.admin_opcode() == AdminOpcode::FABRICS
        && command.fabrics_type() == FabricsType::PROPERTY_SET
        && command.property_offset() == Property::NSSR
}

struct Answers {
    ledger: Rc<Ledger>,
    responses: Rc<dyn Responses>,
}

impl Responses for Answers {
    fn respond(&self, response: Response) {
        self.ledger.answer(&response);
        self.responses.respond(response);
    }

    fn end(&self) {
        assert!(!self.ledger.is_ended.replace(true), "a queue ends once");
        self.responses.end();
    }

    fn withdraw(&self, command_id: u16) -> Option<Command> {
        let held = self.responses.withdraw(command_id);
        if let Some(held) = &held {
            self.ledger.ask(held);
        }
        held
    }
}
