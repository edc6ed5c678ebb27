use crate::completion::{Executed, Outcome};
use crate::fabrics::room;
use base::Buf;
use spec::{Command, Status};

/// Returns `bytes` to the host, if its buffer has room for them.
pub(super) fn delivered(command: &Command, bytes: &[u8]) -> Executed {
    if (room(command)? as usize) < bytes.len() {
        return Err(Status::DATA_SGL_LENGTH_INVALID);
    }
    Ok(Outcome::with_data(Buf::copy_from(bytes)))
}
