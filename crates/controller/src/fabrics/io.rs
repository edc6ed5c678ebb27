use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::queue::{Bound, Queue};
use crate::fabrics::slots::Ticket;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::{Capsule, IN_CAPSULE_BYTES_MAX};
use crate::queue::Submission;
use crate::span::TRANSFER_BYTES_MAX;
use base::{Buf, Nanos};
use spec::{Command, DataPointer, Opcode, Status, Transfer};
use std::rc::Rc;

impl Queue {
    /// Has the device execute an I/O command.
    pub(crate) fn start(self: &Rc<Self>, bound: &Bound, ticket: Ticket, capsule: Capsule) {
        bound.association.keep_alive.heard();
        match decode(&bound.association, capsule) {
            Ok(job) => self.workers.give(self, ticket, job),
            Err(status) => {
                let queue = self.clone();
                clock::spawn(async move { queue.answer(ticket, Outcome::of(status)) });
            }
        }
    }

    /// Answers an I/O command that the device has executed.
    pub(crate) fn done(&self, ticket: Ticket, begun: Begun, mut outcome: Outcome) {
        let Begun { at, brought, subsystem, transfer, room } = begun;
        if outcome.data.len() > room {
            outcome = Outcome::of(Status::DATA_SGL_LENGTH_INVALID);
        }
        let ended = clock::now();
        assert_eq!(clock::stages().total(), ended - at, "stages add up to the latency");
        let moved = brought + outcome.data.len();
        subsystem.tally.end(ended, transfer, moved, outcome.status);
        self.answer(ticket, outcome);
    }
}

/// An I/O command that is to be executed.
pub(crate) struct Job {
    subsystem: Rc<Subsystem>,
    transfer: Transfer,
    /// How many bytes the host takes.
    room: u32,
    submission: Submission,
}

/// What is kept of it meanwhile.
pub(crate) struct Begun {
    at: Nanos,
    /// Bytes that came with it.
    brought: u32,
    pub(crate) subsystem: Rc<Subsystem>,
    transfer: Transfer,
    room: u32,
}

impl Job {
    /// Begins it in the task that executes it: what the device is given, and what is kept.
    pub(crate) fn begin(self, ticket: Ticket) -> (Submission, Begun) {
        let Self { subsystem, transfer, room, submission } = self;
        clock::label(ticket.command_id.into());
        clock::begin_account();
        let (at, brought) = (clock::now(), submission.data.len());
        subsystem.tally.begin(at);
        (submission, Begun { at, brought, subsystem, transfer, room })
    }
}

/// Decodes an I/O command as far as the fabric is concerned.
#[inline]
fn decode(association: &Association, capsule: Capsule) -> Result<Job, Status> {
    let Service::Storage(subsystem) = &association.service else {
        return Err(Status::INVALID_OPCODE);
    };
    if !association.registers.takes_commands() {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    let transfer = capsule.command.transfer();
    let (submission, room) = submission(subsystem, transfer, capsule)?;
    Ok(Job { subsystem: subsystem.clone(), transfer, room, submission })
}

/// What the device is given of a capsule, and the room for what it returns.
#[inline]
fn submission(
    subsystem: &Subsystem,
    transfer: Transfer,
    capsule: Capsule,
) -> Result<(Submission, u32), Status> {
    let Capsule { command, data } = capsule;
    if !is_known(command.opcode()) {
        return Err(Status::INVALID_OPCODE);
    }
    if command.is_fused() {
        return Err(Status::INVALID_FIELD);
    }
    subsystem.active(command.nsid()).ok_or(Status::INVALID_NAMESPACE)?;
    let (data, room) = match transfer {
        Transfer::None => (Buf::phantom(0, 0), 0),
        Transfer::ToController => (value(&command, brought(&command, data)?)?, 0),
        Transfer::ToHost => (Buf::phantom(0, 0), room(&command)?),
    };
    // A List fills a buffer of its own first, so it is not given one that it cannot return.
    if command.opcode() == Opcode::LIST && command.size().min(TRANSFER_BYTES_MAX) > room {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok((Submission { command, long_key: None, data }, room))
}

/// Whether a namespace that hosts are shown has such a command: they are all of keys and values.
#[inline]
fn is_known(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::STORE | Opcode::RETRIEVE | Opcode::DELETE | Opcode::EXIST | Opcode::LIST
    )
}

/// The data of a Store: of an SGL that is longer than the value, the beginning. A value that is too
/// long for any Store is left to the device to refuse.
#[inline]
fn value(command: &Command, data: Buf) -> Result<Buf, Status> {
    let len = command.size();
    if command.opcode() != Opcode::STORE || data.len() == len || len > TRANSFER_BYTES_MAX {
        return Ok(data);
    }
    if data.len() < len {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok(data.slice(0..len))
}

/// The data that a command brings, if it is what its SGL says.
#[inline]
pub(crate) fn brought(command: &Command, data: Buf) -> Result<Buf, Status> {
    let len = match command.data_pointer() {
        _ if !command.uses_sgl() => return Err(Status::INVALID_FIELD),
        DataPointer::InCapsule { offset, len } => {
            if offset.saturating_add(len) > IN_CAPSULE_BYTES_MAX {
                return Err(Status::SGL_OFFSET_INVALID);
            }
            len
        }
        DataPointer::Transport { len } => len,
        DataPointer::Other(_) => return Err(Status::SGL_TYPE_INVALID),
    };
    // Of more than a command may move the door brings nothing.
    if data.len() == len || len > TRANSFER_BYTES_MAX {
        return Ok(data);
    }
    Err(Status::DATA_SGL_LENGTH_INVALID)
}

/// How many bytes the host takes.
#[inline]
pub(crate) fn room(command: &Command) -> Result<u32, Status> {
    match command.data_pointer() {
        _ if !command.uses_sgl() => Err(Status::INVALID_FIELD),
        DataPointer::Transport { len } => Ok(len),
        DataPointer::InCapsule { .. } | DataPointer::Other(_) => Err(Status::SGL_TYPE_INVALID),
    }
}
