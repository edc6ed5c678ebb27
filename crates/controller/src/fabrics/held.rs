//! Commands that may be answered without a task. A queue holds a few of them while its transport
//! takes in more, so that the index entries of all of them are prefetched.

use crate::fabrics::io::{Begun, Job, Todo, is_open, room, sgl_len};
use crate::fabrics::io_context::IoContext;
use crate::fabrics::pair::Pair;
use crate::fabrics::slots::CommandHead;
use crate::host_queue::Capsule;
use crate::io_command::Counted;
use crate::namespace::Namespace;
use crate::quick::{Quick, Tried};
use engine::{Announced, Store};
use spec::Opcode;
use std::rc::Rc;
use std::sync::Arc;

/// Most commands that are held: as many index entries are prefetched at a time.
const HELD_MAX: usize = 32;

/// The commands that a queue holds. It holds none while its connection waits.
#[derive(Default)]
pub(crate) struct Held {
    /// The namespace of all of them, and its id. While the queue has it, its media are not given
    /// to another namespace.
    namespace: Option<(u32, Arc<Namespace>)>,
    commands: Vec<HeldCommand>,
}

struct HeldCommand {
    head: CommandHead,
    /// Bytes of its value, if it is a Store.
    stored: Option<u32>,
    /// Length of the host's buffer in bytes.
    room: u32,
    quick: Quick,
    /// A Store is announced while it is held, so that those held together share a page.
    announced: Option<Announced>,
}

impl HeldCommand {
    /// Returns what the counters of [`Pair::end`] are told of it.
    #[inline]
    fn begun(&self) -> Begun {
        let counted = if self.stored.is_some() { Counted::Write } else { Counted::Read };
        Begun { counted, bytes: self.stored.unwrap_or(0).into(), room: self.room }
    }
}

impl Held {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns the store of the held commands' namespace, which becomes the one with this id. It
    /// is not the id of another namespace of held commands.
    #[inline]
    fn store(&mut self, io_context: &IoContext, nsid: u32) -> Option<&Arc<Store>> {
        if self.namespace.is_none() {
            let namespace = io_context.device.namespace(nsid);
            let namespace = namespace.filter(|it| matches!(**it, Namespace::Kv(_)))?;
            self.namespace = Some((nsid, namespace));
        }
        self.namespace.as_ref().map(|(_, namespace)| store_of(namespace))
    }
}

fn store_of(namespace: &Namespace) -> &Arc<Store> {
    match namespace {
        Namespace::Kv(store) => store,
        Namespace::Block(_) | Namespace::Zoned(_) => panic!("held commands are of a KV namespace"),
    }
}

impl Pair {
    /// Holds a command that may be answered without a task, and takes its data. Returns false and
    /// takes nothing if it is another command.
    #[inline]
    pub(crate) fn hold(self: &Rc<Self>, io_context: &IoContext, capsule: &mut Capsule) -> bool {
        let nsid = capsule.command.nsid();
        let is_other = self.held.borrow().namespace.as_ref().is_some_and(|(id, _)| *id != nsid);
        if is_other {
            self.execute_held();
        }
        let held = &mut *self.held.borrow_mut();
        let Some(store) = held.store(io_context, nsid) else { return false };
        let Some(mut command) = decode(io_context, capsule) else { return false };
        command.quick.expect(store);
        command.announced = command.stored.map(|_| store.announce());
        held.commands.push(command);
        true
    }

    /// Executes the held commands if there are as many as there may be.
    #[inline]
    pub(crate) fn execute_full(self: &Rc<Self>) {
        if self.held.borrow().len() == HELD_MAX {
            self.execute_held();
        }
    }

    /// Executes the held commands: those that must wait in tasks.
    pub(crate) fn execute_held(self: &Rc<Self>) {
        let held = &mut *self.held.borrow_mut();
        let Some((_, namespace)) = held.namespace.take() else { return };
        let io_context = self.io_context().expect("a queue that holds commands executes them");
        let store = store_of(&namespace);
        for command in held.commands.drain(..) {
            let (head, begun) = (command.head, command.begun());
            let tried = {
                let _inside = io_context.device.enter();
                command.quick.attempt(store, command.announced)
            };
            let todo = match tried {
                Tried::Done(outcome) => {
                    let outcome = Self::end(io_context, begun, outcome);
                    self.respond(head, outcome);
                    continue;
                }
                Tried::Landing(landing) => Todo::Land(landing),
                Tried::Waits(quick, announced) => Todo::Quick(quick, announced),
            };
            let ticket = self.take_slot(head).expect("the queue had room for the command");
            self.workers.give(self, ticket, Job { namespace: namespace.clone(), begun, todo });
        }
    }
}

/// Decodes a command of a KV namespace and takes its data. Returns `None` and takes nothing if it
/// needs a task, or must be refused.
#[inline]
fn decode(io_context: &IoContext, capsule: &mut Capsule) -> Option<HeldCommand> {
    let Capsule { command, data, .. } = capsule;
    let len = data.len();
    let (stored, room) = match command.opcode() {
        Opcode::STORE if len <= io_context.rights.value_bytes && sgl_len(command) == Ok(len) => {
            (Some(len), 0)
        }
        Opcode::RETRIEVE => (None, room(command).ok()?),
        _ => return None,
    };
    if command.is_fused() || !is_open(io_context, command.nsid()) {
        return None;
    }
    let quick = Quick::decode(command, data)?;
    let head = CommandHead::of(command);
    Some(HeldCommand { head, stored, room, quick, announced: None })
}
