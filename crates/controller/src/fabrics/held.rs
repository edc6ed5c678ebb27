//! Commands that may be answered without a task. A queue holds a few of them while its transport
//! takes in more, so that the index entries of all of them are prefetched.

use crate::fabrics::held_read::HeldRead;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::pair::{Binding, Pair};
use crate::fabrics::slots::CommandHead;
use crate::fabrics::transfer::{room, sgl_len};
use crate::namespace::{Namespace, NamespaceInUse};
use crate::quick::Quick;
use base::Buf;
use media::Segments;
use spec::{Command, Opcode};
use std::rc::Rc;
use std::sync::Arc;

/// Most commands that are held: as many index entries are prefetched at a time.
pub(crate) const HELD_MAX: usize = 32;

/// The commands that a queue holds. It holds none while its connection waits.
#[derive(Default)]
pub(crate) struct Held {
    /// The namespace of all of them, and its id. No state of the device refused commands when the
    /// queue got it. While the queue has it, its media are not given to another namespace.
    pub(crate) namespace: Option<(u32, Arc<NamespaceInUse>)>,
    /// Stores and Retrieves, if it has pairs.
    pub(crate) commands: Vec<HeldCommand>,
    /// Reads, if it has blocks.
    pub(crate) reads: Vec<HeldRead>,
    /// Empty: memory for what they read.
    pub(crate) contents: Vec<Option<Segments>>,
}

/// A held command.
pub(crate) struct HeldCommand {
    pub(crate) head: CommandHead,
    /// Length of the host's buffer in bytes.
    pub(crate) room: u32,
    /// A Store is announced while it is held, so that those held together share a page.
    pub(crate) quick: Quick,
}

impl Held {
    pub(crate) fn len(&self) -> usize {
        self.commands.len() + self.reads.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Pair {
    /// Holds a command that may be answered without a task, and takes its data. Returns false and
    /// takes nothing if it is another command, or one that must be refused.
    #[inline]
    pub(crate) fn hold(self: &Rc<Self>, command: &Command, data: &mut Buf) -> bool {
        let Some(Binding { terms, io_context: Some(io_context), .. }) = self.binding() else {
            return false;
        };
        let room = match command.opcode() {
            Opcode::RETRIEVE => room(command),
            Opcode::STORE if data.len() > io_context.value_bytes => return false,
            Opcode::STORE if sgl_len(command) == Ok(data.len()) => Ok(0),
            _ => return false,
        };
        let Ok(room) = room else { return false };
        let mut held = self.held.borrow_mut();
        let nsid = command.nsid();
        if held.namespace.as_ref().is_none_or(|(id, _)| *id != nsid) {
            drop(held);
            self.execute_held();
            held = self.held.borrow_mut();
            held.namespace = begin(io_context, nsid);
        }
        if self.outstanding() + held.len() >= usize::from(terms.entries) {
            return false;
        }
        let Held { namespace: Some((_, namespace)), commands, reads, .. } = &mut *held else {
            return false;
        };
        match &***namespace {
            Namespace::Kv(store) => {
                let Some(quick) = Quick::decode(store, command, data) else { return false };
                let head = CommandHead::of(command);
                commands.push_mut(HeldCommand { head, room, quick }).quick.prefetch(store);
            }
            Namespace::Block(blocks) => {
                let Some(read) = HeldRead::decode(&**blocks, command, room) else { return false };
                reads.push(read);
            }
            Namespace::Zoned(_) => return false,
        }
        self.move_head(*terms);
        if held.len() == HELD_MAX {
            drop(held);
            self.execute_held();
        }
        true
    }
}

/// Returns the namespace with this id for the commands that have arrived. `None` if they need
/// tasks, or if a state of the device refuses them.
fn begin(io_context: &IoContext, nsid: u32) -> Option<(u32, Arc<NamespaceInUse>)> {
    let IoContext { association, device, .. } = io_context;
    if !device.has_quick_reads() {
        return None;
    }
    let is_quick = |namespace: &Namespace| match namespace {
        Namespace::Kv(_) => device.has_quick_commands(),
        Namespace::Block(blocks) => blocks.reads_at_once(),
        Namespace::Zoned(_) => false,
    };
    // A format or sanitize that begins after the check waits for this namespace.
    let namespace = device.inventory.get(nsid).filter(|namespace| is_quick(namespace))?;
    let is_open = association.registers.takes_commands()
        && device.attachments.are_of(nsid, &association.host)
        && device.sanitizing.refusal().is_none()
        && !device.inventory.is_formatting(nsid);
    if !is_open {
        return None;
    }
    association.keep_alive.hear();
    Some((nsid, namespace))
}
