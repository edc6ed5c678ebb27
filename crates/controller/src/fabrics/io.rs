use crate::completion::Outcome;
use crate::fabrics::association::{Association, Service};
use crate::fabrics::queue::{Bound, Queue};
use crate::fabrics::slots::Ticket;
use crate::fabrics::subsystem::Subsystem;
use crate::host_queue::Capsule;
use crate::queue::Submission;
use crate::span::TRANSFER_BYTES_MAX;
use base::Buf;
use spec::{Command, DataPointer, Opcode, Status, Transfer};
use std::rc::Rc;

/// Most data bytes in a command's capsule, on every queue.
pub(crate) const IN_CAPSULE_BYTES: u32 = 8_192;

impl Queue {
    /// Has the device execute an I/O command, as a task that holds no more than the device is
    /// given: what it holds is copied to where tasks are.
    pub(crate) fn start(self: &Rc<Self>, bound: &Bound, ticket: Ticket, capsule: Capsule) {
        bound.association.keep_alive.heard();
        let (queue, now) = (self.clone(), clock::host_now());
        let (io, submission) = match decode(&bound.association, capsule) {
            Ok(decoded) => decoded,
            Err(status) => {
                clock::spawn_at(now, async move { queue.answer(ticket, Outcome::of(status)) });
                return;
            }
        };
        clock::spawn_at(now, async move {
            clock::label(ticket.command_id.into());
            let (begun, brought) = (clock::now(), submission.data.len());
            io.subsystem.tally.begin(begun);
            let mut outcome = io.subsystem.device.execute(submission).await;
            if outcome.data.len() > io.room {
                outcome = Outcome::of(Status::DATA_SGL_LENGTH_INVALID);
            }
            let ended = clock::now();
            assert_eq!(clock::stages().total(), ended - begun, "stages add up to the latency");
            let moved = brought + outcome.data.len();
            io.subsystem.tally.end(ended, io.transfer, moved, outcome.status);
            queue.answer(ticket, outcome);
        });
    }
}

/// What is kept of an I/O command while the device executes it.
struct Io {
    subsystem: Rc<Subsystem>,
    transfer: Transfer,
    /// How many bytes the host takes.
    room: u32,
}

/// Decodes an I/O command as far as the fabric is concerned.
#[inline]
fn decode(association: &Association, capsule: Capsule) -> Result<(Io, Submission), Status> {
    let Service::Storage(subsystem) = &association.service else {
        return Err(Status::INVALID_OPCODE);
    };
    if !association.registers.takes_commands() {
        return Err(Status::COMMAND_SEQUENCE_ERROR);
    }
    let transfer = capsule.command.transfer();
    let (submission, room) = submission(subsystem, transfer, capsule)?;
    Ok((Io { subsystem: subsystem.clone(), transfer, room }, submission))
}

/// What the device is given of a capsule, and the room for what it returns.
#[inline]
fn submission(
    subsystem: &Subsystem,
    transfer: Transfer,
    capsule: Capsule,
) -> Result<(Submission, u32), Status> {
    let Capsule { command, data } = capsule;
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
            if offset.saturating_add(len) > IN_CAPSULE_BYTES {
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
