use crate::completion::Outcome;
use crate::fabrics::association::{Association, Host, Service, TransportModel};
use crate::fabrics::keep_alive::DISCOVERY_MS;
use crate::fabrics::port::{Entrance, Subsystems};
use crate::fabrics::queue_link::QueueLink;
use crate::fabrics::rules::Limits;
use crate::fabrics::subsystem::Subsystem;
use crate::fabrics::terms::Terms;
use crate::fabrics::transfer::brought;
use crate::host_queue::Capsule;
use spec::{Command, ConnectData, ConnectInvalid, ConnectReply, QualifiedName, Status};
use std::sync::Arc;
use zerocopy::FromBytes;

/// A Host Identifier of 0h. Base 2.1 (Connect command, Data): the Connect of an admin queue sets it
/// as any other identifier, and discovery log entries allow it (ZHIDS). In the Connect of an I/O
/// queue the controller ignores the field if it is 0h.
const NO_HOST_ID: [u8; 16] = [0; 16];

/// Why a Connect failed.
enum Refusal {
    /// A field is wrong.
    Invalid(ConnectInvalid),
    Because(Status),
}

impl From<ConnectInvalid> for Refusal {
    fn from(invalid: ConnectInvalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Because(status)
    }
}

/// Executes a Connect on an unbound queue (Base 2.1, Connect command). Returns the association that
/// has taken the queue, with the parameters to bind it with, or the response that refuses it.
pub(crate) fn connect(
    entrance: &Entrance,
    link: &Arc<QueueLink>,
    capsule: &Capsule,
) -> Result<(Arc<Association>, Terms), Outcome> {
    joined(entrance, link, capsule).map_err(|refusal| match refusal {
        Refusal::Because(status) => Outcome::of(status),
        Refusal::Invalid(invalid) => {
            Outcome { result: invalid.0.into(), ..Outcome::of(Status::CONNECT_INVALID_PARAMETERS) }
        }
    })
}

/// Returns the response to a Connect to this association.
pub(crate) fn connected(association: &Association) -> Outcome {
    Outcome { result: ConnectReply::new(association.id).0.into(), ..Outcome::done() }
}

fn joined(
    entrance: &Entrance,
    link: &Arc<QueueLink>,
    capsule: &Capsule,
) -> Result<(Arc<Association>, Terms), Refusal> {
    let command = &capsule.command;
    if command.record_format() != 0 {
        return Err(Status::CONNECT_INCOMPATIBLE_FORMAT.into());
    }
    let bytes = brought(command, capsule.data.clone())?;
    let data = bytes.bytes().and_then(|bytes| ConnectData::read_from_bytes(bytes).ok());
    let data = data.ok_or(Status::DATA_SGL_LENGTH_INVALID)?;
    let association = match command.queue_id() {
        0 => new_association(entrance, command, &data)?,
        id => association_of(entrance.subsystems(), command, id, &data)?,
    };
    let terms = Terms {
        id: command.queue_id(),
        entries: command.queue_size() + 1,
        has_flow_control: !command.connect_attributes().disables_flow_control(),
    };
    link.set_entries(terms.entries);
    if !association.add_queue(terms.id, link) {
        return Err(Status::COMMAND_SEQUENCE_ERROR.into());
    }
    Ok((association, terms))
}

/// Creates the association for the Connect of an admin queue.
fn new_association(
    entrance: &Entrance,
    command: &Command,
    data: &ConnectData,
) -> Result<Arc<Association>, Refusal> {
    let subsystems = entrance.subsystems();
    let mut limits = subsystems.rules().limits;
    check_size(command, limits)?;
    let (host_name, name) = names(data)?;
    let mut keep_alive_ms = command.keep_alive_ms();
    let (associations, service) = if name == QualifiedName::DISCOVERY {
        if keep_alive_ms == 0 {
            keep_alive_ms = DISCOVERY_MS;
        }
        limits.associations = Limits::DISCOVERY_ASSOCIATIONS;
        (subsystems.discovery(), Service::Discovery(entrance.address().clone()))
    } else {
        let subsystem = admitted(subsystems, name, host_name)?;
        (&subsystem.associations.clone(), Service::Storage(subsystem))
    };
    // In the dynamic controller model no controller exists before the Connect.
    if data.controller_id != ConnectData::ANY_CONTROLLER {
        return Err(ConnectInvalid::CONTROLLER_ID.into());
    }
    let host = Host {
        id: data.host_id,
        name: data.host,
        reactor: entrance.reactor(),
        keep_alive_ms,
        model: TransportModel::Message,
    };
    let association = associations.add(&host, service, limits);
    let association = association.ok_or(Status::CONNECT_CONTROLLER_BUSY)?;
    if data.host.is_empty() {
        subsystems.notice_unnamed_host();
    }
    Ok(association)
}

/// Returns the names of the host and of the subsystem.
///
/// Base 2.1 requires a host name, but at least one benchmark sends none. That host has the name "",
/// which no list of hosts contains.
fn names(data: &ConnectData) -> Result<(&str, &str), ConnectInvalid> {
    let host = if data.host.is_empty() { Some("") } else { data.host.valid() };
    let subsystem = data.subsystem.valid().ok_or(ConnectInvalid::SUBSYSTEM)?;
    Ok((host.ok_or(ConnectInvalid::HOST)?, subsystem))
}

/// Returns the association that the Connect of an I/O queue joins as queue `id`.
fn association_of(
    subsystems: &Subsystems,
    command: &Command,
    id: u16,
    data: &ConnectData,
) -> Result<Arc<Association>, Refusal> {
    check_size(command, subsystems.rules().limits)?;
    let (host, name) = names(data)?;
    if name == QualifiedName::DISCOVERY {
        return Err(ConnectInvalid::QUEUE_ID.into());
    }
    let subsystem = admitted(subsystems, name, host)?;
    let association = subsystem.associations.get(data.controller_id.get());
    let association = association.ok_or(ConnectInvalid::CONTROLLER_ID)?;
    if data.host_id != NO_HOST_ID && association.host_id != data.host_id {
        return Err(ConnectInvalid::HOST_ID.into());
    }
    if association.host != data.host {
        return Err(ConnectInvalid::HOST.into());
    }
    if !association.registers.takes_commands() {
        return Err(Status::COMMAND_SEQUENCE_ERROR.into());
    }
    if id > association.features.io_queues() {
        return Err(ConnectInvalid::QUEUE_ID.into());
    }
    Ok(association)
}

fn check_size(command: &Command, limits: Limits) -> Result<(), Refusal> {
    let is_possible = (1..limits.queue_entries).contains(&command.queue_size());
    if is_possible { Ok(()) } else { Err(ConnectInvalid::QUEUE_SIZE.into()) }
}

/// Returns the subsystem `name`, if there is one and `host` may connect to it.
fn admitted(subsystems: &Subsystems, name: &str, host: &str) -> Result<Arc<Subsystem>, Refusal> {
    let subsystem = subsystems.find(name).ok_or(ConnectInvalid::SUBSYSTEM)?;
    if !subsystems.rules().admit(name, host) {
        return Err(Status::CONNECT_INVALID_HOST.into());
    }
    Ok(subsystem)
}
