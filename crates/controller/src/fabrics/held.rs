//! Commands that may be answered without a task. A queue holds a few of them while its transport
//! takes in more, so that the index entries of all of them are prefetched.

use crate::commit_queue::store_of;
use crate::fabrics::io_context::IoContext;
use crate::fabrics::job::Begun;
use crate::fabrics::slots::CommandHead;
use crate::fabrics::transfer::{room, sgl_len};
use crate::host_queue::Capsule;
use crate::io_command::Counted;
use crate::namespace::{Namespace, NamespaceInUse};
use crate::quick::Quick;
use engine::{Announced, Store};
use spec::Opcode;
use std::sync::Arc;

/// Most commands that are held: as many index entries are prefetched at a time.
pub(crate) const HELD_MAX: usize = 32;

/// The commands that a queue holds. It holds none while its connection waits.
#[derive(Default)]
pub(crate) struct Held {
    /// The namespace of all of them, and its id. While the queue has it, its media are not given
    /// to another namespace.
    pub(crate) namespace: Option<(u32, Arc<NamespaceInUse>)>,
    pub(crate) commands: Vec<HeldCommand>,
}

/// A held command.
pub(crate) struct HeldCommand {
    pub(crate) head: CommandHead,
    /// Bytes of its value, if it is a Store.
    stored: Option<u32>,
    /// Length of the host's buffer in bytes.
    room: u32,
    pub(crate) quick: Quick,
    /// A Store is announced while it is held, so that those held together share a page.
    pub(crate) announced: Option<Announced>,
}

impl HeldCommand {
    /// Returns what the controller keeps of it while the device executes it.
    #[inline]
    pub(crate) fn begun(&self) -> Begun {
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
            let namespace = namespace.filter(|it| matches!(***it, Namespace::Kv(_)))?;
            self.namespace = Some((nsid, namespace));
        }
        self.namespace.as_ref().map(|(_, namespace)| store_of(namespace))
    }

    /// Returns whether the held commands are of a namespace with another id.
    #[inline]
    pub(crate) fn are_of_another(&self, nsid: u32) -> bool {
        self.namespace.as_ref().is_some_and(|(id, _)| *id != nsid)
    }

    /// Holds a command that may be answered without a task, and takes its data. Returns false and
    /// takes nothing if it is another command.
    #[inline]
    pub(crate) fn hold(&mut self, io_context: &IoContext, capsule: &mut Capsule) -> bool {
        let Some(store) = self.store(io_context, capsule.command.nsid()) else { return false };
        let Some(mut command) = decode(io_context, capsule) else { return false };
        command.quick.expect(store);
        command.announced = command.stored.map(|_| store.announce());
        self.commands.push(command);
        true
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
    if !io_context.is_open(command.nsid()) {
        return None;
    }
    let quick = Quick::decode(command, data)?;
    let head = CommandHead::of(command);
    Some(HeldCommand { head, stored, room, quick, announced: None })
}
