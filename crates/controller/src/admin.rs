//! Admin commands: the controller executes them itself, without the device's namespaces.
//!
//! Each command has a file that decodes, checks and answers it, and an arm in [`answer`]. This also
//! holds for vendor commands. A vendor log page is a file in `vendor` and a line in its list.

mod abort;
mod asymmetric_access;
mod changes;
mod delivery;
mod event_request;
mod events;
mod feature_values;
mod features;
mod health;
mod identify;
mod log_pages;
mod namespaces;
mod sanitize;
mod sharing;
mod vendor;
mod warnings;

pub(crate) use changes::Changes;
pub(crate) use events::Events;
pub(crate) use feature_values::Features;
pub use vendor::{EngineFigures, KeyCounts};
pub(crate) use warnings::critical_warnings;

use crate::completion::{Executed, Outcome};
use crate::fabrics::{Association, Pair, Service, Subsystems, Ticket};
use crate::host_queue::Capsule;
use spec::{AdminOpcode, Command, Status};
use std::rc::Rc;
use std::sync::Arc;

/// Executes an admin command. Returns `None` if the holder of `ticket` answers later.
pub(crate) fn execute(
    queue: &Rc<Pair>,
    subsystems: &Arc<Subsystems>,
    association: &Arc<Association>,
    ticket: Ticket,
    capsule: &Capsule,
) -> Option<Outcome> {
    let command = &capsule.command;
    if !association.registers.takes_commands() {
        return Some(Outcome::of(Status::COMMAND_SEQUENCE_ERROR));
    }
    if command.is_fused() {
        return Some(Outcome::of(Status::INVALID_FIELD));
    }
    if command.admin_opcode() == AdminOpcode::ASYNC_EVENT_REQUEST {
        return event_request::request(association, queue, ticket);
    }
    if namespaces::are_of(command.admin_opcode()) {
        let (queue, association, capsule) = (queue.clone(), association.clone(), capsule.clone());
        let subsystems = subsystems.clone();
        clock::spawn(async move {
            let outcome = namespaces::execute(&subsystems, &association, &capsule).await;
            queue.answer(ticket, outcome.into());
        });
        return None;
    }
    if let (AdminOpcode::SANITIZE, Service::Storage(subsystem)) =
        (command.admin_opcode(), &association.service)
    {
        return Some(sanitize::execute(association, subsystem, command).into());
    }
    if command.admin_opcode() == AdminOpcode::ABORT && is_storage(association) {
        return abort::abort(queue, association, ticket, command);
    }
    let executed = answer(subsystems, association, command);
    // Before the response: the command may have caused an event, or have unmasked one.
    queue.tell_events(&association.events);
    Some(executed.into())
}

fn answer(subsystems: &Subsystems, association: &Association, command: &Command) -> Executed {
    match command.admin_opcode() {
        AdminOpcode::GET_LOG_PAGE => log_pages::get(subsystems, association, command),
        AdminOpcode::IDENTIFY => identify::identify(association, command),
        AdminOpcode::SET_FEATURES => features::set(association, command),
        AdminOpcode::GET_FEATURES => features::get(association, command),
        AdminOpcode::KEEP_ALIVE => Ok(Outcome::done()),
        _ => Err(Status::INVALID_OPCODE),
    }
}

fn is_storage(association: &Association) -> bool {
    matches!(association.service, Service::Storage(_))
}
