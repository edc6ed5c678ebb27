//! The data pointer of a command of a fabric: what the host has sent, and its room for an answer.

use crate::host_queue::IN_CAPSULE_BYTES_MAX;
use crate::span::TRANSFER_BYTES_MAX;
use base::Buf;
use spec::{Command, DataPointer, Status};

/// Returns the data of a command that moves `len` bytes: the first bytes of a longer SGL.
#[inline]
pub(crate) fn cut(data: Buf, len: u32) -> Result<Buf, Status> {
    if data.len() == len || len > TRANSFER_BYTES_MAX {
        return Ok(data);
    }
    if data.len() < len {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok(data.slice(0..len))
}

/// Returns the data of a command, if its length is that of the SGL.
#[inline]
pub(crate) fn brought(command: &Command, data: Buf) -> Result<Buf, Status> {
    let len = sgl_len(command)?;
    // The transport brings no data if the SGL exceeds the transfer limit.
    if data.len() == len || len > TRANSFER_BYTES_MAX {
        return Ok(data);
    }
    Err(Status::DATA_SGL_LENGTH_INVALID)
}

/// Returns the length of the SGL of a command that brings data.
#[inline]
pub(crate) fn sgl_len(command: &Command) -> Result<u32, Status> {
    match command.data_pointer() {
        _ if !command.uses_sgl() => Err(Status::INVALID_FIELD),
        DataPointer::InCapsule { offset, len } => {
            let fits = offset.saturating_add(len) <= IN_CAPSULE_BYTES_MAX;
            if fits { Ok(len) } else { Err(Status::SGL_OFFSET_INVALID) }
        }
        DataPointer::Transport { len } => Ok(len),
        DataPointer::Other(_) => Err(Status::SGL_TYPE_INVALID),
    }
}

/// Returns the length of the host's buffer in bytes.
#[inline]
pub(crate) fn room(command: &Command) -> Result<u32, Status> {
    match command.data_pointer() {
        _ if !command.uses_sgl() => Err(Status::INVALID_FIELD),
        DataPointer::Transport { len } => Ok(len),
        DataPointer::InCapsule { .. } | DataPointer::Other(_) => Err(Status::SGL_TYPE_INVALID),
    }
}
